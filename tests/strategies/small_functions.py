"""What tests of transforms are written with: ops by name, and short ways to run a web of values.

Functions under test are Python functions from :class:`Value` to :class:`Value`. Each transform here
marks its arguments with fresh aliases, as the engine does, so they nest.
"""

import numpy as np

from tilegrad.autodiff.batching import batch
from tilegrad.autodiff.forward import jvp
from tilegrad.autodiff.reverse import vjp
from tilegrad.ir.dtypes import as_dtype
from tilegrad.ir.graph import Value, make
from tilegrad.ir.interpret import interpret
from tilegrad.ir.ops import OPS
from tilegrad.ir.ops.fill import filled, zeros_of
from tilegrad.ir.ops.leaves import alias, constant, input_node
from tilegrad.ir.ops.shape import broadcast
from tilegrad.ir.types import TensorType


def op(name, *operands, **params):
    """A node of the op of the table called ``name``."""
    return make(OPS[name], operands, **params)


def sin(x):
    return op("sin", x)


def cos(x):
    return op("cos", x)


def exp(x):
    return op("exp", x)


def sum_(x, axes=None):
    axes = tuple(range(x.ndim)) if axes is None else axes
    return op("sum", x, axes=axes) if axes else x


def value_of(*outputs, **env):
    """Values by the interpreter, one array or a list of them."""
    arrays = interpret(outputs, env or None)
    return arrays[0] if len(arrays) == 1 else arrays


def const(x):
    return constant(np.asarray(x))


def ones_like(x):
    return filled(x.shape, 1, x.dtype)


def placeholder(shape=(), dtype="float64", name="x"):
    return input_node(TensorType(tuple(shape), as_dtype(dtype)), name)


def derivative(f, x, t):
    """``(f(x), f'(x) t)`` by forward mode; a structural zero becomes zeros."""
    marked = alias(x)
    y = f(marked)
    (y_dot,) = jvp([y], {marked: t})
    return y, zeros_of(y.type) if y_dot is None else y_dot


def gradient(f, *xs):
    """Gradients of a scalar function by reverse mode."""
    marked = [alias(x) for x in xs]
    y = f(*marked)
    found = vjp([y], marked)([ones_like(y)])
    bars = [zeros_of(x.type) if g is None else g for x, g in zip(xs, found, strict=True)]
    return bars[0] if len(bars) == 1 else bars


def vmapped(f, *xs, axes=None):
    """``f`` along the first axis (or ``axes``) of each argument; the result's batch axis is 0."""
    axes = (0,) * len(xs) if axes is None else axes
    size = next(x.shape[a] for x, a in zip(xs, axes, strict=True) if a is not None)
    marked, mapped = [], {}
    for x, axis in zip(xs, axes, strict=True):
        if axis is None:
            marked.append(x)
            continue
        one = placeholder(x.shape[:axis] + x.shape[axis + 1 :], x.dtype).out
        marked.append(one)
        mapped[one] = (x, axis)
    ((y, at),) = batch([f(*marked)], mapped, size)
    if at is None:
        return broadcast(y, (size, *y.shape), tuple(range(1, y.ndim + 1)))
    return op("transpose", y, axes=(at, *(d for d in range(y.ndim) if d != at)))


def is_value(x):
    return isinstance(x, Value)
