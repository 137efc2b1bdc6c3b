"""How the coefficients of ``ir/scalar/log_gamma.py`` and ``polygamma.py`` were made.

``python tests/ir/scalar/gamma_tables.py`` (half a minute, with gmpy2) fits every table anew, by the
exchange of ``minimax_tables.py``, and says whether the package has the same numbers.
"""

from typing import Any

import mpmath as mp
from minimax_tables import fit

from tilegrad.ir.scalar import log_gamma, polygamma

mp.mp.prec = 200


def near_two() -> tuple[list[float], float]:
    """``(lgamma(2 + d) / d - (1 - euler)) / d`` for ``|d| <= 1/2``, relative to lgamma."""
    slope = 1 - mp.euler

    def target(d: Any) -> Any:
        return (mp.loggamma(2 + d) / d - slope) / d if d else (mp.zeta(2) - 1) / 2

    def weight(d: Any) -> Any:
        return d * d / mp.loggamma(2 + d)

    bound = mp.mpf(1) / 2
    return fit(target, weight, -bound, bound, range(19), 53, 4)


def stirling() -> tuple[list[float], float]:
    """``x (lgamma(x) - Stirling's formula)`` in ``1 / x^2`` for ``x >= 5.5``."""

    def target(u: Any) -> Any:
        x = 1 / mp.sqrt(u)
        formula = (x - mp.mpf(1) / 2) * mp.log(x) - x + mp.log(2 * mp.pi) / 2
        return x * (mp.loggamma(x) - formula)

    return fit(target, lambda u: mp.sqrt(u), "1e-12", 1 / mp.mpf("5.5") ** 2, range(9), 53, 2)


def digamma_near_zero() -> tuple[list[float], float]:
    """``digamma(x) / (x - x0)``, ``x0`` its zero, less its value at 3/2, over ``x - 3/2``."""
    zero, middle = mp.findroot(mp.digamma, mp.mpf("1.4616")), mp.mpf(3) / 2

    def whole(t: Any) -> Any:
        return mp.digamma(t + middle) / (t + middle - zero)

    first = whole(mp.mpf(0))
    half = mp.mpf(1) / 2
    target, weight = lambda t: (whole(t) - first) / t, lambda t: t / whole(t)
    return fit(target, weight, -half, half, range(22), 53, 3)


def digamma_far() -> tuple[list[float], float]:
    """``x^2 (log(x) - 1 / (2 x) - digamma(x))`` in ``1 / x^2`` for ``x >= 3``."""

    def target(u: Any) -> Any:
        x = 1 / mp.sqrt(u)
        return (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) / u

    return fit(target, lambda u: u, "1e-12", mp.mpf(1) / 9, range(13), 53, 2)


def main() -> None:
    tables = [
        ("near 2", log_gamma.NEAR_TWO, near_two()),
        ("Stirling", log_gamma.STIRLING, stirling()),
        ("digamma", polygamma.DIGAMMA, digamma_near_zero()),
        ("digamma far", polygamma.DIGAMMA_FAR, digamma_far()),
    ]
    for name, have, (found, error) in tables:
        print(f"{name}: error 2^{error:.1f}, {'same' if tuple(found) == have else found}")


if __name__ == "__main__":
    main()
