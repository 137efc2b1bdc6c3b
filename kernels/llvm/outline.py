"""Functions for expensive scalar programs, shared by all the code of a plan.

Emitted in line, an exponential costs a few nanoseconds less a vector; a hundred of them cost a
second to compile. A plan that has many calls them instead: each program is then emitted once for
scalars and once for vectors. Inline or not, the instructions and so the bits are the same.

Long plans do without LLVM's loop strength reduction too. It looks for the best set of running
addresses in each loop, which took 40 % of the compile time of a plan of 5,000 nodes and makes its
loops at most 8 % faster, most of them not at all. It can only be switched off for a whole process;
but it leaves alone what is not a function of the loop counter that it can see.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from ...fusion.realize import weight_of
from ...ir.dtypes import DType
from ...ir.graph import Op
from .form import Form
from .handler import LLVMHandler, Typed, llvm_type

if TYPE_CHECKING:
    from .lanes_form import LaneForm

__all__ = ["call_program", "hidden", "is_heavy", "should_hide_counters", "should_outline"]

HEAVY = 20
# Measured: up to this many uses, compiling them in line takes less than 0.1 s.
MOST_INLINE = 8
# Loads and stores of a plan up to which the search for their addresses takes less than 0.1 s.
MOST_ACCESSES = 256


def is_heavy(op: Op) -> bool:
    """Whether an op's program is worth a function of its own."""
    return weight_of(op) >= HEAVY


def should_outline(forms: Iterable[Form | LaneForm]) -> bool:
    """Whether the code of these steps should share its expensive programs."""
    return sum(is_heavy(op) for form in forms for op in form.ops()) > MOST_INLINE


def should_hide_counters(forms: Iterable[Form]) -> bool:
    """Whether there are so many accesses that LLVM should take their addresses as they are."""
    accesses = 0
    for form in forms:
        accesses += sum(1 for i in form.nest.tape if i.kind == "load") + len(form.nest.stores)
    return accesses > MOST_ACCESSES


def hidden(b: Any, i: Any) -> Any:
    """The i64 ``i``, of which LLVM knows nothing any more: an empty piece of assembler."""
    return b.asm(ir.FunctionType(i.type, [i.type]), "", "=r,0", [i], False)


def call_program(
    h: LLVMHandler, op: Op, args: Sequence[Typed], params: dict[str, Any], result: DType
) -> Typed:
    """Call the function of a real elementwise op at the width of ``h``; emit it if it is new."""
    module = h.builder.module
    kinds = "_".join(x.dtype.short for x in args)
    extra = "".join(f".{value}" for value in params.values())
    name = f"tilegrad.{op.name}.{kinds}{extra}.w{h.width}"
    function = module.globals.get(name)
    if function is None:
        types = [llvm_type(x.dtype, h.width) for x in args]
        signature = ir.FunctionType(llvm_type(result, h.width), types)
        function = ir.Function(module, signature, name)
        function.linkage = "internal"
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        inner = LLVMHandler(builder, h.width)
        operands = [Typed(v, x.dtype) for v, x in zip(function.args, args, strict=True)]
        builder.ret(op.scalar(inner, *operands, **params).value)  # type: ignore[misc]
    return Typed(h.builder.call(function, [x.value for x in args]), result)
