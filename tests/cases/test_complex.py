"""Cases of the group complex: both modes agree for linear maps of complex vectors.

The Fourier transforms of the collection are written as matrices here, which is the same map.
"""

import numpy as np
import pytest
from ways import in_every_way

import tilegrad as tg

Z = np.array([1 + 2j, -1j, 3.0])
T = np.array([1j, 2.0, -1 + 1j])
C = np.array([2.0, 1 - 1j, 0.5j])


def fourier(n):
    k = np.arange(n)
    return np.exp(-2j * np.pi * np.outer(k, k) / n)


INVERSE = fourier(3).conj() / 3
LINEAR = {
    "matmul": (lambda z: INVERSE @ z, lambda z: INVERSE @ z),
    "einsum": (lambda z: tg.einsum("jk,k->j", INVERSE, z), lambda z: INVERSE @ z),
    "sum of products": (lambda z: tg.sum(INVERSE * z, axis=1), lambda z: INVERSE @ z),
    "cumsum": (tg.cumsum, np.cumsum),
    "conj": (lambda z: tg.conj(z) * (2 - 1j), lambda z: np.conj(z) * (2 - 1j)),
    "real": (lambda z: tg.real(z) + 0j, lambda z: np.real(z) + 0j),
    "imag": (lambda z: 1j * tg.imag(z), lambda z: 1j * np.imag(z)),
    "quotient": (lambda z: z / (3 + 4j), lambda z: z / (3 + 4j)),
    "flip": (lambda z: z[::-1] * 1j, lambda z: z[::-1] * 1j),
    "convolve": (lambda z: tg.convolve(z, C), lambda z: np.convolve(z, C)),
}


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_ifftmode(name, dtype):
    """``Re <conj(c), J t> = Re <conj(J^T c), t>`` in the conjugate convention of grad."""
    f, exact = LINEAR[name]
    rtol = 1e-13 if dtype == "complex128" else 2e-6
    z, t = Z.astype(dtype), T.astype(dtype)
    value, tangent = in_every_way(lambda z, t: tg.jvp(f, (z,), (t,)), z, t, ways=("eager", "jit"))
    np.testing.assert_allclose(value, exact(z), rtol=rtol, atol=rtol)
    np.testing.assert_allclose(tangent, exact(t), rtol=rtol, atol=rtol)
    c = np.resize(C, value.shape).astype(value.dtype)
    (w,) = in_every_way(lambda z, c: tg.vjp(f, z)[1](c), z, c, ways=("eager", "jit"))
    forms = [np.vdot(c, tangent).real, np.sum(c * tangent).real]
    pairings = [np.vdot(w, t).real, np.sum(w * t).real]
    # one of the two pairings, the same one for every function
    assert np.isclose(forms[CONJUGATED], pairings[CONJUGATED], rtol=rtol, atol=rtol)


def _convention():
    """Which pairing ``vjp`` keeps, read off z -> i z: by 1 it gives i, or by Re conj(.)(.) -i."""
    (w,) = tg.vjp(lambda z: 1j * z, np.complex128(1.0))[1](np.complex128(1.0))
    return 1 if complex(w) == 1j else 0


CONJUGATED = _convention()


def test_ifftmode_steepest_descent():
    """``z - lr grad`` descends: grad |F z - b|^2 is 2 F^H (F z - b)."""
    b = np.array([1.0, 2j, -1.0])

    def loss(z):
        r = INVERSE @ z - b
        return tg.sum(tg.abs(r) ** 2)

    # mapped, the matrix product is another one of the library, with its own order
    g = in_every_way(tg.grad(loss), Z, ways=("eager", "jit"))
    np.testing.assert_allclose(g, 2 * INVERSE.conj().T @ (INVERSE @ Z - b), rtol=1e-13)
    assert float(loss(tg.asarray(Z - 0.1 * g))) < float(loss(tg.asarray(Z)))
    holomorphic = tg.grad(lambda z: z**3, holomorphic=True)(1 + 2j)
    assert complex(holomorphic) == pytest.approx(3 * (1 + 2j) ** 2, rel=1e-15)


def test_rfftgrad():
    """The power spectrum of a real vector, by the first half of the Fourier matrix."""
    n, half = 6, fourier(6)[:4]
    x = np.arange(1.0, 7.0)

    def power(x):
        return tg.sum(tg.abs(half @ x) ** 2)

    g, h = in_every_way(lambda x: (tg.grad(power)(x), tg.hessian(power)(x)), x, ways=("jit",))
    assert g.dtype == np.float64  # the gradient of a real argument is real
    np.testing.assert_allclose(g, [24, 36, 36, 48, 48, 60], rtol=1e-13)
    np.testing.assert_allclose(h, 2 * np.real(half.conj().T @ half), atol=1e-12)
    # back from a half spectrum: the imaginary parts of its ends do not count
    weights = np.array([1, 2, 2, 1]) / n
    row = weights * np.exp(2j * np.pi * np.arange(4) / n)

    def second(m):
        spectrum = np.array([1.0, 2, 3, 4]) + 1j * m
        ends = tg.stack(
            [tg.real(spectrum[0]) + 0j, spectrum[1], spectrum[2], tg.real(spectrum[3]) + 0j]
        )
        return tg.real(tg.sum(row * ends))

    expected = [0, -0.28867513459481287, -0.28867513459481287, 0]
    for d in in_every_way(
        lambda m: (tg.grad(second)(m), tg.jacfwd(second)(m)), np.zeros(4), ways=("jit",)
    ):
        np.testing.assert_allclose(d, expected, rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize("x", [-2.0, 3.0])
def test_rfftgrad_of_real_functions(x):
    """A detour through complex numbers has the real derivative, and no imaginary rest."""
    detours = {
        lambda x: tg.real((x + 0j) ** 2): 2 * x,
        lambda x: tg.abs(x + 0j): np.sign(x),
        lambda x: tg.imag(1j * tg.exp(x + 0j)): np.exp(x),
        lambda x: tg.abs(tg.exp(1j * x)): 0.0,
        lambda x: tg.real(tg.conj(x + 2j) * (x - 1j)): 2 * x,
        lambda x: tg.angle(x + 1j): -1 / (x * x + 1),
    }

    def both(x):
        return [(tg.grad(f)(x), tg.jvp(f, (x,), (1.0,))[1]) for f in detours]

    found = in_every_way(both, np.float64(x), ways=("jit",))
    for (backward, forward), expected in zip(found, detours.values(), strict=True):
        assert backward.dtype == forward.dtype == np.float64
        np.testing.assert_allclose([backward, forward], expected, rtol=1e-14, atol=1e-15)
