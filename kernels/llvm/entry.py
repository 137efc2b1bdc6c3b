"""The doorway from Python into compiled code, emitted beside it.

::

    PyObject *entry(PyObject *self, PyObject *const *args, Py_ssize_t count)

has the calling convention ``METH_FASTCALL`` of CPython. It reads its arguments (the rest of them is
read by ``run`` where they lie, so that code serves any number of arrays), lets go of the
interpreter lock, calls ``i64 run(i64, ...)`` and makes a Python integer of the result; ``NULL`` if
``run`` came back with a Python error set (see :mod:`.interrupt`). Because it is part of the object
file, a plan found on disk is callable without numba.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from .memory import I32, I64, POINTER

__all__ = ["INTEGER", "OBJECT", "REST", "c_function", "emit_entry"]

# Kinds of parameters. An object's address is passed on: `id(argument)`, at no cost. REST comes last
# and stands for any number of objects: the address of a row of theirs.
INTEGER, OBJECT, REST = "i", "o", "*"
_VOID = ir.VoidType()


def c_function(module: Any, name: str, result: Any, *operands: Any) -> Any:
    """The declaration of a C function in ``module``."""
    found = module.globals.get(name)
    if found is None:
        found = ir.Function(module, ir.FunctionType(result, operands), name)
    return found


def emit_entry(module: Any, name: str, kinds: str, run: Any) -> None:
    """Emit the entry ``name`` of ``run``, whose parameters are of these kinds."""
    signature = ir.FunctionType(POINTER, [POINTER, POINTER, I64])
    function = ir.Function(module, signature, name)
    _, arguments, count = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    fixed = kinds.removesuffix(REST)
    wrong = "!=" if fixed == kinds else "<"
    with b.if_then(b.icmp_signed(wrong, count, I64(len(fixed))), likely=False):
        b.call(c_function(module, "PyErr_BadArgument", I32), [])
        b.ret(POINTER(None))
    values = [_argument(b, arguments, k, kind) for k, kind in enumerate(kinds)]
    state = b.call(c_function(module, "PyEval_SaveThread", POINTER), [])
    result = b.call(run, values)
    b.call(c_function(module, "PyEval_RestoreThread", _VOID, POINTER), [state])
    failure = b.call(c_function(module, "PyErr_Occurred", POINTER), [])
    with b.if_then(b.icmp_unsigned("!=", failure, POINTER(None)), likely=False):
        b.ret(POINTER(None))
    b.ret(b.call(c_function(module, "PyLong_FromLongLong", POINTER, I64), [result]))


def _argument(b: Any, arguments: Any, k: int, kind: str) -> Any:
    place = b.gep(arguments, [I64(k)], source_etype=POINTER)
    if kind == REST:
        return b.ptrtoint(place, I64)
    item = b.load(place, typ=POINTER)
    if kind == OBJECT:
        return b.ptrtoint(item, I64)
    return b.call(c_function(b.module, "PyLong_AsLongLong", I64, POINTER), [item])
