"""Where the recursions of Taylor mode (:mod:`.jet`) end: linear ops, products, quotients.

A rule gives order ``k >= 1`` of a result::

    rule(node, operands, result, k) -> Value | None

``node`` is the op on its operands at order 0, ``operands[i][j]`` order ``j`` of operand ``i`` (zero
where the list ends) and ``result`` the orders below ``k``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb

from ..ir.graph import Node, Op, Value, make
from ..ir.ops import OPS
from ..ir.ops.arithmetic import DIV, MUL, NEG, mul, neg
from ..ir.ops.checkpoint import CHECKPOINT
from ..ir.ops.dot import DOT
from ..ir.ops.powers import INTEGER_POWER
from ..ir.ops.scaling import SCALE, UNSCALE, scale, unscale
from ..ir.ops.special import LOGISTIC, logistic
from ..ir.rewrite import substitute

__all__ = ["EQUAL", "PRODUCTS", "SERIES", "TANGENTS"]

Orders = Sequence["Value | None"]
Rule = Callable[[Node, Sequence[Orders], Orders, int], "Value | None"]
Term = Callable[[Node, Value, Value, int, int], Value]


def _at(orders: Orders, j: int) -> Value | None:
    return orders[j] if j < len(orders) else None


def _total(a: Value | None, b: Value | None) -> Value | None:
    return b if a is None else a if b is None else a + b


def _times(x: Value, n: int) -> Value:
    return x if n == 1 else x * n


def _linear(node: Node, operands: Sequence[Orders], result: Orders, k: int) -> Value | None:
    """A linear op's jvp rule does not look at the operands that move: it serves every order."""
    dots = [_at(x, k) for x in operands]
    if all(t is None for t in dots):
        return None
    assert node.op.jvp is not None
    found: Value | None = node.op.jvp(node, dots)
    return found


def _product(term: Term) -> Rule:
    """Leibniz: ``(x y)^(k) = sum_j C(k, j) x^(j) y^(k-j)``."""

    def rule(node: Node, operands: Sequence[Orders], result: Orders, k: int) -> Value | None:
        x, y = operands
        square = node.inputs[0] == node.inputs[1] and node.op is MUL
        total: Value | None = None
        for j in range(k // 2 + 1 if square else k + 1):
            a, b = _at(x, j), _at(y, k - j)
            if a is None or b is None:
                continue
            weight = comb(k, j) * (2 if square and 2 * j != k else 1)
            total = _total(total, _times(term(node, a, b, j, k - j), weight))
        return total

    return rule


def _mul_term(node: Node, a: Value, b: Value, i: int, j: int) -> Value:
    """Zeros of a derivative are strong, beside another derivative on both sides."""
    if i == 0:
        return scale(b, a)
    return scale(a, b, symmetric=j > 0)


def _scale_term(node: Node, a: Value, b: Value, i: int, j: int) -> Value:
    return scale(a, b, symmetric=j > 0 or node.param("symmetric"))


def _dot_term(node: Node, a: Value, b: Value, i: int, j: int) -> Value:
    return make(DOT, (a, b), **dict(node.params))


def _quotient(node: Node, operands: Sequence[Orders], result: Orders, k: int) -> Value | None:
    """From Leibniz for ``x = z y``: ``z^(k) = (x^(k) - sum_(j>0) C(k, j) y^(j) z^(k-j)) / y``."""
    x, y = operands
    total = _at(x, k)
    for j in range(1, k + 1):
        a, b = _at(y, j), _at(result, k - j)
        if a is None or b is None:
            continue
        term = _times(scale(a, b, symmetric=j < k), comb(k, j))
        total = neg(term) if total is None else total - term
    return None if total is None else unscale(total, node.inputs[1])


_LINEAR = (
    *("add", "alias", "broadcast", "checkpoint_name", "complex", "concat", "conj", "convert"),
    *("cumsum", "dynamic_slice", "dynamic_update_slice", "gather", "imag", "ldexp", "neg", "pad"),
    *("real", "reshape", "slice", "sub", "sum", "transpose", "where"),
)

# Ops whose series are written out.
SERIES: dict[Op, Rule] = {
    **{OPS[name]: _linear for name in _LINEAR},
    MUL: _product(_mul_term),
    SCALE: _product(_scale_term),
    DOT: _product(_dot_term),
    DIV: _quotient,
    UNSCALE: _quotient,
}

# Zero if either operand is.
PRODUCTS = frozenset({MUL, SCALE, DOT})


def _by_squaring(node: Node) -> list[Value | None]:
    """``x**n`` as products: a tangent would bring ``x**(n - 1)``, whose tangent ``x**(n - 2)``."""
    (x,), n = node.inputs, node.param("n")
    if n < 2:
        return [x if n else None]
    result: Value | None = None
    while True:
        if n & 1:
            result = x if result is None else mul(result, x)
        n >>= 1
        if not n:
            assert result is not None
            return [result]
        x = mul(x, x)


def _inlined(node: Node) -> Sequence[Value | None]:
    """The body in the open: what it saves is a matter of reverse mode."""
    body = node.param("body")
    inputs = [x.out for x in body.inputs]
    return substitute(body.outputs, dict(zip(inputs, node.inputs, strict=True)))


# Ops that are taken for a program of other ops with the same results; None: a constant.
EQUAL: dict[Op, Callable[[Node], Sequence[Value | None]]] = {
    INTEGER_POWER: _by_squaring,
    CHECKPOINT: _inlined,
}


def _logistic_tangent(node: Node, tangents: Sequence[Value | None]) -> Value | None:
    """The op's own rule, but that -(-x) is x: two functions are then each other's tangents."""
    (x,), (t,) = node.inputs, tangents
    mirrored = x.node.inputs[0] if x.node.op is NEG else neg(x)
    return None if t is None else scale(t, node.out * logistic(mirrored))


# Tangents that close a recursion which the op's jvp rule leaves open.
TANGENTS: dict[Op, Callable[..., Value | None]] = {LOGISTIC: _logistic_tangent}
