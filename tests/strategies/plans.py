"""Compiling small functions to schedules and plans in tests, and running them."""

from __future__ import annotations

import numpy as np

from tilegrad.fusion.loops import HostCall, MatMul, Nest, Tile
from tilegrad.fusion.lower import lower
from tilegrad.ir.dtypes import as_dtype
from tilegrad.ir.graph import Graph, Node
from tilegrad.ir.ops.leaves import input_node
from tilegrad.ir.types import TensorType
from tilegrad.kernels.plan import compile_graph


def graph_of(function, *arrays):
    """The closed graph of ``function``; ``arrays`` are arrays or ``(shape, dtype)`` pairs."""
    types = [
        TensorType(*(a[0], as_dtype(a[1])))
        if isinstance(a, tuple)
        else TensorType(np.shape(a), as_dtype(np.asarray(a).dtype))
        for a in arrays
    ]
    inputs = tuple(input_node(t, f"x{k}") for k, t in enumerate(types))
    out = function(*(node.out for node in inputs))
    return Graph(inputs, out if isinstance(out, tuple) else (out,))


def schedule_of(function, *arrays):
    return lower(graph_of(function, *arrays))


def plan_of(function, *arrays):
    return compile_graph(graph_of(function, *arrays))


def run(function, *arrays, threads=1):
    """The outputs of the compiled function: one array, or a list of several."""
    arrays = [np.ascontiguousarray(a).reshape(np.shape(a)) for a in arrays]
    outputs = plan_of(function, *arrays).run(arrays, threads)
    return outputs[0] if len(outputs) == 1 else outputs


def plan_of_node(node):
    """One op as a plan of its own."""
    inputs = tuple(input_node(x.type, "x") for x in node.inputs)
    single = Node(node.op, tuple(i.out for i in inputs), node.params, node.types)
    return compile_graph(Graph(inputs, single.outputs))


def run_node(node, operands):
    return plan_of_node(node).run([np.array(x) for x in operands])


def run_by_node(graph, arguments, run=run_node):
    """Every node as a plan of its own, or as ``run`` says: what eager execution does."""
    known = {n.out: np.array(a) for n, a in zip(graph.inputs, arguments, strict=True)}
    for node in graph.nodes():
        if node.op.name == "constant":
            known[node.out] = node.param("literal").array()
            continue
        results = run(node, [known[x] for x in node.inputs])
        known.update(zip(node.outputs, results, strict=True))
    return [known[v] for v in graph.outputs]


def same(got, expected):
    """Equal shape, dtype and bits."""
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    assert got.tobytes() == np.ascontiguousarray(expected).tobytes()


def nests(schedule):
    """All nests in order, those inside tiles too."""
    found = []
    for step in schedule.steps:
        if isinstance(step, Tile):
            found.extend(step.nests)
        elif isinstance(step, Nest):
            found.append(step)
    return found


def tiles(schedule):
    return [s for s in schedule.steps if isinstance(s, Tile)]


def products(schedule):
    return [s for s in schedule.steps if isinstance(s, MatMul)]


def host_calls(schedule):
    return [s for s in schedule.steps if isinstance(s, HostCall)]


def loads(nest):
    return [i for i in nest.tape if i.kind == "load"]


def checks(nest):
    """Instructions of a nest that may raise."""
    return [i for i in nest.tape if i.kind == "bounds" or i.error >= 0]
