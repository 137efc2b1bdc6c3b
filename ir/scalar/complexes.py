"""Elementary functions of a complex variable, composed from the real ones.

A complex value is a pair of real handler values. Special values are those of C99 (Annex G), as far
as they do not hang on the sign of a NaN. Parts are computed from products of real functions; where
such a product would be ``0 * inf`` the zero wins (:func:`_product`), and where one factor would
overflow although the product does not, it is split in two.
"""

from __future__ import annotations

from ..dtypes import DType
from . import exponential, hyperbolic, inverse_trigonometric, logarithm, roots, trigonometric
from .vocabulary import Handler, V

__all__ = ["absolute", "cos", "cosh", "exp", "log", "pow", "sin", "sinh", "sqrt", "tan", "tanh"]

Pair = tuple[V, V]

_LN2 = 0.6931471805599453
# Where e**x begins to overflow, and beyond which tanh is +-1 to the last bit.
_EXP_LIMIT = {64: 709.0, 32: 88.0}
_TANH_LIMIT = {64: 22.0, 32: 10.0}
_MAX_EXPONENT = {64: 1023, 32: 127}


def _product(h: Handler[V], x: V, y: V) -> V:
    """``x * y`` where a zero ``x`` gives zero even against inf and NaN."""
    product = h.mul(x, y)
    zero = h.const(0.0, h.dtype(x))
    return h.select(h.and_(h.eq(x, zero), h.ne(product, product)), x, product)


def _infinite(h: Handler[V], x: V) -> V:
    return h.eq(h.abs(x), h.const(float("inf"), h.dtype(x)))


def _finite(h: Handler[V], x: V) -> V:
    return h.lt(h.abs(x), h.const(float("inf"), h.dtype(x)))


def absolute(h: Handler[V], z: Pair[V]) -> V:
    """The modulus; infinite when a part is, even if the other is NaN."""
    return roots.hypot(h, z[0], z[1])


def exp(h: Handler[V], z: Pair[V]) -> Pair[V]:
    """``e**a (cos b + i sin b)``."""
    a, b = z
    dtype = h.dtype(a)
    zero, one, inf = (h.const(c, dtype) for c in (0.0, 1.0, float("inf")))
    half = h.const(0.5, dtype)
    large = h.gt(a, h.const(_EXP_LIMIT[dtype.bits], dtype))
    # e**a = first * second; both are finite wherever a part of the result can be
    first = h.rarely(large, exponential.exp(h, a), lambda: exponential.exp(h, h.mul(a, half)))
    second = h.select(large, first, one)
    real = h.mul(_product(h, trigonometric.cos(h, b), first), second)
    imag = h.mul(_product(h, trigonometric.sin(h, b), first), second)
    wild = h.not_(_finite(h, b))
    vanished = h.and_(h.eq(a, h.neg(inf)), wild)
    real = h.select(h.and_(h.eq(a, inf), wild), inf, real)
    is_real = h.eq(b, zero)
    imag = h.select(is_real, b, h.select(vanished, zero, imag))
    return h.select(is_real, exponential.exp(h, a), h.select(vanished, zero, real)), imag


def _log_modulus(h: Handler[V], a: V, b: V) -> V:
    """``log(hypot(a, b))``, accurate where the modulus is near one, and without overflow.

    Near one: ``log1p(a^2 + b^2 - 1) / 2`` with the rounding errors of both squares.
    """
    dtype = h.dtype(a)
    x, y = h.abs(a), h.abs(b)
    swap = h.lt(x, y)
    x, y = h.select(swap, y, x), h.select(swap, x, y)
    modulus = roots.hypot(h, x, y)
    one, half = h.const(1.0, dtype), h.const(0.5, dtype)
    near = h.and_(h.gt(modulus, half), h.lt(modulus, h.const(2.0, dtype)))
    xx, yy = h.mul(x, x), h.mul(y, y)
    errors = h.add(h.fma(x, x, h.neg(xx)), h.fma(y, y, h.neg(yy)))
    excess = h.add(h.add(h.sub(xx, one), yy), errors)
    close = h.mul(half, logarithm.log1p(h, h.select(near, excess, one)))
    usual = h.select(near, close, logarithm.log(h, modulus))
    limit = _MAX_EXPONENT[dtype.bits]
    large = h.ge(x, h.const(2.0 ** (limit - 1), dtype))
    small = h.lt(x, h.const(2.0 ** (60 - limit), dtype))

    def scaled() -> V:
        factor = h.select(large, half, h.const(2.0**60, dtype))
        offset = h.select(large, h.const(_LN2, dtype), h.const(-60 * _LN2, dtype))
        far = roots.hypot(h, h.mul(x, factor), h.mul(y, factor))
        return h.add(logarithm.log(h, far), offset)

    return h.rarely(h.or_(large, small), usual, scaled)


def log(h: Handler[V], z: Pair[V]) -> Pair[V]:
    """``log|z| + i arg z``, the argument in [-pi, pi]."""
    return _log_modulus(h, *z), inverse_trigonometric.atan2(h, z[1], z[0])


def sqrt(h: Handler[V], z: Pair[V]) -> Pair[V]:
    """The root with a real part that is not negative; the sign of the imaginary part is kept."""
    a, b = z
    dtype = h.dtype(a)
    zero, half, inf = (h.const(c, dtype) for c in (0.0, 0.5, float("inf")))
    limit = _MAX_EXPONENT[dtype.bits]
    x, y = h.abs(a), h.abs(b)
    size = h.select(h.lt(x, y), y, x)
    large = h.ge(size, h.const(2.0 ** (limit - 2), dtype))
    small = h.lt(size, h.const(2.0 ** (60 - limit), dtype))

    def power(at_large: float, at_small: float) -> V:
        """The scale of the operand, or what undoes its root."""
        usual = h.select(small, h.const(at_small, dtype), h.const(1.0, dtype))
        return h.select(large, h.const(at_large, dtype), usual)

    scale, back = power(2.0**-2, 2.0**60), power(2.0, 2.0**-30)
    x, y = h.mul(x, scale), h.mul(y, scale)
    longer = h.sqrt(h.mul(half, h.add(x, roots.hypot(h, x, y))))
    shorter = h.mul(h.div(y, longer), half)
    shorter = h.select(h.eq(longer, zero), zero, shorter)
    longer, shorter = h.mul(longer, back), h.mul(shorter, back)
    right = h.not_(h.lt(a, zero))  # the half plane, and NaN
    real, imag = h.select(right, longer, shorter), h.select(right, shorter, longer)
    tall = _infinite(h, b)
    return h.select(tall, inf, real), h.copysign(h.select(tall, inf, imag), b)


def _cosh_and_sinh(h: Handler[V], x: V) -> tuple[V, V, V]:
    """``(c, s, f)`` with ``cosh x = c f`` and ``sinh x = s f``, where neither factor overflows."""
    dtype = h.dtype(x)
    half, one = h.const(0.5, dtype), h.const(1.0, dtype)
    size = h.abs(x)
    large = h.gt(size, h.const(_EXP_LIMIT[dtype.bits], dtype))

    def root() -> V:
        return exponential.exp(h, h.mul(half, size))

    cosh = h.rarely(large, hyperbolic.cosh(h, x), lambda: h.mul(half, root()))
    sinh = h.rarely(large, hyperbolic.sinh(h, x), lambda: h.copysign(h.mul(half, root()), x))
    return cosh, sinh, h.rarely(large, one, root)


def _boundless(h: Handler[V], a: V, b: V) -> V:
    """Where the modulus is infinite and the direction unknown: the real part is then infinite."""
    return h.and_(_infinite(h, a), h.not_(_finite(h, b)))


def sinh(h: Handler[V], z: Pair[V]) -> Pair[V]:
    """``sinh a cos b + i cosh a sin b``."""
    a, b = z
    c, s, factor = _cosh_and_sinh(h, a)
    cos_b, sin_b = trigonometric.cos(h, b), trigonometric.sin(h, b)
    real = _product(h, _product(h, s, cos_b), factor)
    real = h.select(_boundless(h, a, b), a, real)
    return real, _product(h, _product(h, sin_b, c), factor)


def cosh(h: Handler[V], z: Pair[V]) -> Pair[V]:
    """``cosh a cos b + i sinh a sin b``."""
    a, b = z
    c, s, factor = _cosh_and_sinh(h, a)
    cos_b, sin_b = trigonometric.cos(h, b), trigonometric.sin(h, b)
    zero = h.const(0.0, h.dtype(s))
    # zero wins over inf and NaN on either side
    imag = h.select(h.eq(s, zero), _product(h, s, sin_b), _product(h, sin_b, s))
    real = h.select(_boundless(h, a, b), h.abs(a), h.mul(h.mul(cos_b, c), factor))
    return real, _product(h, imag, factor)


def sin(h: Handler[V], z: Pair[V]) -> Pair[V]:
    """``sin z = -i sinh(iz)``."""
    real, imag = sinh(h, (h.neg(z[1]), z[0]))
    return imag, h.neg(real)


def cos(h: Handler[V], z: Pair[V]) -> Pair[V]:
    """``cos z = cosh(iz)``."""
    return cosh(h, (h.neg(z[1]), z[0]))


def tanh(h: Handler[V], z: Pair[V]) -> Pair[V]:
    """Kahan's formula ("Branch cuts for complex elementary functions", 1987, procedure CTANH).

    With ``t = tan b``, ``s = sinh a``: ``tanh z = (s sqrt(1 + s^2) (1 + t^2) + i t) / (1 + s^2 (1 +
    t^2))``, and ``+-1 + 4i sin b cos b e^(-2|a|)`` where ``s^2`` has swamped the rest.
    """
    a, b = z
    dtype = h.dtype(a)
    zero, one = h.const(0.0, dtype), h.const(1.0, dtype)
    size = h.abs(a)
    far = h.gt(size, h.const(_TANH_LIMIT[dtype.bits], dtype))
    s = hyperbolic.sinh(h, h.select(far, one, a))
    t = trigonometric.tan(h, b)
    beta = h.add(one, h.mul(t, t))
    ss = h.mul(s, s)
    below = h.add(one, h.mul(beta, ss))
    real = h.div(h.mul(h.mul(beta, h.sqrt(h.add(one, ss))), s), below)
    imag = h.div(t, below)
    decay = exponential.exp(h, h.mul(h.const(-2.0, dtype), size))
    turn = h.mul(trigonometric.sin(h, b), trigonometric.cos(h, b))
    tail = _product(h, decay, h.mul(h.const(4.0, dtype), turn))
    imag = h.select(h.eq(b, zero), b, h.select(far, tail, imag))
    return h.select(far, h.copysign(one, a), real), imag


def tan(h: Handler[V], z: Pair[V]) -> Pair[V]:
    """``tan z = -i tanh(iz)``."""
    real, imag = tanh(h, (h.neg(z[1]), z[0]))
    return imag, h.neg(real)


def pow(h: Handler[V], x: Pair[V], y: Pair[V]) -> Pair[V]:
    """``exp(y log x)``; ``x**0 = 1``, ``0**y = 0`` for a positive real part of y, else NaN."""
    dtype: DType = h.dtype(x[0])
    zero, one, nan = (h.const(c, dtype) for c in (0.0, 1.0, float("nan")))
    p, q = log(h, x)
    real, imag = exp(h, (_difference(h, y[0], p, y[1], q), _sum(h, y[0], q, y[1], p)))
    base_zero = h.and_(h.eq(x[0], zero), h.eq(x[1], zero))
    at_zero = h.select(h.gt(y[0], zero), zero, nan)
    real, imag = h.select(base_zero, at_zero, real), h.select(base_zero, at_zero, imag)
    flat = h.and_(h.eq(y[0], zero), h.eq(y[1], zero))
    return h.select(flat, one, real), h.select(flat, zero, imag)


def _difference(h: Handler[V], a: V, b: V, c: V, d: V) -> V:
    """``ab - cd``; a zero of the exponent (a, c) wins over an infinite logarithm."""
    return h.sub(_product(h, a, b), _product(h, c, d))


def _sum(h: Handler[V], a: V, b: V, c: V, d: V) -> V:
    return h.add(_product(h, a, b), _product(h, c, d))
