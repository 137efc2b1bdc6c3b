"""What ``docs/guide/errors.md`` says of the classes; its messages are checked by running it."""

import pytest

import tilegrad as tg

BASES = {
    tg.ShapeError: ValueError,
    tg.DTypeError: TypeError,
    tg.TracerError: TypeError,
    tg.UnsupportedError: NotImplementedError,
    tg.ConvergenceError: RuntimeError,
    tg.DeletedError: RuntimeError,
}


@pytest.mark.parametrize(("ours", "pythons"), BASES.items())
def test_classes_are_those_that_python_would_use(ours, pythons) -> None:
    assert issubclass(ours, tg.TilegradError)
    assert issubclass(ours, pythons)


def test_what_is_unsupported_says_which_op_and_where() -> None:
    error = tg.UnsupportedError("no", op="sort", device="cuda")
    assert (error.op, error.device, str(error)) == ("sort", "cuda", "no")
