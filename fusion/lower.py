"""From a graph to a schedule: realize, record, group into nests, normalize loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from ..ir.graph import Graph, Literal, Node, Op, Value, make
from ..ir.ops import OPS
from ..ir.ops.operands import convert
from .contraction import matmul_step
from .draft import Draft
from .index import linearize
from .layout import choose_orders, strides_of
from .loops import Buffer, HostCall, Instruction, Nest, Reduction, Schedule, Step, Store
from .own_loops import place_update, scan_nest, scatter_nest, window_nest
from .realize import is_loop_dot, is_product, is_small_update, native_scatter, realize, weight
from .record import Recorder, is_inlined_leaf
from .split import split_long
from .tiles import RawNest, form_tiles

__all__ = ["lower"]

# Most instructions of a nest with several results: bounds registers and compile time.
LONGEST_TAPE = 256
# A value shared by several nests is recomputed in each unless its work is at least this.
SHARED_WORK = 12


def lower(graph: Graph) -> Schedule:
    """The schedule of a closed, optimized graph.

    A first pass realizes what must be; values that turn out to be computed in several nests are
    then realized too, when recomputing costs more than writing and reading them.
    """
    extra: dict[Value, str] = {}
    for last in (False, False, True):
        lowering = Lowering(graph, extra)
        schedule = lowering.run()
        shared = {} if last else lowering.recomputed()
        if not shared:
            break
        extra.update(shared)
    return schedule


_POINTWISE = ("gather", "dynamic_slice", "dynamic_update_slice", "iota")


class Lowering:
    def __init__(self, graph: Graph, extra: dict[Value, str]) -> None:
        self.graph = graph
        self.nodes = graph.nodes()
        self.realization = realize(graph, self.nodes, extra)
        self.orders = choose_orders(graph, self.nodes, self.realization)
        self.buffers: list[Buffer] = []
        self.numbers: dict[Value, int] = {}
        self.constants: list[Literal] = []
        self.errors: list[tuple[type[Exception], str]] = []
        self.drafts: list[Draft | RawNest | Step] = []
        self.home: dict[Value, int] = {}  # position of the draft that computes a value
        self.outputs = set(graph.outputs)
        self.users: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for v in dict.fromkeys(node.inputs):
                self.users.setdefault(v, []).append(node)
        self.products: dict[Value, Value] = {}  # contractions as products to be summed
        self.recorded: list[set[Value]] = []  # values computed by each nest

    # -- buffers --------------------------------------------------------------------------------

    def buffer(self, v: Value) -> int:
        found = self.numbers.get(v)
        if found is None:
            found = self.numbers[v] = len(self.buffers)
            kind, slot = "temporary", -1
            if v.node.op.name == "constant":
                kind, slot = "constant", len(self.constants)
                self.constants.append(v.node.param("literal"))
            self.buffers.append(Buffer(found, kind, v.dtype, v.shape, slot))
        return found

    def strides(self, v: Value) -> tuple[int, ...]:
        """Element strides of a value in its buffer."""
        return strides_of(v, self.orders.get(v))

    def report(self, kind: type[Exception], message: str) -> int:
        entry = (kind, message)
        if entry not in self.errors:
            self.errors.append(entry)
        return self.errors.index(entry)

    # -- the whole ------------------------------------------------------------------------------

    def run(self) -> Schedule:
        for slot, node in enumerate(self.graph.inputs):
            number = self.buffer(node.out)
            self.buffers[number] = replace(self.buffers[number], kind="input", slot=slot)
        for node in self.nodes:
            for v in node.outputs:
                if v in self.realization:
                    self.buffer(v)
        for node in self.nodes:
            self.place(node)
        raw = [self.finish(d) if isinstance(d, Draft) else d for d in self.drafts]
        outputs = self._outputs()
        shared = {b.number for b in self.buffers if b.kind != "temporary"}
        steps = split_long(form_tiles(raw, self.buffers, shared), self.buffers)
        reasons = {v: r for v, r in self.realization.reasons.items() if v in self.numbers}
        return Schedule(
            tuple(self.buffers),
            tuple(steps),
            outputs,
            tuple(self.constants),
            tuple(self.errors),
            reasons,
            len(self.graph.inputs),
            dict(self.numbers),
        )

    def _outputs(self) -> tuple[int, ...]:
        numbers = []
        for v in self.graph.outputs:
            number = self.numbers[v]
            numbers.append(number)
            if self.buffers[number].kind == "temporary":
                self.buffers[number] = replace(self.buffers[number], kind="output")
        return tuple(numbers)

    # -- placing values into drafts -------------------------------------------------------------

    def place(self, node: Node) -> None:
        name, kind = node.op.name, node.op.kind
        if not any(v in self.realization for v in node.outputs) or name in ("constant", "input"):
            return
        if not any(v.size for v in node.outputs) and name != "scatter":
            return
        product = name == "dot" and is_product(node)
        if name == "dynamic_update_slice" and is_small_update(node):
            place_update(node, window_nest, self)
        elif kind in ("elementwise", "view") or name in _POINTWISE or product:
            self.place_loop(node.out, node.out.shape, ())
        elif kind == "reduction":
            self.place_loop(node.out, node.inputs[0].shape, _axes(node))
        elif name == "dot" and is_loop_dot(node):
            self.place_dot(node)
        elif name == "dot":
            for step in matmul_step(node, self):
                self.add_step(step, node)
        elif kind == "cumulative":
            self.add_step(scan_nest(node, self), node)
        elif name == "scatter" and native_scatter(node):
            place_update(node, scatter_nest, self)
        else:
            self.add_step(
                HostCall(
                    node,
                    tuple(self.buffer(v) for v in node.inputs),
                    tuple(self.buffer(v) for v in node.outputs),
                    f"{name} is a library's work",
                ),
                node,
            )

    def add_step(self, step: RawNest | Step, node: Node) -> None:
        self.drafts.append(step)
        for v in node.outputs:
            self.home[v] = len(self.drafts) - 1

    def realize_now(self, v: Value, reason: str) -> int:
        """Give ``v`` (a value made during lowering, or one not realized so far) a buffer."""
        if v not in self.realization or v not in self.home:
            if v not in self.realization:
                self.realization.reasons[v] = reason
            number = self.buffer(v)
            if v.node.op.name not in ("constant", "input"):
                self.place_loop(v, v.shape, ())
            return number
        return self.buffer(v)

    def place_dot(self, node: Node) -> None:
        """A contraction as the sum of products: the product over all axes, reduced."""
        product = _broadcast_product(node)
        axes = tuple(range(node.types[0].ndim, product.ndim))
        self.products[node.out] = product
        self.place_loop(node.out, product.shape, axes)

    def place_loop(self, root: Value, domain: tuple[int, ...], reduced: tuple[int, ...]) -> None:
        """Add a root to the last nest that may compute it, else to a new one."""
        if root.size == 0:
            return
        draft = Draft(domain, reduced, self.orders.get(root) if not reduced else None)
        reads, length = self.reads(root)
        needs = max((self.home.get(v, -1) for v in reads), default=-1)
        chosen = self._nest_for(draft, reads, length, needs)
        if chosen < 0:
            self.drafts.append(draft)
            chosen = len(self.drafts) - 1
        target = self.drafts[chosen]
        assert isinstance(target, Draft)
        target.roots.append(root)
        target.length += length
        if reduced:
            target.reduced = reduced
            target.reducing.add(root)
        self.home[root] = chosen

    def reads(self, root: Value) -> tuple[dict[Value, bool], int]:
        """What a root reads from memory, and how many values it computes.

        The flag of a read tells whether it is only read at the element that is being computed.
        """
        body = self._body(root)
        found: dict[Value, bool] = {}
        seen: set[tuple[Value, bool]] = set()
        stack = [(body, True)]
        while stack:
            v, here = stack.pop()
            if (v, here) in seen:
                continue
            seen.add((v, here))
            if v is not root and v in self.numbers and not is_inlined_leaf(v.node):
                found[v] = found.get(v, True) and here
                continue
            inside = here and v.node.op.kind == "elementwise"
            stack.extend((x, inside) for x in v.node.inputs)
        return found, len(seen)

    def _nest_for(self, draft: Draft, reads: dict[Value, bool], length: int, needs: int) -> int:
        """Position of a nest with the same loops whose results are all that a root waits for."""
        earliest = max(needs, 0, len(self.drafts) - 32)
        for position in range(len(self.drafts) - 1, earliest - 1, -1):
            target = self.drafts[position]
            if not isinstance(target, Draft) or target.length + length > LONGEST_TAPE:
                continue
            if target.domain != draft.domain or target.order != draft.order:
                continue
            if target.reduced != draft.reduced and not _may_mix(target, draft):
                continue
            own = [v for v in reads if self.home.get(v) == position]
            if all(reads[v] and not target.reduces(v) for v in own):
                return position
        return -1

    # -- recording ------------------------------------------------------------------------------

    def recorder(self, inline: set[Value] | None = None) -> Recorder:
        """A recorder over the buffers; values in ``inline`` are computed, not loaded."""
        return Recorder(self.numbers, inline or set(), self.report, self.strides)

    def record(self, draft: Draft, roots: Sequence[Value]) -> Recorder:
        """Record ``roots`` over the draft's loops; fills ``recorder.results``."""
        recorder = self.recorder(set(roots))
        at = draft.indices()
        if 0 in draft.domain:  # reductions of nothing: the loop that reads never runs
            recorder.results = [recorder.const(0, self._body(v).dtype) for v in roots]
        else:
            recorder.results = [recorder.value(self._body(v), at) for v in roots]
        return recorder

    def _body(self, root: Value) -> Value:
        """What is evaluated in the innermost loop for a root."""
        if root in self.products:
            return self.products[root]
        if root.node.op.kind == "reduction":
            return root.node.inputs[0]
        return root

    @staticmethod
    def _adds(root: Value) -> Op:
        """The reduction that adds up the products of a contraction."""
        return OPS["any" if root.dtype.is_bool else "sum"]

    def finish(self, draft: Draft) -> RawNest:
        """The nest of a draft."""
        roots = draft.roots
        recorder = self.record(draft, roots)
        stores, reductions = [], []
        outer = draft.outer_indices()
        for root, number in zip(roots, recorder.results, strict=True):
            if draft.reduces(root):
                record = root.node.op if root.node.op.kind == "reduction" else self._adds(root)
                source = recorder.tape[number].dtype
                wide = getattr(record, "accumulator", None)
                reductions.append(
                    Reduction(record.name, number, wide(source) if wide else source, root.dtype)
                )
                result = recorder.emit(Instruction("reduced", root.dtype, low=len(reductions) - 1))
                index = linearize(outer, self.strides(root))
                stores.append(Store(self.buffer(root), index, result))
            else:
                index = linearize(draft.indices(), self.strides(root))
                stores.append(Store(self.buffer(root), index, number))
        extents = tuple(draft.domain[d] for d in draft.order)
        nest = Nest(extents, tuple(recorder.tape), tuple(stores), tuple(reductions))
        self.recorded.append(recorder.computed())
        return RawNest(nest, len(draft.reduced))

    # -- sharing --------------------------------------------------------------------------------

    def recomputed(self) -> dict[Value, str]:
        """Inlined values that several nests compute and whose work is worth a buffer."""
        times: dict[Value, int] = {}
        for values in self.recorded:
            for v in values:
                if v not in self.realization:
                    times[v] = times.get(v, 0) + 1
        work: dict[Node, int] = {}
        found: dict[Value, str] = {}
        for node in self.nodes:
            v = node.out
            inputs = [x for x in node.inputs if x not in self.realization and x not in found]
            work[node] = min(weight(node) + sum(work.get(x.node, 0) for x in inputs), 10_000)
            costly = work[node] >= SHARED_WORK and v.node.op.kind != "view" and v.size > 1
            if costly and times.get(v, 0) > 1:
                found[v] = f"computed in {times[v]} nests"
        return found


# Elements of a row and rows from which on points may be computed along with a reduction of them:
# the rows are then its vectors, and threads share rows.
_LONG_ROW, _MANY_ROWS = 64, 16


def _may_mix(target: Draft, new: Draft) -> bool:
    """Whether points and a reduction over the same elements may share a nest."""
    reduced = target.reduced or new.reduced
    if target.reduced and new.reduced:
        return False
    inner = prod(target.domain[d] for d in reduced)
    outer = prod(target.domain) // max(inner, 1)
    trailing = target.order == tuple(range(len(target.domain)))
    return trailing and inner >= _LONG_ROW and (outer == 1 or outer >= _MANY_ROWS)


def _axes(node: Node) -> tuple[int, ...]:
    params = dict(node.params)
    return params["axes"] if "axes" in params else (params["axis"],)


def _broadcast_product(node: Node) -> Value:
    """``x * y`` over (batch, free x, free y, contracted) axes of a contraction."""
    accumulator = OPS["sum"].accumulator
    assert accumulator is not None
    wide = accumulator(node.types[0].dtype)
    x, y = (convert(v, wide) for v in node.inputs)
    contract, batch = node.param("contract"), node.param("batch")
    free_x = tuple(d for d in range(x.ndim) if d not in contract[0] and d not in batch[0])
    free_y = tuple(d for d in range(y.ndim) if d not in contract[1] and d not in batch[1])
    nb, nx, ny, nc = len(batch[0]), len(free_x), len(free_y), len(contract[0])
    shape = (*node.types[0].shape, *(x.shape[d] for d in contract[0]))

    def spread(v: Value, axes: tuple[int, ...], places: tuple[int, ...]) -> Value:
        moved = make(OPS["transpose"], (v,), axes=axes) if axes != tuple(range(v.ndim)) else v
        if v.shape == shape and places == tuple(range(len(shape))):
            return moved
        return make(OPS["broadcast"], (moved,), shape=shape, axes=places)

    lead = tuple(range(nb))
    tail = tuple(range(nb + nx + ny, nb + nx + ny + nc))
    left = spread(x, (*batch[0], *free_x, *contract[0]), (*lead, *range(nb, nb + nx), *tail))
    right = spread(
        y, (*batch[1], *free_y, *contract[1]), (*lead, *range(nb + nx, nb + nx + ny), *tail)
    )
    return make(OPS["and" if x.dtype.is_bool else "mul"], (left, right))
