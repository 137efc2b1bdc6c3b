"""The curves of the certified problems, written as any NumPy user would write them.

Each takes the parameters ``b`` and the predictor ``x``. Nothing here knows of tilegrad: tracing,
differentiating and compiling these functions as they stand is what the demonstration shows.
Formulas are those printed in the NIST StRD data files; where a family has several members, the
name is the family's.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def bennett(b: Any, x: Any) -> Any:
    """Magnetization against the logarithm of time (Bennett, Swartzendruber and Brown)."""
    b1, b2, b3 = b
    return b1 * (b2 + x) ** (-1 / b3)


def saturation(b: Any, x: Any) -> Any:
    """First-order approach to a plateau: Misra1a and BoxBOD."""
    b1, b2 = b
    return b1 * (1 - np.exp(-b2 * x))


def misra_b(b: Any, x: Any) -> Any:
    """Misra1b: adsorption with an inverse square."""
    b1, b2 = b
    return b1 * (1 - (1 + b2 * x / 2) ** -2)


def misra_c(b: Any, x: Any) -> Any:
    """Misra1c: adsorption with an inverse square root."""
    b1, b2 = b
    return b1 * (1 - (1 + 2 * b2 * x) ** -0.5)


def misra_d(b: Any, x: Any) -> Any:
    """Misra1d: adsorption as a hyperbola."""
    b1, b2 = b
    return b1 * b2 * x * (1 + b2 * x) ** -1


def chwirut(b: Any, x: Any) -> Any:
    """Ultrasonic response against the distance to the metal."""
    b1, b2, b3 = b
    return np.exp(-b1 * x) / (b2 + b3 * x)


def power(b: Any, x: Any) -> Any:
    """DanWood: energy radiated by a carbon filament against its temperature."""
    b1, b2 = b
    return b1 * x**b2


def southern_oscillation(b: Any, x: Any) -> Any:
    """ENSO: an annual cycle of pressure differences and two cycles of unknown length."""
    b1, b2, b3, b4, b5, b6, b7, b8, b9 = b
    year, first, second = (2 * np.pi * x / period for period in (12, b4, b7))
    return (
        b1
        + (b2 * np.cos(year) + b3 * np.sin(year))
        + (b5 * np.cos(first) + b6 * np.sin(first))
        + (b8 * np.cos(second) + b9 * np.sin(second))
    )


def gaussian_peak(b: Any, x: Any) -> Any:
    """Eckerle4: circular interference transmittance against wavelength."""
    b1, b2, b3 = b
    return b1 / b2 * np.exp(-0.5 * ((x - b3) / b2) ** 2)


def gaussians_on_decay(b: Any, x: Any) -> Any:
    """Gauss1 to Gauss3: two blended peaks on a decaying exponential baseline."""
    b1, b2, b3, b4, b5, b6, b7, b8 = b
    return (
        b1 * np.exp(-b2 * x)
        + b3 * np.exp(-((x - b4) ** 2) / b5**2)
        + b6 * np.exp(-((x - b7) ** 2) / b8**2)
    )


def cubic_ratio(b: Any, x: Any) -> Any:
    """Hahn1 (thermal expansion of copper) and Thurber (electron mobility): cubic over cubic."""
    b1, b2, b3, b4, b5, b6, b7 = b
    return (b1 + b2 * x + b3 * x**2 + b4 * x**3) / (1 + b5 * x + b6 * x**2 + b7 * x**3)


def quadratic_ratio(b: Any, x: Any) -> Any:
    """Kirby2: scanning electron microscope line widths, quadratic over quadratic."""
    b1, b2, b3, b4, b5 = b
    return (b1 + b2 * x + b3 * x**2) / (1 + b4 * x + b5 * x**2)


def lanczos(b: Any, x: Any) -> Any:
    """Three decaying exponentials, made up by Lanczos to show how badly they separate."""
    b1, b2, b3, b4, b5, b6 = b
    return b1 * np.exp(-b2 * x) + b3 * np.exp(-b4 * x) + b5 * np.exp(-b6 * x)


def kowalik_osborne(b: Any, x: Any) -> Any:
    """MGH09: an enzyme reaction, quadratic over quadratic."""
    b1, b2, b3, b4 = b
    return b1 * (x**2 + x * b2) / (x**2 + x * b3 + b4)


def meyer(b: Any, x: Any) -> Any:
    """MGH10: resistance of a thermistor against temperature."""
    b1, b2, b3 = b
    return b1 * np.exp(b2 / (x + b3))


def osborne(b: Any, x: Any) -> Any:
    """MGH17: two decaying exponentials above a constant."""
    b1, b2, b3, b4, b5 = b
    return b1 + b2 * np.exp(-x * b4) + b3 * np.exp(-x * b5)


def nelson(b: Any, x: Any) -> Any:
    """Logarithm of dielectric breakdown strength against weeks (x[0]) and temperature (x[1])."""
    b1, b2, b3 = b
    return b1 - b2 * x[0] * np.exp(-b3 * x[1])


def logistic_growth(b: Any, x: Any) -> Any:
    """Rat42: a sigmoid of pasture yield against growing time."""
    b1, b2, b3 = b
    return b1 / (1 + np.exp(b2 - b3 * x))


def richards_growth(b: Any, x: Any) -> Any:
    """Rat43: a sigmoid with a shape parameter, dry weight of onions against growing time."""
    b1, b2, b3, b4 = b
    return b1 / (1 + np.exp(b2 - b3 * x)) ** (1 / b4)


def quantum_defect(b: Any, x: Any) -> Any:
    """Roszman1: quantum defects of iodine atoms against the energy of the excited state."""
    b1, b2, b3, b4 = b
    return b1 - b2 * x - np.arctan(b3 / (x - b4)) / np.pi
