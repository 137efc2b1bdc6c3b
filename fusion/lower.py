"""From a graph to a schedule: realize, record, group into nests, normalize loops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from ..ir.collector import no_collection
from ..ir.graph import Graph, Literal, Node, Op, Value, make
from ..ir.ops import OPS
from ..ir.ops.operands import convert
from .contraction import matmul_step
from .donation import Donation
from .draft import Draft
from .index import linearize
from .layout import choose_orders, strides_of
from .loops import Buffer, HostCall, Instruction, Nest, Reduction, Schedule, Step, Store
from .order import Waits, latest, order_of
from .own_loops import place_update, scan_nest, scatter_nest, window_nest
from .realize import (
    Facts,
    is_loop_dot,
    is_product,
    is_small_update,
    native_scatter,
    realize,
    weight,
)
from .record import Recorder, is_inlined_leaf
from .regions import Inside, place_region
from .routines import is_routine, routine_step
from .split import split_long
from .tape_rows import is_tape, place_rows
from .tiles import RawNest, form_tiles

__all__ = ["lower"]

# Most instructions of a nest with several results: bounds registers and compile time.
LONGEST_TAPE = 256
# A value shared by several nests is recomputed in each unless its work is at least this.
SHARED_WORK = 12


@no_collection()
def lower(graph: Graph, donated: Collection[int] = (), within: bool = False) -> Schedule:
    """The schedule of a closed, optimized graph.

    A first pass realizes what must be; values that turn out to be computed in several nests are
    then realized too, when recomputing costs more than writing and reading them.

    ``donated`` are numbers of outputs that are updates of inputs and may overwrite them. A graph
    ``within`` a region calls library routines by address where it can.
    """
    ordered = order_of(graph, lambda g, nodes: realize(g, nodes, {}).reasons)
    donation = Donation(ordered.graph, ordered.nodes, donated)
    extra: dict[Value, str] = dict(donation.early)
    facts = Facts(ordered.graph, donation.nodes)
    inside: Inside = {}
    for last in (False, False, True):
        lowering = Lowering(ordered.graph, donation.nodes, extra, ordered.waits, facts)
        lowering.inside, lowering.overwriting = inside, donation.updates
        lowering.within = within
        lowering.place_all()
        shared = {} if last else lowering.recomputed()
        if not shared:
            break
        extra.update(shared)
    return lowering.schedule()


@dataclass(slots=True)
class Reads:
    """How a root is computed: nodes read from memory at the element that is being computed
    (``near``) and at others (``far``), nodes computed at that element and at others."""

    near: set[Node]
    far: set[Node]
    inside: set[Node]
    away: set[Node]

    @property
    def length(self) -> int:
        return len(self.near) + len(self.far) + len(self.inside) + len(self.away)


_POINTWISE = ("gather", "dynamic_slice", "dynamic_update_slice", "iota")


class Lowering:
    """One round: the realized values of a graph in drafts of nests, recorded when asked for."""

    def __init__(
        self,
        graph: Graph,
        nodes: Sequence[Node],
        extra: dict[Value, str],
        waits: Waits,
        facts: Facts,
    ) -> None:
        self.graph = graph
        self.nodes = nodes
        self.waits = waits
        self.sources = facts.sources
        self.realization = realize(graph, nodes, extra, facts)
        self.orders = choose_orders(graph, self.nodes, self.realization)
        self.buffers: list[Buffer] = []
        self.numbers: dict[Value, int] = {}
        self.stored: set[Node] = set()  # nodes of values that have numbers and are loaded
        self.constants: list[Literal] = []
        self.errors: list[tuple[Callable[[str], Exception], str]] = []
        self.drafts: list[Draft | RawNest | Step] = []
        self.home: dict[Node, int] = {}  # position of the draft that computes a node
        self.outputs = set(graph.outputs)
        self.products: dict[Node, Value] = {}  # contractions as products to be summed
        self.recorded: list[set[Node]] = []  # nodes computed by each nest that is no draft
        self._strides: dict[Value, tuple[int, ...]] = {}
        self.inside: Inside = {}
        self.overwriting: set[Node] = set()  # updates that may write into inputs
        self.within = False  # a region

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
            if not is_inlined_leaf(v.node):
                self.stored.add(v.node)
        return found

    def strides(self, v: Value) -> tuple[int, ...]:
        """Element strides of a value in its buffer."""
        found = self._strides.get(v)
        if found is None:
            found = self._strides[v] = strides_of(v, self.orders.get(v))
        return found

    @cached_property
    def users(self) -> dict[Value, list[Node]]:
        """The nodes that read each value."""
        found: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for v in dict.fromkeys(node.inputs):
                found.setdefault(v, []).append(node)
        return found

    def report(self, kind: Callable[[str], Exception], message: str) -> int:
        entry = (kind, message)
        if entry not in self.errors:
            self.errors.append(entry)
        return self.errors.index(entry)

    # -- the whole ------------------------------------------------------------------------------

    def place_all(self) -> None:
        """Give every realized value its buffer and a place in a draft or step."""
        for slot, node in enumerate(self.graph.inputs):
            number = self.buffer(node.out)
            self.buffers[number] = replace(self.buffers[number], kind="input", slot=slot)
        placed = [node for node in self.nodes if node in self.realization.nodes]
        for node in placed:
            for v in node.outputs:
                self.buffer(v)
        for node in placed:
            self.place(node)

    def schedule(self) -> Schedule:
        """Record the drafts; join nests into tiles."""
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
        if name in ("constant", "input"):
            return
        if kind == "region":
            place_region(node, self)
            return
        if is_tape(node.types[0]):
            place_rows(node, self)
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
        elif self.within and is_routine(node):
            self.add_step(routine_step(node, self), node)
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
        self.home[node] = len(self.drafts)
        self.drafts.append(step)

    def realize_now(self, v: Value, reason: str) -> int:
        """Give ``v`` (a value made during lowering, or one not realized so far) a buffer."""
        if v not in self.realization or v.node not in self.home:
            if v not in self.realization:
                self.realization.ask(v, reason)
            number = self.buffer(v)
            if v.node.op.name not in ("constant", "input"):
                self.place_loop(v, v.shape, ())
            return number
        return self.buffer(v)

    def place_dot(self, node: Node) -> None:
        """A contraction as the sum of products: the product over all axes, reduced."""
        product = _broadcast_product(node)
        axes = tuple(range(node.types[0].ndim, product.ndim))
        self.products[node] = product
        self.place_loop(node.out, product.shape, axes)

    def place_loop(self, root: Value, domain: tuple[int, ...], reduced: tuple[int, ...]) -> None:
        """Add a root to the last nest that may compute it, else to a new one."""
        if root.size == 0:
            return
        draft = Draft(domain, reduced, self.orders.get(root) if not reduced else None)
        read = self.reads(root)
        chosen = self._nest_for(draft, read)
        if chosen < 0:
            self.drafts.append(draft)
            chosen = len(self.drafts) - 1
        target = self.drafts[chosen]
        assert isinstance(target, Draft)
        target.roots.append(root)
        target.length += read.length
        if 0 not in domain:
            target.computed |= read.inside
            target.computed |= read.away
        if reduced:
            target.reduce(reduced)
            target.reducing.add(root.node)
        self.home[root.node] = chosen

    def reads(self, root: Value) -> Reads:
        """What a root reads from memory, and what it computes itself."""
        node, stored, sources = root.node, self.stored, self.sources
        inside: set[Node] = set()  # computed at the element that the nest computes
        away: set[Node] = set()  # computed at another one
        outer: list[Node] = []  # where a walk leaves the element
        near: set[Node] = set()
        far: set[Node] = set()
        stack = [self._body(root).node]
        while stack:
            n = stack.pop()
            if n in inside or n in near:
                continue
            if n in stored and n is not node:
                near.add(n)
                continue
            inside.add(n)
            below = sources.get(n) or [x.node for x in n.inputs]  # some are made here
            (stack if n.op.kind == "elementwise" else outer).extend(below)
        while outer:
            n = outer.pop()
            if n in away or n in far:
                continue
            if n in stored and n is not node:
                far.add(n)
                continue
            away.add(n)
            outer.extend(sources.get(n) or [x.node for x in n.inputs])
        return Reads(near, far, inside, away)

    def _nest_for(self, draft: Draft, read: Reads) -> int:
        """Position of a nest with the same loops whose results are all that a root waits for."""
        home = self.home
        needs = -1
        for nodes in (read.near, read.far):
            for n in nodes:
                needs = max(needs, home.get(n, -1))
        if self.waits:
            needs = max(needs, latest(self.waits, (*read.inside, *read.away), home))
        longest = LONGEST_TAPE - read.length
        earliest = max(needs, 0, len(self.drafts) - 32)
        for position in range(len(self.drafts) - 1, earliest - 1, -1):
            target = self.drafts[position]
            if not isinstance(target, Draft) or target.length > longest:
                continue
            if target.domain != draft.domain or target.order != draft.order:
                continue
            if target.reduced != draft.reduced and not _may_mix(target, draft):
                continue
            if position > needs:
                return position
            # It computes some of what the root reads: at the same element, and points only.
            own = [n for n in read.near if home.get(n) == position]
            if not target.reducing.intersection(own) and not any(
                home.get(n) == position for n in read.far
            ):
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
        if root.node in self.products:
            return self.products[root.node]
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
        return RawNest(nest, len(draft.reduced))

    # -- sharing --------------------------------------------------------------------------------

    def recomputed(self) -> dict[Value, str]:
        """Inlined values that several nests compute and whose work is worth a buffer."""
        stored = self.realization.nodes
        times: dict[Node, int] = {}
        for nodes in (*self.recorded, *(d.computed for d in self.drafts if isinstance(d, Draft))):
            for node in nodes:
                times[node] = times.get(node, 0) + 1
        work: dict[Node, int] = {}
        found: dict[Value, str] = {}
        for node in self.nodes:
            if node in stored:
                continue  # read from memory, so no work to who reads it
            total = weight(node)
            for source in self.sources[node]:
                total += work.get(source, 0)
            total = min(total, 10_000)
            if (
                total >= SHARED_WORK
                and times.get(node, 0) > 1
                and node.op.kind != "view"
                and node.types[0].size > 1
            ):
                found[node.out] = f"computed in {times[node]} nests"
            else:
                work[node] = total
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
