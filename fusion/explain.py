"""Why two values of a schedule are not computed in the same loops.

The scheduler puts values into one nest when their loops are the same and each reads of the others
only the element that is being computed; and nests into one tile when they share their leading
loops and data (:mod:`.lower`, :mod:`.tiles`). This module tells which of these two values miss.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ..ir.graph import Node, Value, toposort
from .lane_code import LaneProgram
from .loops import HostCall, MatMul, Nest, Region, Schedule, Step, Tile
from .lower import LONGEST_TAPE
from .memory import reads, writes
from .tiles import LEAST_ROWS, SCRATCH, is_by_rows

__all__ = ["Explainer"]

Home = tuple[int, int]  # step, nest of its tile (0 outside of tiles)


class Explainer:
    """Answers questions about one schedule."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.nodes: tuple[Node, ...] = tuple(toposort(list(schedule.places)))
        self._consumers: dict[Value, list[Value]] = {}
        for node in self.nodes:
            for v in node.inputs:
                self._consumers.setdefault(v, []).extend(node.outputs)
        self._writers: dict[int, list[Home]] = {}
        for k, step in enumerate(schedule.steps):
            for j, part in enumerate(step.nests if isinstance(step, Tile) else (step,)):
                for number in writes(part):
                    self._writers.setdefault(number, []).append((k, j))

    # -- names ----------------------------------------------------------------------------------

    def named(self, name: str) -> Value:
        """The value of an op: ``"exp"``, or ``"exp:1"`` for the second one in program order.

        Raises
        ------
        ValueError
            If there is no such op, or several and no number.
        """
        op, _, number = name.partition(":")
        found = [node for node in self.nodes if node.op.name == op]
        if not found:
            there = dict.fromkeys(n.op.name for n in self.nodes if n.op.name != "input")
            raise ValueError(f"expected one of the program's ops {', '.join(there)}; got {name!r}")
        place = int(number) if number.isdecimal() else -1
        if name == op and len(found) == 1:
            place = 0
        if not 0 <= place < len(found):
            raise ValueError(f"expected one of {op}:0 to {op}:{len(found) - 1}, got {name!r}")
        return found[place].out

    def output(self, number: int) -> Value:
        """The value of an output of the program.

        Raises
        ------
        ValueError
            If there is no such output.
        """
        outputs = self.schedule.outputs
        if not 0 <= number < len(outputs):
            raise ValueError(f"expected an output below {len(outputs)}, got {number}")
        return next(v for v, b in self.schedule.places.items() if b == outputs[number])

    def label(self, v: Value) -> str:
        """``exp:1 f64[3]``."""
        same = [node for node in self.nodes if node.op.name == v.node.op.name]
        number = f":{same.index(v.node)}" if len(same) > 1 else ""
        return f"{v.node.op.name}{number} {v.type}"

    # -- where ----------------------------------------------------------------------------------

    def roots(self, v: Value) -> list[Value]:
        """The values with a buffer whose loops compute ``v``: itself, or those that read it."""
        found: dict[Value, None] = {}
        stack, seen = [v], {v}
        while stack:
            x = stack.pop()
            if x in self.schedule.places:
                found[x] = None
                continue
            for y in self._consumers.get(x, ()):
                if y not in seen:
                    seen.add(y)
                    stack.append(y)
        return list(found)

    def homes(self, root: Value) -> list[Home]:
        """Where a value with a buffer is computed; both halves of a long reduction."""
        found = list(self._writers.get(self.schedule.places[root], ()))
        for home in list(found):
            part = self.part(home)
            if isinstance(part, Nest) and part.part == "fold":
                found += [h for b in part.states for h in self._writers[b]]
        return sorted(set(found))

    def part(self, home: Home) -> Step:
        """The nest, or the call, at a home."""
        step = self.schedule.steps[home[0]]
        return step.nests[home[1]] if isinstance(step, Tile) else step

    # -- why ------------------------------------------------------------------------------------

    def why_not_fused(self, a: Value, b: Value) -> str:
        """Whether two values are computed in the same loops, and if not, why; lines of text."""
        lines = []
        places: list[dict[Home, Value]] = []
        for v in (a, b):
            homes = {home: root for root in self.roots(v) for home in self.homes(root)}
            places.append(homes)
            lines.append(f"{self.label(v)}: {self._where(v, homes)}")
        here, there = places
        if not here or not there:
            return "\n".join(lines)
        common = sorted(set(here) & set(there))
        if common:
            return "\n".join([*lines, f"fused: the loops of {_at(common)} compute both."])
        # The pair that is nearest in the program has the least between it.
        first, second = min(
            ((h, t) for h in here for t in there), key=lambda pair: abs(pair[0][0] - pair[1][0])
        )
        p, q = here[first], there[second]
        if second < first:
            first, second, p, q = second, first, q, p
        tile = self.schedule.steps[first[0]]
        if first[0] == second[0] and isinstance(tile, Tile):
            lines.append(
                f"in one tile, step {first[0]}: {tile.chunk} of {tile.rows} rows at a time pass "
                f"through both nests, in the cache. Not one nest:"
            )
            reasons = list(self._nest_reasons(p, q, first, second))
        else:
            lines.append("not fused:")
            reasons = [
                *self._nest_reasons(p, q, first, second),
                *self._tile_reasons(p, q, first, second),
            ]
        if not reasons:
            reasons = [
                "no rule forbids it: the scheduler, which takes values in program order and "
                "joins neighbours, did not find it"
            ]
        return "\n".join([*lines, *(f"- {r}" for r in reasons)])

    def _where(self, v: Value, homes: dict[Home, Value]) -> str:
        if not homes:
            kind = "the program is given it" if v.node.op.name == "input" else "nothing to compute"
            return f"no step, {kind}"
        reason = self.schedule.reasons.get(v)
        memory = f"has a buffer ({reason})" if reason else "has no buffer"
        return f"{_at(sorted(homes))}; {memory}"

    def _nest_reasons(self, p: Value, q: Value, first: Home, second: Home) -> Iterator[str]:
        """Why ``q`` did not become another result of the nest of ``p``."""
        parts = [self.part(first), self.part(second)]
        whole = [_whole(part, home[0]) for part, home in zip(parts, (first, second), strict=True)]
        yield from filter(None, dict.fromkeys(whole))
        if not any(whole) and _domain(p) != _domain(q):
            yield f"different loops: {_loops(p)} and {_loops(q)}"
        yield from self._dependence(p, q, first[0], second[0])
        if all(isinstance(part, Nest) for part in parts):
            length = sum(len(part.tape) for part in parts if isinstance(part, Nest))
            if length > LONGEST_TAPE:
                yield (
                    f"too long together: {length} instructions, and a nest takes {LONGEST_TAPE} "
                    f"to keep its values in registers"
                )

    def _dependence(self, p: Value, q: Value, i: int, j: int) -> Iterator[str]:
        moved = self._moves(p, q)
        if moved is not None and p.node.op.kind == "reduction":
            yield f"{self.label(q)} needs the finished result of {self.label(p)}"
        elif moved:
            yield (
                f"{self.label(q)} reads {self.label(p)} at other elements than the one that is "
                f"being computed (by {moved})"
            )
        between = self._between(i, j)
        if between:
            shown = ", ".join(_describe(self.schedule.steps[k], k) for k in between[:3])
            more = f" and {len(between) - 3} more" if len(between) > 3 else ""
            yield f"in between: {shown}{more} must wait for the one and be done for the other"

    def _moves(self, p: Value, q: Value) -> str | None:
        """How the loops of ``q`` read ``p``: "" at their own element, an op's name if that moves
        elements on the way, None if they do not."""
        inside = "" if q.node.op.kind in ("elementwise", "reduction") else q.node.op.name
        stack = [(v, inside) for v in q.node.inputs]
        seen = set(stack)
        found: str | None = None
        while stack:
            v, moved = stack.pop()
            if v == p:
                if moved:
                    return moved
                found = ""
            elif v not in self.schedule.places:  # those are read, not computed
                step = moved or ("" if v.node.op.kind == "elementwise" else v.node.op.name)
                fresh = [(x, step) for x in v.node.inputs if (x, step) not in seen]
                seen.update(fresh)
                stack.extend(fresh)
        return found

    def _between(self, i: int, j: int) -> list[int]:
        """Steps that need step ``i`` and that step ``j`` needs."""
        steps = self.schedule.steps
        reached, after = set(writes(steps[i])), []
        for k in range(i + 1, j):
            if reads(steps[k]) & reached:
                reached |= writes(steps[k])
                after.append(k)
        needed, found = set(reads(steps[j])), []
        for k in reversed(after):
            if writes(steps[k]) & needed:
                needed |= reads(steps[k])
                found.append(k)
        return found[::-1]

    def _tile_reasons(self, p: Value, q: Value, first: Home, second: Home) -> Iterator[str]:
        """Why the two nests did not become one tile either."""
        steps = self.schedule.steps
        one, two = steps[first[0]], steps[second[0]]
        whole = MatMul | HostCall | LaneProgram | Region
        if isinstance(one, whole) or isinstance(two, whole):
            return
        if not (reads(one) | writes(one)) & (reads(two) | writes(two)):
            yield "they share no data: running them together would save no memory traffic"
            return
        rows = _row_counts(p) & _row_counts(q)
        if not rows:
            yield (
                f"no tile: their outer loops have no number of rows in common, {LEAST_ROWS} at "
                f"least"
            )
            return
        for home in dict.fromkeys((first, second)):
            nest = self.part(home)
            if not isinstance(nest, Nest) or not nest.extents or nest.extents[0] not in rows:
                continue
            if not is_by_rows(nest, nest.extents[0]):
                yield (
                    f"no tile: elements follow each other in memory along the only outer loop of "
                    f"step {home[0]}; it is the loop of the vectors, not one to cut into rows"
                )
                return
        passing = writes(one) & reads(two)
        own = sum(self.schedule.buffers[b].nbytes for b in passing) // max(rows)
        if own > SCRATCH:
            yield (
                f"no tile: one row of what passes between them is {own} bytes, the scratch of a "
                f"tile holds {SCRATCH}"
            )


def _at(homes: list[Home]) -> str:
    steps = list(dict.fromkeys(step for step, _ in homes))
    return f"step{'s' if len(steps) > 1 else ''} {', '.join(map(str, steps))}"


def _describe(step: Step, k: int) -> str:
    if isinstance(step, MatMul):
        return f"step {k} (a matrix product)"
    if isinstance(step, HostCall):
        return f"step {k} ({step.node.op.name}, a library call)"
    if isinstance(step, LaneProgram):
        return f"step {k} ({step.name}, in registers)"
    if isinstance(step, Region):
        return f"step {k} ({step.node.op.name}, steps of its own)"
    return f"step {k}"


def _whole(part: Step, k: int) -> str | None:
    """Why a step takes no other loops in."""
    if isinstance(part, MatMul):
        return f"step {k} is a matrix product: it runs whole"
    if isinstance(part, HostCall):
        return f"step {k} is a library call: {part.reason}"
    if isinstance(part, LaneProgram):
        return f"step {k} is a {part.name}: it keeps its values in registers"
    if isinstance(part, Region):
        return f"step {k} is a {part.node.op.name}: it has steps of its own"
    if isinstance(part, Nest) and part.scan is not None:
        return f"step {k} is a recurrence ({part.scan.op.name}): its last loop runs in order"
    if isinstance(part, Nest) and part.ordered:
        return f"step {k} writes at run-time positions: its iterations run in order"
    return None


def _domain(root: Value) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Extents of the loops that compute a value, and which of them reduce."""
    node = root.node
    if node.op.kind == "reduction":
        params = dict(node.params)
        axes = params["axes"] if "axes" in params else (params["axis"],)
        return node.inputs[0].shape, tuple(axes)
    if node.op.name == "dot":
        x = node.inputs[0]
        contracted = tuple(x.shape[d] for d in node.param("contract")[0])
        shape = root.shape
        return (*shape, *contracted), tuple(range(len(shape), len(shape) + len(contracted)))
    return root.shape, ()


def _loops(root: Value) -> str:
    shape, reduced = _domain(root)
    extents = " x ".join(map(str, shape)) or "none"
    return extents + (f" with axis {', '.join(map(str, reduced))} reduced" if reduced else "")


def _row_counts(root: Value) -> set[int]:
    """Numbers of rows that the leading loops can be seen as."""
    shape, reduced = _domain(root)
    outer = [n for d, n in enumerate(shape) if d not in reduced]
    counts = (prod(outer[:k]) for k in range(1, len(outer) + 1))
    return {n for n in counts if n >= LEAST_ROWS}
