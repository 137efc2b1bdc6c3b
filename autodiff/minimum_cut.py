"""Minimum vertex cuts by maximum flow.

A set of vertices that separates sources from sinks becomes a set of edges when each vertex ``v``
is split into ``v_in -> v_out`` of its capacity: every other edge is infinite, so a finite cut takes
split edges alone (Ford, Fulkerson, Flows in Networks, 1962, chapter I.11).

The flow is found by Dinic's method (Soviet Math. Doklady 11, 1970): shortest augmenting paths, all
those of one length at a time. Capacities are integers of any size, so nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Cut", "FlowNetwork", "vertex_cut"]


class FlowNetwork:
    """A directed network with integer capacities; vertices are ``0 .. count - 1``.

    Edges are kept in pairs: number ``e`` and its reverse ``e ^ 1``, with what each still takes.
    """

    def __init__(self, count: int) -> None:
        self.edges: list[list[int]] = [[] for _ in range(count)]
        self.head: list[int] = []
        self.left: list[int] = []

    def add_edge(self, tail: int, head: int, capacity: int) -> int:
        """A new edge; returns its number."""
        number = len(self.head)
        self.head += [head, tail]
        self.left += [capacity, 0]
        self.edges[tail].append(number)
        self.edges[head].append(number + 1)
        return number

    def maximum_flow(self, source: int, sink: int) -> int:
        """Push as much as fits from ``source`` to ``sink``; returns how much that was.

        Notes
        -----
        O(V^2 E) at worst; the networks of programs, wide and shallow, need a few rounds.
        """
        total = 0
        while True:
            level = self._levels(source)
            if level[sink] < 0:
                return total
            total += self._blocking_flow(source, sink, level)

    def reachable(self, source: int) -> list[bool]:
        """Which vertices can still take flow from ``source``: its side of a minimum cut."""
        return [distance >= 0 for distance in self._levels(source)]

    def reaching(self, sink: int) -> list[bool]:
        """Which vertices can still send flow to ``sink``: its side of the last minimum cut."""
        found = [False] * len(self.edges)
        found[sink] = True
        queue = [sink]
        for head in queue:
            for e in self.edges[head]:  # its partner comes from `tail` to `head`
                tail = self.head[e]
                if self.left[e ^ 1] and not found[tail]:
                    found[tail] = True
                    queue.append(tail)
        return found

    def _levels(self, source: int) -> list[int]:
        """Distance of each vertex from the source over edges with room; -1: none."""
        level = [-1] * len(self.edges)
        level[source] = 0
        queue = [source]
        for tail in queue:
            for e in self.edges[tail]:
                head = self.head[e]
                if self.left[e] and level[head] < 0:
                    level[head] = level[tail] + 1
                    queue.append(head)
        return level

    def _blocking_flow(self, source: int, sink: int, level: list[int]) -> int:
        """Augment along level-by-level paths until none is left. An explicit path, no recursion."""
        total = 0
        next_edge = [0] * len(self.edges)
        path: list[int] = []  # edges from the source to where we stand
        at = source
        while True:
            if at == sink:
                pushed = min([self.left[e] for e in path])
                for e in path:
                    self.left[e] -= pushed
                    self.left[e ^ 1] += pushed
                total += pushed
                full = next(i for i, e in enumerate(path) if not self.left[e])
                at = self.head[path[full] ^ 1]
                del path[full:]
                continue
            edges = self.edges[at]
            while next_edge[at] < len(edges):
                e = edges[next_edge[at]]
                if self.left[e] and level[self.head[e]] == level[at] + 1:
                    path.append(e)
                    at = self.head[e]
                    break
                next_edge[at] += 1
            else:  # a dead end: step back and do not come again
                if not path:
                    return total
                at = self.head[path.pop() ^ 1]
                next_edge[at] += 1


@dataclass(frozen=True, slots=True)
class Cut:
    """A least set of vertices between sources and sinks.

    Attributes
    ----------
    capacity : int
        Sum over the vertices, and over ``bypassed`` the price of each.
    vertices : tuple of int
        The vertices of the cut, in order of number. Where several cuts are least it is the one
        nearest to the sources, unless asked otherwise.
    bypassed : tuple of int
        Vertices with a price whose price was paid: they lie behind the cut.
    """

    capacity: int
    vertices: tuple[int, ...]
    bypassed: tuple[int, ...] = ()


def vertex_cut(
    capacities: Sequence[int | None],
    edges: Iterable[tuple[int, int]],
    sources: Iterable[int],
    sinks: Iterable[int],
    prices: Sequence[int] = (),
    *,
    late: bool = False,
) -> Cut | None:
    """The least vertices whose removal leaves no path from a source to a sink, ends included.

    Parameters
    ----------
    capacities : sequence of int or None
        One a vertex, not negative; None: the vertex cannot be cut.
    edges : iterable of (int, int)
        Tail and head.
    sources, sinks : iterable of int
        A vertex that is both must be cut.
    prices : sequence of int, optional
        One a vertex: what it costs if it lies behind the cut, on the sinks' side, itself not cut.
        Each vertex with a price is a source that may be passed by for that price.
    late : bool
        Of several least cuts take the one nearest to the sinks.

    Returns
    -------
    Cut or None
        None if every cut would take a vertex that cannot be cut.

    Notes
    -----
    With prices the cut is the least of ``sum(capacities of the cut) + sum(prices behind it)``: the
    source has an edge of capacity ``price`` to ``v_in``, cut when ``v_in`` is on the sinks' side.
    """
    count = len(capacities)
    source, sink = 2 * count, 2 * count + 1
    infinite = sum([c for c in capacities if c is not None]) + sum(prices) + 1
    network = FlowNetwork(2 * count + 2)
    for v, capacity in enumerate(capacities):
        network.add_edge(2 * v, 2 * v + 1, infinite if capacity is None else capacity)
    for tail, head in edges:
        network.add_edge(2 * tail + 1, 2 * head, infinite)
    for v in sources:
        network.add_edge(source, 2 * v, infinite)
    for v, price in enumerate(prices):
        if price:
            network.add_edge(source, 2 * v, price)
    for v in sinks:
        network.add_edge(2 * v + 1, sink, infinite)
    flow = network.maximum_flow(source, sink)
    if flow >= infinite:
        return None
    near = network.reachable(source)
    if late:
        near = [not reaches for reaches in network.reaching(sink)]
    return Cut(
        flow,
        tuple([v for v in range(count) if near[2 * v] and not near[2 * v + 1]]),
        tuple([v for v, price in enumerate(prices) if price and not near[2 * v]]),
    )
