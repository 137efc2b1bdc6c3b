"""Loops and branches at their edges: what must not run does not, whatever the body keeps aside."""

import numpy as np
import pytest

import tilegrad as tg

# Each fails, or never ends, if it is computed at all: of (a, b) that make it so.
TRAPS = {
    "division": lambda a, b: a // b,
    "index": lambda a, b: tg.arange(3)[a],
    "factor": lambda a, b: tg.astype(tg.linalg.cholesky(tg.full((2, 2), -a * 1.0))[0, 0], "int64"),
    "endless": lambda a, b: tg.while_loop(lambda v: v > 0, lambda v: v + b, a),
    "callback": lambda a, b: tg.pure_callback(lambda: 1 / 0, tg.ShapeDtype((), "int64")),
}


@pytest.mark.parametrize("trap", TRAPS.values(), ids=TRAPS)
@pytest.mark.parametrize("kind", ["count", "while", "scan", "inner"])
def test_a_loop_of_no_trips_computes_nothing(kind, trap):
    """Though what its body computes is the same in each step, and could be moved out."""

    def program(a, b, n):
        if kind == "count":
            return tg.fori_loop(0, n, lambda i, c: c + trap(a, b), 7)
        if kind == "while":
            return tg.while_loop(lambda c: c < n, lambda c: c + trap(a, b), 7)
        if kind == "scan":
            return tg.scan(lambda c, _: (c + trap(a, b), None), 7, length=0)[0]
        inner = lambda c, _: (tg.fori_loop(0, n, lambda i, c: c + trap(a, b), c), None)  # noqa: E731
        return tg.scan(inner, 7, length=2)[0]

    assert int(tg.jit(program)(5, 0, 0)) == 7


def test_what_was_computed_before_is_captured():
    """A factorization made outside of a loop that may not run stays outside."""

    def program(a, b, n):
        low = tg.linalg.cholesky(a)
        step = lambda i, c: tg.linalg.solve_triangular(low, c, lower=True)  # noqa: E731
        return tg.fori_loop(0, n, step, b)

    a, b = np.array([[4.0, 2.0], [2.0, 5.0]]), np.array([8.0, 6.0])
    graph = tg.trace(program)(a, b, 2)
    assert "cholesky" in [node.op.name for node in graph.nodes()]
    low = np.linalg.cholesky(a)
    expected = np.linalg.solve(low, np.linalg.solve(low, b))
    np.testing.assert_allclose(np.asarray(tg.jit(program)(a, b, 2)), expected, rtol=1e-14)


class Holder:
    last = None


@pytest.mark.parametrize("transform", [lambda f: f, tg.grad], ids=["value", "grad"])
def test_functions_that_keep_what_they_compute(transform):
    """A body may write its intermediate results to an object: they are not captured values."""
    holder, history = Holder(), []

    def double(x):
        holder.last = x * 2
        history.append(holder.last)
        return holder.last + 1

    branch = lambda x: tg.cond(x > 0, double, lambda x: x, x)  # noqa: E731
    loop = lambda x: tg.fori_loop(0, 3, lambda i, c: double(c), x)  # noqa: E731
    expected = {branch: (7.0, 2.0), loop: (31.0, 8.0)}
    for program, pair in expected.items():
        for _ in range(2):  # again, with what the first trace left behind
            got = tg.jit(lambda x, program=program: transform(program)(x))(3.0)
            assert float(got) == pair[transform is tg.grad]


def test_a_range_whose_length_overflows_is_empty():
    program = tg.jit(lambda a, b: tg.fori_loop(a, b, lambda i, c: c + 1, 0))
    assert int(program(2**62, -(2**62) - 5)) == 0
    assert int(program(2**63 - 3, 2**63 - 1)) == 2


@pytest.mark.parametrize("count", [63, 64, 65, 300])
def test_any_number_of_carries(count):
    """More results than 64 of one node; against the recurrence in NumPy."""

    def program(x, n):
        init = [x * k for k in range(count)]
        step = lambda i, c: [c[-1], *[a + 0.5 * b for a, b in zip(c[1:], c[:-1], strict=True)]]  # noqa: E731
        return tg.stack(tg.fori_loop(0, n, step, init))

    c = [2.0 * k for k in range(count)]
    for _ in range(3):
        c = [c[-1], *[a + 0.5 * b for a, b in zip(c[1:], c[:-1], strict=True)]]
    np.testing.assert_array_equal(np.asarray(tg.jit(program)(2.0, 3)), c)


def test_no_lanes_at_all():
    def shifted(x, n):
        return tg.fori_loop(0, n, lambda i, c: c.at[i].set(c[i] * 0.5 + tg.sin(c[2 - i])), x)

    x, n = np.zeros((0, 3)), np.zeros(0, np.int64)
    total = lambda x, n: tg.sum(shifted(x, n))  # noqa: E731
    for f in (shifted, tg.grad(total)):
        assert tg.jit(tg.vmap(f))(x, n).shape == (0, 3)
    assert tg.jit(tg.grad(lambda x: tg.sum(tg.vmap(total)(x, n))))(x).shape == (0, 3)


@pytest.mark.parametrize("unroll", [2, 3])
def test_unrolled_scans_keep_to_their_checkpoint(unroll):
    program = lambda x: tg.scan(  # noqa: E731
        lambda c, t: (tg.sin(c * t), None), x, np.ones(8), unroll=unroll, checkpoint="sqrt"
    )[0]
    graph = tg.trace(program)(0.5)
    loops = [node for node in graph.nodes() if node.op.name == "loop"]
    assert loops
    assert all(node.param("checkpoint") == "sqrt" for node in loops)


@pytest.mark.parametrize("wrap", [lambda f: f, tg.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: tg.scan(lambda c, t: (c, t), x, length=2.5), TypeError, "scan: length: .*float"),
        (lambda x: tg.scan(lambda c, t: (c, t), x, length=-1), ValueError, "length: .* 0 or more"),
        (lambda x: tg.scan(lambda c, t: (c, t), x, length=2, unroll=0), ValueError, "unroll: .* 1"),
        (lambda x: tg.map(lambda t: t, x[None], batch_size=0), ValueError, "batch_size: .* 1 or"),
        (lambda x: tg.fori_loop(0, 2, lambda i, c: c, x, checkpoint=0), ValueError, "checkpoint"),
        (
            lambda x: tg.while_loop(lambda c: c < 0, lambda c: c, x, max_steps=-1),
            ValueError,
            "max_steps: expected 0 or more, got -1",
        ),
        (
            lambda x: tg.while_loop(lambda c: c < 0, lambda c: c, x, checkpoint=64),
            ValueError,
            "'sqrt': the length is not known",
        ),
    ],
)
def test_numbers_that_make_no_sense(wrap, call, error, message):
    with pytest.raises(error, match=message):
        wrap(call)(tg.asarray(1.0))


def test_branches_are_told_apart_by_their_place():
    with pytest.raises(tg.ShapeError, match=r"true_fun \(<lambda>\).*like.*false_fun \(<lambda>\)"):
        tg.jit(lambda x: tg.cond(x > 0, lambda: x, lambda: tg.ones(2)))(1.0)
    branches = [lambda x: x, lambda x: -x, lambda x: x > 0]
    with pytest.raises(tg.DTypeError, match=r"branches\[2\] \(<lambda>\).*branches\[0\]"):
        tg.jit(lambda k, x: tg.switch(k, branches, x))(1, 1.0)


def test_effects_of_a_condition_happen(capsys):
    def holds(c):
        tg.debug.print("test {c}", c=c)
        return c < 3

    program = lambda n: tg.while_loop(holds, lambda c: c + 1, n)  # noqa: E731
    expected = "test 1\ntest 2\ntest 3\n"
    assert int(program(1)) == int(tg.jit(program)(1)) == 3
    assert capsys.readouterr().out == 2 * expected
    tg.jit(lambda n: (program(n), n)[1])(1)  # nobody reads the loop's result
    assert capsys.readouterr().out == expected
