"""Machine code of lane programs: loops whose state lives in registers.

The function made for a program has the signature of a nest's; it runs lanes ``low <= lane < high``,
eight at a time, the last ones under a mask. A program without lanes runs once.

A counted loop is ::

    if (trips > 0) do { carry = body(i, carry) } while (++i < trips)

Where lanes have trips of their own, the loop runs as long as any lane does; a lane that has
finished keeps its carry by a select, and its mask keeps it from memory and from errors. An open
loop computes its condition at the head. The condition of a finished lane stays false, for its
carry does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from ...fusion.lane_code import Block, Branches, LaneStore, Repeat
from ...fusion.loops import FIRST_ROWS
from ...ir.dtypes import bool_, int64
from .context import WATCH, Words
from .handler import Typed
from .interrupt import Watch
from .lanes_form import LaneForm
from .lanes_scalars import LaneScalars, parts_of, whole_of
from .loops import counted_loop
from .memory import I64
from .regions import CAPACITY, ROWS, emit_grow

__all__ = ["LaneEmitter"]

# A loop looks for an interrupt each 2**16 iterations; one around other loops more often.
LOOK_BITS = (16, 8, 4)


class LaneEmitter(LaneScalars):
    """Emits the function of one lane program."""

    def __init__(self, module: Any, name: str, form: LaneForm, outline: bool = False) -> None:
        super().__init__(module, name, form, outline)
        self.watch: Watch | None = None
        self._grower: Any = None

    def build(self) -> Any:
        """Emit the function."""
        b, root = self.builder, self.program.root
        with b.if_then(self.failed(), likely=False):  # what it would read was never computed
            b.ret_void()
        if any(isinstance(item, Repeat) for block in self.program.blocks() for item in block.items):
            context = Words(b, self.error_place)  # its first word is the one for errors
            self.watch = Watch(b, context.place(WATCH))
        for tape in sorted(self.program.recorded()):
            self.tape(tape)[ROWS] = I64(0)
        if not self.program.lanes:
            self.block(root)
        else:
            self._shared_first(root)
            with counted_loop(b, self.low, self.high, self.width) as lane:
                left = b.sub(self.high, lane)
                self.lane = lane
                lanes = self.splat(Typed(left, int64)).value
                self.mask = b.icmp_signed("<", self.numbers, lanes)
                self.full = b.icmp_signed(">=", left, I64(self.width))
                self.block(root)
        b.ret_void()
        return self.function

    def _shared_first(self, root: Block) -> None:
        """What needs neither lanes nor loops, once for all groups of lanes."""
        for item in root.items:
            if not isinstance(item, int) or item not in self.used or self.varying[item]:
                continue
            x = self.scalars[item]
            if x.error < 0 and all(a in self.values for a in x.args):
                self.define(item, self.compute(item))

    def block(self, block: Block) -> None:
        """Emit a block into the current one."""
        for item in block.items:
            if isinstance(item, int):
                if item in self.used and item not in self.values:
                    self.define(item, self.compute(item))
            elif isinstance(item, LaneStore):
                self.store(item)
            elif isinstance(item, Branches):
                self._branches(item)
            elif item.count is None:
                self._open_loop(item)
            else:
                self._counted_loop(item)

    # -- carries --------------------------------------------------------------------------------

    def _live(self, item: Repeat) -> list[int]:
        """Positions of the carries that matter."""
        return [k for k, number in enumerate(item.carried) if number in self.used]

    def _given(self, number: int, like: int) -> Any:
        """Scalar ``number``, a vector where ``like`` is one."""
        return self.operand(number, self.varying[like])

    def _phis(self, like: Any) -> Any:
        parts = parts_of(like)
        return whole_of([Typed(self.builder.phi(x.value.type), x.dtype) for x in parts], like)

    def _carries(
        self, item: Repeat, live: Sequence[int], i: Any, initial: Sequence[Any], before: Any
    ) -> list[Any]:
        """The carries at the head of a loop, with their values from the block ``before``."""
        carries = [self._phis(x) for x in initial]
        for phi, x in zip(carries, initial, strict=True):
            self._incoming(phi, x, before)
        self.define(item.index, Typed(i, int64))
        for k, phi in zip(live, carries, strict=True):
            self.define(item.carried[k], phi)
        return carries

    @staticmethod
    def _incoming(phis: Any, values: Any, block: Any) -> None:
        for phi, x in zip(parts_of(phis), parts_of(values), strict=True):
            phi.value.add_incoming(x.value, block)

    def _frozen(self, active: Any, new: Any, old: Any) -> Any:
        """``new`` in active lanes, ``old`` in the others."""
        flags = Typed(active, bool_)
        pairs = zip(parts_of(new), parts_of(old), strict=True)
        return whole_of([self.vector.select(flags, a, b) for a, b in pairs], new)

    # -- counted loops --------------------------------------------------------------------------

    def _counted_loop(self, item: Repeat) -> None:
        b = self.builder
        assert item.count is not None
        counts = None
        if item.own_trips:
            counts = self.operand(item.count, True)
            zero = self.vector.const(0, int64)
            running = self.vector.select(Typed(self.mask, bool_), counts, zero)
            trips = self._largest(running.value)
        else:
            trips = self.values[item.count].value
        trips = self._begin_tapes(item, trips)
        live = self._live(item)
        initial = [self._given(item.initial[k], item.carried[k]) for k in live]
        start = b.sub(trips, I64(1)) if item.reverse else I64(0)
        before = b.block
        body, done = b.append_basic_block("loop"), b.append_basic_block("done")
        b.cbranch(b.icmp_signed(">", trips, I64(0)), body, done)
        b.position_at_end(body)
        i = b.phi(I64)
        i.add_incoming(start, before)
        carries = self._carries(item, live, i, initial, before)
        saved = self.mask, self.full
        if counts is not None:
            active = self.vector.lt(self.operand_of(i), counts).value
            self.mask, self.full = b.and_(self.mask, active), None
        self.block(item.body)
        following = [self._given(item.following[k], item.carried[k]) for k in live]
        if counts is not None:
            pairs = zip(following, carries, strict=True)
            following = [self._frozen(self.mask, x, phi) for x, phi in pairs]
        self.mask, self.full = saved
        step = b.add(i, I64(-1 if item.reverse else 1))
        more = b.icmp_signed(">=", step, I64(0))
        if not item.reverse:
            more = b.icmp_signed("<", step, trips)
        exits = [(before, initial)]

        def again(block: Any) -> None:
            i.add_incoming(step, block)
            for phi, x in zip(carries, following, strict=True):
                self._incoming(phi, x, block)

        def leave(block: Any) -> None:
            exits.append((block, following))

        self._latch(item, i, more, body, done, again, leave)
        self._results(item, live, exits)
        self._end_tapes(item, trips)

    def operand_of(self, i: Any) -> Typed:
        """An i64 in every lane."""
        return self.splat(Typed(i, int64))

    def _largest(self, counts: Any) -> Any:
        name = f"llvm.vector.reduce.smax.v{self.width}i64"
        function = self.vector._declare(name, I64, [counts.type])
        return self.builder.call(function, [counts])

    def _latch(
        self,
        item: Repeat,
        i: Any,
        more: Any,
        head: Any,
        done: Any,
        again: Callable[[Any], None],
        leave: Callable[[Any], None],
    ) -> None:
        """The end of an iteration: back to ``head`` if there is ``more`` and nothing stops it."""
        b = self.builder
        if _may_fail(item, self):
            more = b.and_(more, b.not_(self.failed()))
        assert self.watch is not None
        # The loop has to stay a short one: the look stands aside.
        period = (1 << LOOK_BITS[min(_height(item), len(LOOK_BITS) - 1)]) - 1
        due = b.icmp_unsigned("==", b.and_(i, I64(period)), I64(period))
        look, last = b.append_basic_block("look"), b.append_basic_block("latch")
        b.cbranch(due, look, last).set_weights([1, period])
        b.position_at_end(look)
        self.watch.look(b)
        leave(b.block)
        b.cbranch(self.watch.stopped(b), done, last)
        b.position_at_end(last)
        again(last)
        leave(last)
        b.cbranch(more, head, done)
        b.position_at_end(done)

    def _results(
        self, item: Repeat | Branches, live: list[int], exits: list[tuple[Any, Any]]
    ) -> None:
        """Values after a loop or branches, in the last block."""
        found = [self._phis(x) for x in exits[0][1]]
        for block, values in exits:
            for phi, x in zip(found, values, strict=True):
                self._incoming(phi, x, block)
        for k, phi in zip(live, found, strict=True):
            self.define(item.results[k], phi)

    # -- open loops -----------------------------------------------------------------------------

    def _open_loop(self, item: Repeat) -> None:
        b = self.builder
        live = self._live(item)
        initial = [self._given(item.initial[k], item.carried[k]) for k in live]
        counts = item.own_trips and item.trips in self.used
        zero = self.vector.const(0, int64)
        before = b.block
        head, body = b.append_basic_block("test"), b.append_basic_block("loop")
        done = b.append_basic_block("done")
        b.branch(head)
        b.position_at_end(head)
        i = b.phi(I64)
        i.add_incoming(I64(0), before)
        counted = Typed(b.phi(zero.value.type), int64) if counts else None
        if counted is not None:
            counted.value.add_incoming(zero.value, before)
        carries = self._carries(item, live, i, initial, before)
        saved = self.mask, self.full
        assert item.test is not None
        self.block(item.test)
        holds = self.operand(item.holds, item.own_trips).value
        if item.own_trips:
            self.mask, self.full = b.and_(self.mask, holds), None
            holds, _ = self.any(self.mask)
        exits = [(b.block, carries, i, counted)]
        if item.limit >= 0:
            within, beyond = b.append_basic_block("within"), b.append_basic_block("beyond")
            b.cbranch(holds, within, done)
            b.position_at_end(within)
            many = b.icmp_signed("==", i, self.integer(item.limit))
            b.cbranch(many, beyond, body).set_weights([1, 10_000])
            b.position_at_end(beyond)
            self.report(item.error, Typed(ir.IntType(1)(1), bool_))
            exits.append((b.block, carries, i, counted))
            b.branch(done)
        else:
            b.cbranch(holds, body, done)
        b.position_at_end(body)
        if item.recorded:
            failed = b.append_basic_block("no_memory")
            self._grow_tapes(item, i, failed)
            with b.goto_block(failed):
                self.report(item.no_memory, Typed(ir.IntType(1)(1), bool_))
                exits.append((b.block, carries, i, counted))
                b.branch(done)
        self.block(item.body)
        following = [self._given(item.following[k], item.carried[k]) for k in live]
        step, counts_after = b.add(i, I64(1)), counted
        if item.own_trips:
            pairs = zip(following, carries, strict=True)
            following = [self._frozen(self.mask, x, phi) for x, phi in pairs]
        if counted is not None:
            one_more = b.zext(self.mask, counted.value.type)
            counts_after = Typed(b.add(counted.value, one_more), int64)
        self.mask, self.full = saved

        def again(block: Any) -> None:
            i.add_incoming(step, block)
            if counted is not None and counts_after is not None:
                counted.value.add_incoming(counts_after.value, block)
            for phi, x in zip(carries, following, strict=True):
                self._incoming(phi, x, block)

        def leave(block: Any) -> None:
            exits.append((block, following, step, counts_after))

        self._latch(item, i, ir.IntType(1)(1), head, done, again, leave)
        self._results(item, live, [(block, values) for block, values, *_ in exits])
        last, total = b.phi(I64), None if counted is None else b.phi(zero.value.type)
        for block, _, trips, many_trips in exits:
            last.add_incoming(trips, block)
            if total is not None:
                total.add_incoming(many_trips.value, block)
        self.define(item.trips, Typed(last if total is None else total, int64))
        self._end_tapes(item, last)

    # -- tapes ----------------------------------------------------------------------------------

    def _begin_tapes(self, item: Repeat, trips: Any) -> Any:
        """Room for what a counted loop records, a look at the length of what it reads; the trips
        of the loop: none where something is missing."""
        b = self.builder
        least = b.select(b.icmp_signed(">", trips, I64(0)), trips, I64(0))
        for tape, nbytes in item.recorded:
            header = self.tape(tape).pointer
            room = b.call(self._grow(), [header, least, self.integer(nbytes)])
            trips = self._unless(b.not_(room), item.no_memory, trips)
            self.open_tape(tape)
        for tape in item.replayed:
            missing = b.icmp_signed("<", self.tape(tape)[ROWS], least)
            trips = self._unless(missing, item.too_short, trips)
            self.open_tape(tape)
        return trips

    def _unless(self, bad: Any, error: int, trips: Any) -> Any:
        self.report(error, Typed(bad, bool_))
        return self.builder.select(bad, I64(0), trips)

    def _grow_tapes(self, item: Repeat, i: Any, failed: Any) -> None:
        """Room for row ``i`` of what an open loop records, or on to the block ``failed``."""
        b = self.builder
        rows = b.add(i, I64(1))
        for tape, nbytes in item.recorded:
            words, size = self.tape(tape), self.integer(nbytes)
            more, room = b.append_basic_block("grow"), b.append_basic_block("room")
            full = b.icmp_signed(">", b.mul(rows, size), words[CAPACITY])
            b.cbranch(full, more, room).set_weights([1, 100])
            b.position_at_end(more)
            first = b.icmp_signed("<", rows, I64(FIRST_ROWS))
            wanted = b.select(first, I64(FIRST_ROWS), rows)
            b.cbranch(b.call(self._grow(), [words.pointer, wanted, size]), room, failed)
            b.position_at_end(room)
            self.open_tape(tape)

    def _end_tapes(self, item: Repeat, trips: Any) -> None:
        b = self.builder
        for tape, _ in item.recorded:
            words = self.tape(tape)  # lanes of other groups may have made more trips
            words[ROWS] = b.select(b.icmp_signed(">", trips, words[ROWS]), trips, words[ROWS])

    def _grow(self) -> Any:
        if self._grower is None:
            self._grower = emit_grow(self.builder.module)
        return self._grower

    # -- branches -------------------------------------------------------------------------------

    def _branches(self, item: Branches) -> None:
        b, h = self.builder, self.scalar
        index, last = self.values[item.index], len(item.blocks) - 1
        live = [k for k, number in enumerate(item.results) if number in self.used]
        if not live and not any(_can_report(block, self) for block in item.blocks):
            return
        index = h.select(h.lt(index, h.const(0, int64)), h.const(0, int64), index)
        ends = []
        done = b.append_basic_block("joined")
        blocks = [b.append_basic_block(f"branch{k}") for k in range(last + 1)]
        if last == 1:
            first = b.icmp_signed("==", index.value, I64(0))
            b.cbranch(first, blocks[0], blocks[1])
        else:
            switch = b.switch(index.value, blocks[last])
            for k, block in enumerate(blocks[:last]):
                switch.add_case(I64(k), block)
        for target, block, outcome in zip(blocks, item.blocks, item.outcomes, strict=True):
            b.position_at_end(target)
            self.block(block)
            values = [self._given(outcome[k], item.results[k]) for k in live]
            ends.append((b.block, values))  # the block that this ended in
            b.branch(done)
        b.position_at_end(done)
        self._results(item, live, ends)


def _can_report(block: Block, e: LaneEmitter) -> bool:
    """Whether a block, or one inside, may report an error."""
    for item in block.items:
        if isinstance(item, int):
            if item in e.used and e.scalars[item].error >= 0:
                return True
        elif isinstance(item, Branches):
            if any(_can_report(inner, e) for inner in item.blocks):
                return True
        elif isinstance(item, Repeat) and _may_fail(item, e):
            return True
    return False


def _may_fail(item: Repeat, e: LaneEmitter) -> bool:
    tested = item.test is not None and _can_report(item.test, e)
    return item.error >= 0 or tested or _can_report(item.body, e)


def _height(item: Repeat | Branches) -> int:
    """How many loops are nested inside a loop, at most."""
    inner = [i for b in item.inside() for i in b.items if isinstance(i, Repeat | Branches)]
    return max((_height(i) + isinstance(i, Repeat) for i in inner), default=0)
