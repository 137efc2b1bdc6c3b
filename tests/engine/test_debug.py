"""``debug.print``, ``debug.check``, ``debug.callback``: effects in the order of the program."""

import numpy as np
import pytest

import tilegrad as tg

X = np.array([0.3, -1.2, 2.0])


def noisy(x):
    tg.debug.print("x {}", x)
    y = 2 * x
    tg.debug.print("y {y:.2f}", y=y)
    tg.debug.print("here")
    tg.debug.print("x {}", x)
    return y


ONCE = "x 3.0\ny 6.00\nhere\nx 3.0\n"


@pytest.mark.parametrize("f", [noisy, tg.jit(noisy)], ids=["eager", "jit"])
def test_each_call_prints_in_order(f, capsys):
    """Equal prints are not merged, unused ones not dropped; a second call prints again."""
    assert float(f(3.0)) == 6.0
    assert capsys.readouterr().out == ONCE
    assert float(f(3.0)) == 6.0
    assert capsys.readouterr().out == ONCE


def test_eager_prints_come_at_once(capsys):
    x = tg.ones(2) * 3
    tg.debug.print("{}", x)
    assert capsys.readouterr().out == "[3. 3.]\n"


def test_a_program_inside_another(capsys):
    f = tg.jit(noisy)
    g = tg.jit(lambda x: f(x) + f(x))
    assert float(g(3.0)) == 12.0
    assert capsys.readouterr().out == ONCE + ONCE
    h = tg.jit(lambda x: x + f(3.0))  # its arguments are known, yet it belongs to the program
    capsys.readouterr()
    for _ in range(2):
        assert float(h(1.0)) == 7.0
        assert capsys.readouterr().out == ONCE


@pytest.mark.parametrize("wrap", [lambda f: f, tg.jit], ids=["eager", "jit"])
def test_vmap_prints_each_example(wrap, capsys):
    f = wrap(tg.vmap(noisy))
    for _ in range(2):
        np.testing.assert_array_equal(f(np.array([1.0, 3.0])), [2.0, 6.0])
        out = capsys.readouterr().out
        assert out == "x 1.0\nx 3.0\ny 2.00\ny 6.00\nhere\nx 1.0\nx 3.0\n"


def test_vmap_twice_and_arguments_for_all(capsys):
    def f(a, b):
        tg.debug.print("{} {}", a, b)
        return a

    tg.vmap(lambda a: tg.vmap(lambda b: f(a, b))(np.array([1, 2])))(np.array([3, 4]))
    assert capsys.readouterr().out == "3 1\n3 2\n4 1\n4 2\n"
    tg.vmap(f, (0, None))(np.array([3, 4]), 5)
    assert capsys.readouterr().out == "3 5\n4 5\n"


@pytest.mark.parametrize("wrap", [lambda f: f, tg.jit], ids=["eager", "jit"])
def test_derivatives_print_the_function_once(wrap, capsys):
    for transform in (tg.grad, lambda f: lambda x: tg.jvp(f, (x,), (1.0,))[1], tg.hessian):
        wrap(transform(noisy))(3.0)
        assert capsys.readouterr().out == ONCE


def test_a_look_at_cotangents(capsys):
    @tg.custom_vjp
    def look(x):
        return x

    look.defvjp(lambda x: (x, None), lambda _, bar: tg.debug.print("bar {}", bar) or (bar,))
    f = lambda x: look(x * x)  # noqa: E731
    for g in (tg.grad(f), tg.jit(tg.grad(f))):
        assert float(g(3.0)) == 6.0
        assert capsys.readouterr().out == "bar 1.0\n"
    tg.vmap(tg.grad(f))(X)
    assert capsys.readouterr().out == "bar 1.0\n"  # the same for all examples


def test_a_tangent_that_is_only_transposed_has_no_value(capsys):
    f = tg.custom_jvp(lambda x: x * x)

    @f.defjvp
    def f_jvp(primals, tangents):
        tg.debug.print("dot {}", tangents[0])
        return f(*primals), 2 * primals[0] * tangents[0]

    tg.jvp(f, (3.0,), (1.0,))
    assert capsys.readouterr().out == "dot 1.0\n"
    for g in (tg.grad(f), tg.jit(tg.grad(f))):
        assert float(g(3.0)) == 6.0
        assert capsys.readouterr().out == ""


def test_formats_are_checked_when_written():
    for call, kind, message in [
        (lambda: tg.debug.print("{} {}", 1.0), IndexError, "no value for 1 of"),
        (lambda: tg.debug.print("{a}", b=1.0), KeyError, "no value for a of"),
        (lambda: tg.debug.print("{}", 1.0, 2.0), TypeError, "does not show 1"),
        (lambda: tg.debug.print("{", 1.0), ValueError, "debug.print: "),
        (lambda: tg.debug.check(True, "{x}"), KeyError, "debug.check: no value for x"),
    ]:
        with pytest.raises(kind, match=message):
            call()
    tg.debug.print("{{}} {0:{width}.1f} {0}", 1.0, width=6)


def test_fields_and_other_objects(capsys):
    tg.jit(lambda p: tg.debug.print("{p[a]} {name!r} {0[1]}", [p["a"], p["b"]], p=p, name="n"))(
        {"a": 1.0, "b": 2}
    )
    assert capsys.readouterr().out == "1.0 'n' 2\n"


# ---------------------------------------------------------------------------------------- check


def root(x):
    tg.debug.check(tg.all(x >= 0), "expected x >= 0, got {} ({name})", x, name="root")
    return tg.sqrt(x)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda f: f,
        tg.jit,
        tg.grad,
        lambda f: tg.jit(tg.grad(f)),
        lambda f: lambda x: tg.jit(tg.vmap(f))(tg.stack([tg.asarray(4.0), x]))[1],
    ],
    ids=["eager", "jit", "grad", "jit-grad", "vmap"],
)
def test_check(wrap):
    assert np.isfinite(float(wrap(root)(4.0)))
    with pytest.raises(tg.CheckError, match=r"expected x >= 0, got -4\.0 \(root\)") as found:
        wrap(root)(-4.0)
    np.testing.assert_array_equal(found.value.values, [-4.0])
    assert "test_debug.py" in str(found.value)
    assert isinstance(found.value, tg.TilegradError | AssertionError)


def test_check_of_many_elements_and_wrong_conditions():
    with pytest.raises(tg.CheckError, match="a condition does not hold"):
        tg.jit(lambda x: tg.debug.check(x > 0) or x)(X)
    tg.debug.check(X < 3)
    tg.debug.check(True)
    with pytest.raises(tg.DTypeError, match=r"pred: expected bool, got f64\[3\]"):
        tg.debug.check(X)


def test_a_failing_check_comes_before_what_follows(capsys):
    def f(x):
        tg.debug.print("before")
        tg.debug.check(x > 0, "no")
        tg.debug.print("after")
        return x

    for g in (f, tg.jit(f)):
        with pytest.raises(tg.CheckError, match="no"):
            g(-1.0)
        assert capsys.readouterr().out == "before\n"


# ------------------------------------------------------------------------------------- callback


def test_callback():
    seen = []
    f = tg.jit(lambda x: tg.debug.callback(lambda v, tag: seen.append((tag, v)), x, tag="x") or x)
    assert [float(f(v)) for v in (1.0, 2.0)] == [1.0, 2.0]
    assert [(tag, float(v)) for tag, v in seen] == [("x", 1.0), ("x", 2.0)]
    assert not seen[0][1].flags.writeable
    with pytest.raises(TypeError, match="expected a function"):
        tg.debug.callback(3)


def test_an_exception_in_a_callback_happens_once():
    calls = []

    def refuse(x):
        calls.append(float(x))
        raise ValueError("refused")

    def f(x):
        tg.debug.callback(refuse, x + 1)
        return x

    for g in (f, tg.jit(f)):
        calls.clear()
        with pytest.raises(ValueError, match="refused"):
            g(1.0)
        assert calls == [2.0]


def test_lowered_text_shows_effects():
    text = tg.jit(noisy).lower(3.0).as_text("optimized")
    assert text.count("= effect(") == 4


# ------------------------------------------------------------------------------------- regions


def counted(x):
    def body(i, c):
        tg.debug.print("{} {}", i, c)
        tg.debug.print("here")
        return c * x

    return tg.fori_loop(0, 3, body, x)


def open_ended(x):
    def body(c):
        tg.debug.print("{} {}", *c)
        return c[0] + 1, c[1] * x

    return tg.while_loop(lambda c: c[0] < 3, body, (0, x))[1]


def scanned(x):
    def step(c, y):
        tg.debug.print("{} {}", c, y)
        return c * x, c * y

    last, ys = tg.scan(step, x, np.arange(3.0))
    return last + tg.sum(ys)


def branching(x):
    def up(x):
        tg.debug.print("up")
        tg.debug.print("{}", x)
        return x * x

    def down(x):
        tg.debug.print("down {}", x)
        return -x

    return tg.cond(x > 0, up, down, x) + tg.cond(x > 5, up, lambda x: 2 * x, x)


PRINTED = {
    counted: "0 2.0\nhere\n1 4.0\nhere\n2 8.0\nhere\n",
    open_ended: "0 2.0\n1 4.0\n2 8.0\n",
    scanned: "2.0 0.0\n4.0 1.0\n8.0 2.0\n",
    branching: "up\n2.0\n",
}
WAYS = {
    "eager": lambda f: f,
    "jit": tg.jit,
    "value_and_grad": lambda f: tg.jit(tg.value_and_grad(f)),
    "grad": lambda f: tg.jit(tg.grad(f)),
    "jvp": lambda f: tg.jit(lambda x: tg.jvp(f, (x,), (1.0,))),
    "hessian": lambda f: tg.jit(tg.hessian(f)),
    "eager grad": tg.grad,
    "nested": lambda f: tg.jit(lambda x: tg.fori_loop(0, 1, lambda i, c: f(x), x)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", PRINTED, ids=lambda f: f.__name__)
def test_loops_and_branches_print_each_time_once(f, way, capsys):
    run = WAYS[way](f)
    for _ in range(2):
        tg.eval(run(2.0))
        assert capsys.readouterr().out == PRINTED[f]


def test_loops_under_vmap_print_each_example(capsys):
    tg.eval(tg.vmap(counted)(np.array([2.0, -1.0])))
    assert capsys.readouterr().out == (
        "0 2.0\n0 -1.0\nhere\n1 4.0\n1 1.0\nhere\n2 8.0\n2 -1.0\nhere\n"
    )


def test_checks_in_loops():
    def body(i, c):
        tg.debug.check(c < 5, "c is {} in turn {}", c, i)
        return 2 * c

    f = lambda x: tg.fori_loop(0, 5, body, x)  # noqa: E731
    for run in (f, tg.jit(f), tg.jit(tg.grad(f))):
        with pytest.raises(tg.CheckError, match=r"c is 8\.0 in turn 2"):
            tg.eval(run(2.0))
        assert np.isfinite(float(run(0.1)))


def test_callbacks_in_loops():
    f = lambda x: tg.fori_loop(  # noqa: E731
        0, 3, lambda i, c: tg.pure_callback(np.sin, tg.ShapeDtype(()), c) * x, x
    )
    expected = np.sin(np.sin(np.sin(0.7) * 0.7) * 0.7) * 0.7
    np.testing.assert_allclose(float(tg.jit(f)(0.7)), expected, rtol=1e-15)


def test_branches_under_vmap_happen_for_examples_that_take_them(capsys):
    def up(x):
        tg.debug.check(x > 0, "expected x > 0, got {}", x)
        tg.debug.print("up {}", x)
        tg.debug.print("here")
        return tg.sqrt(x)

    def down(x):
        tg.debug.print("down {}", x)
        return -x

    f = tg.vmap(lambda x: tg.cond(x > 0, up, down, x))
    np.testing.assert_array_equal(f(np.array([4.0, -1.0, 9.0])), [2.0, 1.0, 3.0])
    out = capsys.readouterr().out
    assert sorted(out.splitlines()) == ["down -1.0", "here", "up 4.0", "up 9.0"]
    np.testing.assert_array_equal(tg.jit(f)(np.array([-4.0, -1.0])), [4.0, 1.0])
    assert capsys.readouterr().out == "down -4.0\ndown -1.0\n"


def test_checks_in_a_loop_are_not_of_examples_that_are_done():
    def body(c):
        tg.debug.check(c < 5, "c is {}", c)
        return c + 2

    f = tg.vmap(lambda x: tg.while_loop(lambda c: c < 5, body, x))
    np.testing.assert_array_equal(f(np.array([0.0, 4.0, 9.0])), [6.0, 6.0, 9.0])
