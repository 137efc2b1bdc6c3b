"""Random programs for hypothesis: closed graphs over the op table, with arguments for them.

``programs()`` draws a :class:`Program`. Ops are those of ``OPS`` at that time: elementwise
ops, reductions, cumulative ops, views, dot and gather get operands from the program drawn so far;
any other op that has ``samples`` is applied to those. A failing example shrinks to few steps.

Values are compared by :func:`assert_same_bits`: NaN equals NaN (which one is unspecified), all
else to the bit, the sign of zero included.
"""

import inspect
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from tilegrad.ir.dtypes import as_dtype, bool_, complex128, float32, float64, int64
from tilegrad.ir.errors import TilegradError
from tilegrad.ir.graph import Graph, make_node
from tilegrad.ir.interpret import interpret_graph
from tilegrad.ir.ops import OPS
from tilegrad.ir.ops.leaves import constant, input_node, iota
from tilegrad.ir.ops.operands import convert
from tilegrad.ir.types import TensorType

DTYPES = (float64, float32, int64, bool_, complex128)
EXTENTS = (1, 2, 3, 4, 0)
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, 1e-310, 1e300, -1e300, 0.5)


@dataclass(frozen=True)
class Program:
    """A graph and arguments, one array an input."""

    graph: Graph
    arguments: tuple

    def run(self, graph=None):
        """The outputs by the interpreter, of ``graph`` or the program's own."""
        return interpret_graph(graph or self.graph, self.arguments)

    def __repr__(self):  # what hypothesis prints: the program's text
        from tilegrad.ir.text import text

        return f"{text(self.graph)}\narguments: {self.arguments}"

    def _repr_pretty_(self, printer, cycle):  # hypothesis would spell out every node instead
        printer.text(repr(self))


def assert_same_bits(expected, got):
    """Equal shape, dtype and bits; any NaN equals any other."""
    assert len(expected) == len(got)
    for k, (a, b) in enumerate(zip(expected, got, strict=True)):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), f"output {k}"
        a, b = np.ascontiguousarray(a).reshape(-1), np.ascontiguousarray(b).reshape(-1)
        if a.dtype.kind == "c":
            a, b = a.view(a.real.dtype), b.view(b.real.dtype)
        differ = a.view(f"V{a.itemsize}") != b.view(f"V{b.itemsize}")
        if a.dtype.kind == "f":
            differ &= ~(np.isnan(a) & np.isnan(b))
        assert not differ.any(), f"output {k}: {a[differ]} became {b[differ]}"


def sample_cases(op, rng, dtype):
    """The cases of ``op.samples``, always as (operands, params)."""
    cases = op.samples(rng, np.dtype(dtype))
    if type(cases) is tuple:
        return [(cases, {})]
    return [(tuple(operands), dict(params)) for operands, params in cases]


def random_array(rng, t, *, special=True, scale=2.0):
    """An array of a type; every fifth element is a special value if asked for."""
    if t.dtype.is_bool:
        return rng.integers(0, 2, t.shape) > 0
    if t.dtype.is_integer:
        return rng.integers(-5, 6, t.shape).astype(t.dtype.numpy)
    x = rng.standard_normal(t.shape) * scale
    if special:
        with np.errstate(all="ignore"):
            x = np.where(rng.random(t.shape) < 0.2, rng.choice(SPECIAL, t.shape), x)
    if t.dtype.is_complex:
        x = x + 1j * rng.standard_normal(t.shape)
    with np.errstate(all="ignore"):
        return np.asarray(x, t.dtype.numpy)


# ------------------------------------------------------------- steps: what one op may become


def _pick(draw, pool, accept=lambda t: True):
    """A drawn value of the program so far, or None if there is none such."""
    fitting = [v for v in reversed(pool) if accept(v.type)]  # the latest are the simplest choice
    return draw(st.sampled_from(fitting)) if fitting else None


def _elementwise(draw, op, pool):
    if op.samples is not None:
        rng = np.random.default_rng(0)
        dtype = draw(st.sampled_from(DTYPES))
        cases = _cases_or_none(op, rng, dtype)
        if not cases:
            return None
        operands, params = draw(st.sampled_from(cases))
        mixed = [as_dtype(np.asarray(x).dtype) for x in operands]
    else:
        params = {"dtype": draw(st.sampled_from(DTYPES))} if op.name == "convert" else {}
        arity = sum(
            p.kind is p.POSITIONAL_OR_KEYWORD
            for p in inspect.signature(op.scalar).parameters.values()
        )
        mixed = [None] * (arity - 1)  # the first one is the handler
    first = _pick(draw, pool, lambda t: mixed[-1] in (None, t.dtype))
    if first is None:
        return None
    chosen = []
    for dtype in mixed:
        wanted = first.dtype if dtype is None else dtype
        x = _pick(draw, pool, lambda t, d=wanted: t.shape == first.shape and t.dtype is d)
        chosen.append(convert(first, wanted) if x is None else x)
    return chosen, params


def _cases_or_none(op, rng, dtype):
    try:
        return sample_cases(op, rng, dtype.numpy)
    except (TypeError, ValueError, OverflowError):
        return None  # not defined for this dtype


def _reduction(draw, op, pool):
    x = _pick(draw, pool, lambda t: t.ndim > 0)
    if x is None:
        return None
    _, params = sample_cases(op, np.random.default_rng(0), "f8")[0]
    if "axis" in params:
        return [x], {**params, "axis": draw(st.integers(0, x.ndim - 1))}
    axes = draw(st.sets(st.integers(0, x.ndim - 1), min_size=1))
    return [x], {"axes": tuple(sorted(axes))}


def _cumulative(draw, op, pool):
    x = _pick(draw, pool, lambda t: t.ndim > 0)
    if x is None:
        return None
    params = {"axis": draw(st.integers(0, x.ndim - 1)), "reverse": draw(st.booleans())}
    return [x] * len(sample_cases(op, np.random.default_rng(0), "f8")[0][0]), params


def _reshape(draw, op, pool):
    x = _pick(draw, pool)
    flat = (x.size,)
    shapes = [flat, (1, *x.shape), (*x.shape, 1), x.shape, x.shape[::-1]]
    shapes += [(n, x.size // n) for n in (2, 3) if x.size and x.size % n == 0]
    return [x], {"shape": draw(st.sampled_from([s for s in shapes if len(s) <= 3] or [flat]))}


def _transpose(draw, op, pool):
    x = _pick(draw, pool)
    return [x], {"axes": tuple(draw(st.permutations(range(x.ndim))))}


def _broadcast(draw, op, pool):
    x = _pick(draw, pool, lambda t: t.ndim < 3 and t.size <= 64)
    if x is None:
        return None
    ndim = draw(st.integers(x.ndim, 3))
    axes = tuple(sorted(draw(st.permutations(range(ndim)))[: x.ndim]))
    shape = [draw(st.sampled_from(EXTENTS[:3])) for _ in range(ndim)]
    for d, n in zip(axes, x.shape, strict=True):
        shape[d] = n
    return [x], {"axes": axes, "shape": tuple(shape)}


def _slice(draw, op, pool):
    x = _pick(draw, pool, lambda t: t.ndim > 0)
    if x is None:
        return None
    rows = []
    for n in x.shape:
        step = draw(st.sampled_from((1, 1, 2, -1, -2)))
        span = range(n)[::step] if n else range(0)
        skip = draw(st.integers(0, len(span)))
        span = span[skip : draw(st.integers(skip, len(span)))]
        rows.append((span.start if span else 0, span.step if len(span) > 1 else 1, len(span)))
    start, step, shape = (tuple(column) for column in zip(*rows, strict=True))
    return [x], {"start": start, "step": step, "shape": shape}


def _pad(draw, op, pool):
    x = _pick(draw, pool, lambda t: t.ndim > 0 and t.size <= 64)
    if x is None:
        return None
    value = _pick(draw, pool, lambda t: t.shape == () and t.dtype is x.dtype)
    if value is None:
        value = constant(draw(st.sampled_from((0, 1))), x.dtype)
    amounts = {
        name: tuple(draw(st.integers(0, 1)) for _ in x.shape)
        for name in ("low", "high", "interior")
    }
    return [x, value], amounts


def _concat(draw, op, pool):
    x = _pick(draw, pool, lambda t: t.ndim > 0 and t.size <= 64)
    if x is None:
        return None
    axis = draw(st.integers(0, x.ndim - 1))

    def fits(t):
        rest = [s[:axis] + s[axis + 1 :] for s in (t.shape, x.shape)]
        return t.ndim == x.ndim and rest[0] == rest[1] and t.dtype is x.dtype and t.size <= 64

    return [x, _pick(draw, pool, fits)], {"axis": axis}


def _dot(draw, op, pool):
    x = _pick(draw, pool, lambda t: t.ndim > 0)
    if x is None:
        return None
    i = draw(st.integers(0, x.ndim - 1))

    def fits(t):
        return x.shape[i] in t.shape and t.dtype is x.dtype and t.ndim + x.ndim <= 5

    y = _pick(draw, pool, fits)
    if y is None:
        return None
    pair = ((i,), (y.shape.index(x.shape[i]),))
    names = ("batch", "contract") if draw(st.booleans()) else ("contract", "batch")
    return [x, y], {names[0]: pair, names[1]: ((), ())}


def _gather(draw, op, pool):
    x = _pick(draw, pool, lambda t: t.ndim > 0 and t.size > 0)
    if x is None:
        return None
    index = _pick(draw, pool, lambda t: t.dtype is int64 and t.ndim < 3)
    index = iota((3,)) if index is None else index
    mode = draw(st.sampled_from(("clip", "wrap")))
    axis = draw(st.integers(0, x.ndim - 1))
    return [x, index], {"axes": (axis,), "mode": mode, "fill_value": None, "checked": False}


def _from_samples(draw, op, pool):
    """Any other op: on operands of the program where one fits a sample's type, else the sample."""
    if op.samples is None:
        return None
    cases = _cases_or_none(op, np.random.default_rng(draw(st.integers(0, 9))), float64)
    if not cases:
        return None
    operands, params = draw(st.sampled_from(cases))
    chosen = []
    for array in map(np.asarray, operands):
        data = constant(array)
        # Integers may be indices: those of the sample are in range.
        fitting = [v for v in pool if v.type == data.type and not v.dtype.is_integer]
        chosen.append(draw(st.sampled_from([data, *fitting])))
    return chosen, params


_BY_KIND = {"elementwise": _elementwise, "reduction": _reduction, "cumulative": _cumulative}
_BY_NAME = {
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "slice": _slice,
    "pad": _pad,
    "concat": _concat,
    "dot": _dot,
    "gather": _gather,
}


def drawable_ops():
    """Names of the ops that a program may contain; views and arithmetic come up more often."""
    names = [
        n
        for n, op in OPS.items()
        if op.kind != "leaf" and op.reference is not None and "samples" not in op.why_not
    ]
    often = [
        n for n in names if OPS[n].kind == "view" or n in ("add", "mul", "sub", "where", "convert")
    ]
    return names + often


def _may_raise(op, operands, params):
    """Refused at run time for some operands: integer division, factors of singular matrices."""
    if params.get("check", False):
        return True
    return op.check is not None and any(x.dtype.is_integer for x in operands)


def _step(draw, names, pool, total, tries=4):
    """One more node, of an op that takes what there is; None if several tries find none such."""
    for _ in range(tries):
        op = OPS[draw(st.sampled_from(names))]
        step = _BY_NAME.get(op.name) or _BY_KIND.get(op.kind) or _from_samples
        found = step(draw, op, pool)
        if found is None or (total and _may_raise(op, *found)):
            continue
        try:
            return make_node(op, found[0], **found[1])
        except (TilegradError, IndexError):
            continue  # the type rule refuses these operands
    return None


@st.composite
def programs(draw, *, steps=10, ops=None, dtypes=DTYPES, special=True, total=True):
    """Draw a :class:`Program`.

    Parameters
    ----------
    steps : int
        At most so many ops.
    ops : sequence of str, optional
        Which ops; default :func:`drawable_ops`.
    dtypes : sequence of DType
        Of the inputs.
    special : bool
        Whether arguments contain infinities, NaN, subnormals and zeros of both signs.
    total : bool
        Leave out what may raise: integer division by zero, factors of singular matrices.
    """
    names = list(ops or drawable_ops())
    pool = []
    inputs = []
    for i in range(draw(st.integers(1, 3))):
        shape = tuple(draw(st.lists(st.sampled_from(EXTENTS), max_size=3)))
        t = TensorType(shape, draw(st.sampled_from(dtypes)))
        inputs.append(input_node(t, f"x{i}"))
        pool.append(inputs[-1].out)
    for number in (0.0, -0.0, 1.0, 2, True):
        if draw(st.booleans()):
            pool.append(constant(number, as_dtype(type(number))))
    unused = dict.fromkeys(pool[len(inputs) :])
    for _ in range(draw(st.integers(1, steps))):
        node = _step(draw, names, pool, total)
        if node is None:
            continue
        for x in node.inputs:
            unused.pop(x, None)
        new = [v for v in node.outputs if v.size <= 512]
        pool.extend(new)
        unused.update(dict.fromkeys(new))
    # What nothing uses is a result, so no step was drawn in vain.
    outputs = (draw(st.sampled_from(pool)), *unused, pool[-1])
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    graph = Graph(tuple(inputs), outputs)
    return Program(graph, tuple(random_array(rng, n.types[0], special=special) for n in inputs))
