"""``explain_remat``: which forward values cross to the backward part, their bytes, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..autodiff import reverse
from ..autodiff.recompute import Split
from ..autodiff.rematerialize import partition, reads_of
from ..autodiff.saving_network import Row
from ..ir.graph import Graph, Node, Value, toposort
from ..ir.location import at_user_line
from ..ir.ops.fill import zeros_of
from ..ir.ops.leaves import input_node
from ..ir.passes.inline import inline
from ..ir.text import text
from ..ir.types import TensorType
from .checkpoint_policies import choice_of
from .checkpoint_policies import minimum_cut as minimum_cut_policy
from .jit import jit
from .marking import name_of
from .tree import take_apart

__all__ = ["RematReport", "explain_remat"]


@dataclass(frozen=True, slots=True)
class RematReport:
    """What the backward part of a function gets from its forward part; ``print`` shows it.

    Attributes
    ----------
    rows : tuple of Row
        One a value between the arguments and the result: ``capacity`` in the network, ``distance``
        to the first backward reader, whether it is ``written`` by the forward part anyhow, ``read``
        by the backward part, ``saved``, and the ``reason`` why it must not be computed again.
    saved : tuple of str
        The saved values by their names in the listing.
    arguments : tuple of str
        Arguments that the backward part reads: they are there in any case.
    nbytes : int
        Bytes of the saved values.
    capacity : int or None
        Of the minimum cut; None if another policy chose, or if there is no finite cut.
    listing : str
        The joint program of value and gradient, its operations marked ``[FW]`` (the result needs
        it) or ``[BW]``.
    names : tuple of str
        Of the rows' values in the listing; ``-`` for one that only forward mode reads.
    """

    rows: tuple[Row, ...]
    saved: tuple[str, ...]
    arguments: tuple[str, ...]
    nbytes: int
    capacity: int | None
    listing: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        lines = [self.listing, ""]
        table = [("value", "op", "type", "capacity", "d", "what becomes of it")]
        for name, row in zip(self.names, self.rows, strict=True):
            table.append(
                (
                    name,
                    row.value.node.op.name,
                    str(row.value.type),
                    str(row.capacity),
                    str(row.distance),
                    _fate(row),
                )
            )
        widths = [max(len(r[k]) for r in table) for k in range(5)]
        for cells in table:
            padded = [c.ljust(w) for c, w in zip(cells, widths, strict=False)]
            lines.append("  ".join([*padded, cells[5]]).rstrip())
        cut = "" if self.capacity is None else f", capacity of the cut {self.capacity}"
        lines.append(f"saved: {', '.join(self.saved) or 'nothing'} ({self.nbytes} bytes{cut})")
        lines.append(f"arguments that are read: {', '.join(self.arguments) or 'none'}")
        return "\n".join(lines)


def _fate(row: Row) -> str:
    if row.saved:
        why = row.reason or "less than what it is computed from"
        return f"saved: {why}"
    if row.read:
        return "read, and computed again"
    return f"not saved ({row.reason})" if row.reason else "not saved"


def explain_remat(
    fun: Callable[..., Any],
    *args: Any,
    argnums: int | Sequence[int] = 0,
    policy: Any = minimum_cut_policy,
    memory_budget: int | None = None,
) -> RematReport:
    """What ``checkpoint`` with a policy would save of a function, and why.

    Parameters
    ----------
    fun : callable
    args
        Its arguments, or types in their place.
    argnums : int or sequence of int
        Positional arguments to differentiate by.
    policy, memory_budget
        As for :func:`~tilegrad.engine.checkpoint.checkpoint`; by default the minimum cut.

    Returns
    -------
    RematReport

    Notes
    -----
    Checkpoints inside ``fun`` are looked into as if they were not there.

    Examples
    --------
    >>> import tilegrad as tg
    >>> x, w = tg.ShapeDtype((32, 64), "float32"), tg.ShapeDtype((64, 64), "float32")
    >>> f = lambda x, w: tg.sum(tg.nn.gelu(x @ w))
    >>> report = tg.explain_remat(f, x, w, argnums=1)
    >>> report.saved, report.nbytes, report.capacity
    (('%3',), 8192, 9011)
    """
    lowered = jit(fun).lower(*args)
    graph = inline(lowered.graph)
    moving = _moving(fun, args, argnums, graph)
    nodes, found = reverse.linearize(graph.outputs, [node.out for node in moving])
    dots = [t for t in found if t is not None]
    given = frozenset([node.out for node in graph.inputs])
    split = Split(graph.outputs, reverse.linear_nodes(dots, [n.out for n in nodes]), given)
    parts = partition(graph.outputs, split.linear, given)
    by_cut = policy is minimum_cut_policy and memory_budget is None
    if by_cut:
        saved = list(parts.saved)
    else:
        policy = None if policy is minimum_cut_policy else policy
        saved = list(choice_of(policy, memory_budget)(split))
    rows = [replace(r, saved=r.value in saved) for r in parts.rows]
    joint = _joint(graph, moving, nodes, found)
    listing = _listing(joint, len(graph.outputs))
    names = {**dict.fromkeys([r.value for r in rows], "-"), **_names(joint)}
    arguments = [x for x in reads_of(split.linear) if x in given]
    return RematReport(
        tuple(rows),
        tuple([names[x] for x in saved]),
        tuple([names[x] for x in arguments]),
        sum([x.type.nbytes for x in saved]),
        parts.capacity if by_cut else None,
        listing,
        tuple([names[r.value] for r in rows]),
    )


def _moving(
    fun: Callable[..., Any], args: Sequence[Any], argnums: int | Sequence[int], graph: Graph
) -> list[Node]:
    """The inputs of the graph that are leaves of the arguments to differentiate by."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not all(-len(args) <= k < len(args) for k in numbers):
        raise at_user_line(
            ValueError(
                f"explain_remat({name_of(fun)}): argnums: expected positions among {len(args)} "
                f"arguments, got {argnums}"
            )
        )
    wanted = {k % len(args) for k in numbers}
    moving: list[Node] = []
    here = 0
    for k, argument in enumerate(args):
        leaves: list[Any] = []
        take_apart(argument, leaves)
        inputs = graph.inputs[here : here + len(leaves)]
        here += len(leaves)
        if k in wanted:
            moving += [node for node in inputs if node.types[0].dtype.is_inexact]
    return moving


def _joint(
    graph: Graph, moving: Sequence[Node], directions: Sequence[Node], dots: Sequence[Value | None]
) -> Graph:
    """Results and gradients as one program of the arguments and of the cotangents."""
    strong = [TensorType(x.shape, x.dtype) for x in graph.outputs]
    seeds = [
        None if dot is None else input_node(t, f"cotangent{k}")
        for k, (t, dot) in enumerate(zip(strong, dots, strict=True))
    ]
    cotangents = [None if seed is None else seed.out for seed in seeds]
    found = reverse.transpose(dots, directions, cotangents)
    gradients = [
        zeros_of(node.types[0]) if c is None else c for c, node in zip(found, moving, strict=True)
    ]
    given = [seed for seed in seeds if seed is not None]
    return Graph((*graph.inputs, *given), (*graph.outputs, *gradients), "joint")


def _names(graph: Graph) -> dict[Value, str]:
    """Values as :func:`~..ir.text.text` numbers them."""
    values = [x for node in (*graph.inputs, *graph.nodes()) for x in node.outputs]
    return {x: f"%{k}" for k, x in enumerate(values)}


def _listing(joint: Graph, results: int) -> str:
    """The text of the joint graph, a tag a line."""
    forward = set(toposort(joint.outputs[:results]))
    seeds = {node for node in joint.inputs if node.param("name").startswith("cotangent")}
    names = _names(joint)
    lines = [
        f"[{'BW' if node in seeds else 'FW'}] {names[node.out]} = input "
        f'"{node.param("name")}": {node.types[0]}'
        for node in joint.inputs
    ]
    nodes = iter(joint.nodes())
    for line in text(joint).splitlines()[1:-1]:
        if line.startswith("  %"):
            lines.append(f"[{'FW' if next(nodes) in forward else 'BW'}] {line.strip()}")
        elif line.startswith("  return"):
            lines.append(f"     {line.strip()}")
        else:  # inside a region
            lines.append(f"     {line}")
    return "\n".join(lines)
