"""Regions in the driver: branches and loops over ranges of steps, told by words of the table.

Nothing is emitted for a region: one function runs all loops of all plans, one all branches. A loop
moves the places of its body's buffers between iterations (the row of buffers' addresses is the
driver's own), and copies at most the last carry::

    iterate:  point the constants at what is outside
              point each carry at its initial value, and what the body writes at one of its places
              while there are trips left, or the condition's steps leave a true byte
                  point slices and records at their row
                  run the steps of the body
                  carry: read what was written, write to the other place
              copy a carry that does not lie in its result

A carry that is updated in place has one place. Where the number of trips is known, the first place
is chosen so that the last one is the result.

A *tape* is a header of three words: address, capacity in bytes, rows. The address of its buffer
is that of the header. Memory comes from ``realloc``; who runs the plan frees it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from ...fusion.loops import FIRST_ROWS
from .calls import call_address
from .context import BUFFERS, ERROR, RUN, WATCH, Words
from .entry import c_function
from .interrupt import Watch
from .loops import counted_loop
from .memory import I64, POINTER

__all__ = ["LOOP_WORDS", "TAPE_WORDS", "emit_regions"]

# Words of a loop. A list is (place from the first word, number of entries).
_TESTED, _HAS_CONDITION, _BODY, _LENGTH, _COUNT, _REVERSE = 0, 2, 3, 5, 6, 7
_INDEX, _HOLDS, _TRIPS, _LIMIT, _TOO_MANY, _NO_MEMORY, _SHORT = range(8, 15)
_LINKS, _CARRIES, _SEQUENCES, _RECORDS = 15, 17, 19, 21
LOOP_WORDS = 23
LINK_WORDS = 2  # buffer outside, buffer inside
CARRY_WORDS = 7  # initial, result, other place, bytes, read, written, tested
ROWS_WORDS = 4  # buffer outside, buffer inside, bytes of a row, whether outside is a tape

# Words of branches: buffer of the number or -1, then the list of parts.
_NUMBER, _PARTS = 0, 1
PART_WORDS = 4  # first step, step after the last, list of links

# Words of a tape.
DATA, CAPACITY, ROWS = range(3)
TAPE_WORDS = 3

_MANY = (1 << 63) - 1
SIGNATURE = ir.FunctionType(ir.VoidType(), [POINTER, POINTER])  # context, words of the region


class _Frame:
    """What the code of a region works on: the context, buffers' addresses, its words."""

    def __init__(self, module: Any, name: str) -> None:
        self.function = ir.Function(module, SIGNATURE, module.get_unique_name(name))
        self.function.linkage = "internal"
        context, words = self.function.args
        self.b = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.context = Words(self.b, context)
        self.words = Words(self.b, words)
        self.buffers = Words(self.b, self.context[BUFFERS])
        self.watch = Watch(self.b, self.context.place(WATCH))

    @contextmanager
    def each(self, at: int, size: int) -> Iterator[Words]:
        """The body of a loop over a list of the region, with the words of an entry."""
        with counted_loop(self.b, I64(0), self.words[at + 1]) as k:
            yield self.words.part(self.b.add(self.words[at], self.b.mul(k, I64(size))))

    def place(self, number: Any) -> Any:
        """Address of a buffer."""
        return self.buffers[self.b.add(number, I64(1))]

    def run(self, first: Any, last: Any) -> None:
        """Run a range of steps."""
        call_address(self.b, self.context[RUN], [self.context.pointer, first, last])

    def move(self, number: Any, address: Any) -> None:
        """Let a buffer lie at an address."""
        self.buffers[self.b.add(number, I64(1))] = address

    def copy(self, target: Any, source: Any, nbytes: Any) -> None:
        """Copy unless both are the same."""
        b = self.b
        with b.if_then(b.icmp_unsigned("!=", target, source)):
            copy = c_function(b.module, "memcpy", POINTER, POINTER, POINTER, I64)
            b.call(copy, [b.inttoptr(target, POINTER), b.inttoptr(source, POINTER), nbytes])

    def link(self, first: Any, count: Any) -> None:
        """Let buffers inside lie where those outside do; the list begins at word ``first``."""
        with counted_loop(self.b, I64(0), count) as k:
            link = self.words.part(self.b.add(first, self.b.mul(k, I64(LINK_WORDS))))
            self.move(link[1], self.place(link[0]))

    def tape(self, number: Any) -> Words:
        """The header of a tape."""
        return Words(self.b, self.place(number))

    def fail(self, error: Any) -> None:
        self.context[ERROR] = error
        self.watch.stop(self.b)

    def fail_unless(self, fine: Any, error: Any) -> None:
        with self.b.if_then(self.b.not_(fine), likely=False):
            self.fail(error)

    def stop_after_an_error(self) -> None:
        error = self.b.icmp_unsigned("!=", self.context[ERROR], I64(0))
        with self.b.if_then(error, likely=False):
            self.watch.stop(self.b)

    def leave_if_stopped(self, done: Any) -> None:
        """Go to the block ``done`` if there was an error or an interrupt."""
        self.stop_after_an_error()
        more = self.b.append_basic_block("more")
        self.b.cbranch(self.watch.stopped(self.b), done, more)
        self.b.position_at_end(more)

    @contextmanager
    def unless_stopped(self) -> Iterator[None]:
        with self.b.if_then(self.b.not_(self.watch.stopped(self.b))):
            yield


def emit_regions(module: Any, b: Any, which: Any) -> Any:
    """The address of the function for loops (``which`` is 0) or for branches (1)."""
    loop, branches = (b.ptrtoint(emit(module), I64) for emit in (_emit_iteration, _emit_branches))
    return b.select(b.icmp_signed("==", which, I64(0)), loop, branches)


def _emit_branches(module: Any) -> Any:
    """``branches(context, words)``: one of several ranges of steps."""
    f = _Frame(module, "branches")
    b, words = f.b, f.words
    number = words[_NUMBER]
    with b.if_else(b.icmp_signed("<", number, I64(0))) as (only, several):
        with only:
            first = b.block
        with several:
            asked = b.load(b.inttoptr(f.place(number), POINTER), typ=I64)
            last = b.sub(words[_PARTS + 1], I64(1))
            asked = b.select(b.icmp_signed("<", asked, I64(0)), I64(0), asked)
            asked = b.select(b.icmp_signed(">", asked, last), last, asked)
            second = b.block
    chosen = b.phi(I64)
    chosen.add_incoming(I64(0), first)
    chosen.add_incoming(asked, second)
    part = words.part(b.add(words[_PARTS], b.mul(chosen, I64(PART_WORDS))))
    f.link(part[2], part[3])
    f.run(part[0], part[1])
    f.stop_after_an_error()
    b.ret_void()
    return f.function


def _emit_iteration(module: Any) -> Any:
    """``iterate(context, words)``: a loop over a range of steps."""
    f = _Frame(module, "iterate")
    b, words = f.b, f.words
    grow = emit_grow(module)
    trips = _emit_trips(f)
    known = b.icmp_signed("<", trips, I64(_MANY))
    f.link(words[_LINKS], words[_LINKS + 1])
    _begin_carries(f, trips, known)
    with b.if_then(known):
        _begin_tapes(f, trips, grow)
    counted = b.alloca(I64)
    b.store(I64(0), counted)
    with f.unless_stopped():
        _emit_loop(f, grow, trips, known, counted)
    with f.unless_stopped():
        done = b.load(counted, typ=I64)
        with f.each(_CARRIES, CARRY_WORDS) as c:
            f.copy(f.place(c[1]), f.place(c[4]), c[3])
        asked = words[_TRIPS]
        with b.if_then(b.icmp_signed(">=", asked, I64(0))):
            b.store(done, b.inttoptr(f.place(asked), POINTER))
        with f.each(_RECORDS, ROWS_WORDS) as r, b.if_then(b.icmp_unsigned("!=", r[3], I64(0))):
            f.tape(r[0])[ROWS] = done
    b.ret_void()
    return f.function


def _emit_trips(f: _Frame) -> Any:
    """How many there are: at least 0; ``_MANY`` where a condition tells."""
    b, words = f.b, f.words
    place = b.alloca(I64)
    b.store(words[_LENGTH], place)
    with b.if_then(b.icmp_signed(">=", words[_COUNT], I64(0))):
        given = b.load(b.inttoptr(f.place(words[_COUNT]), POINTER), typ=I64)
        b.store(b.select(b.icmp_signed("<", given, I64(0)), I64(0), given), place)
    with b.if_then(b.icmp_signed("<", b.load(place, typ=I64), I64(0))):
        b.store(I64(_MANY), place)  # a condition tells, or the rows of the first sequence
        with b.if_then(b.icmp_unsigned("==", words[_HAS_CONDITION], I64(0))):
            first = words.part(words[_SEQUENCES])
            b.store(f.tape(first[0])[ROWS], place)
    return b.load(place, typ=I64)


def _begin_carries(f: _Frame, trips: Any, known: Any) -> None:
    """The first iteration reads initial values, or their copies where they are updated in place."""
    b = f.b
    even = b.icmp_unsigned("==", b.and_(trips, I64(1)), I64(0))
    other_first = b.and_(known, even)
    with f.each(_CARRIES, CARRY_WORDS) as c:
        initial, result, other = f.place(c[0]), f.place(c[1]), f.place(c[2])
        in_place = b.icmp_signed("==", c[1], c[2])
        with b.if_then(in_place):
            f.copy(result, initial, c[3])
        start = b.select(in_place, result, initial)
        f.move(c[4], start)
        f.move(c[6], start)
        f.move(c[5], b.select(other_first, other, result))


def _begin_tapes(f: _Frame, trips: Any, grow: Any) -> None:
    """Room for what a counted loop records, a look at the length of what it reads."""
    b, words = f.b, f.words
    with f.each(_RECORDS, ROWS_WORDS) as r, b.if_then(b.icmp_unsigned("!=", r[3], I64(0))):
        room = b.call(grow, [f.tape(r[0]).pointer, trips, r[2]])
        f.fail_unless(room, words[_NO_MEMORY])
    with f.each(_SEQUENCES, ROWS_WORDS) as r, b.if_then(b.icmp_unsigned("!=", r[3], I64(0))):
        enough = b.icmp_signed(">=", f.tape(r[0])[ROWS], trips)
        f.fail_unless(enough, words[_SHORT])


def _emit_loop(f: _Frame, grow: Any, trips: Any, known: Any, counted: Any) -> None:
    b, words = f.b, f.words
    head, test = b.append_basic_block("next"), b.append_basic_block("test")
    body, done = b.append_basic_block("iteration"), b.append_basic_block("done")
    has_condition = b.icmp_unsigned("!=", words[_HAS_CONDITION], I64(0))
    index = b.inttoptr(f.place(words[_INDEX]), POINTER)
    down = b.icmp_unsigned("!=", words[_REVERSE], I64(0))
    last = b.sub(trips, I64(1))
    has_rows = b.icmp_signed(">", b.add(words[_SEQUENCES + 1], words[_RECORDS + 1]), I64(0))
    b.branch(head)

    b.position_at_end(head)
    i = b.load(counted, typ=I64)
    b.cbranch(b.icmp_signed("<", i, trips), test, done)

    b.position_at_end(test)
    with b.if_then(has_condition):
        _emit_test(f, i, done)
    b.branch(body)

    b.position_at_end(body)
    row = b.select(down, b.sub(last, i), i)
    b.store(row, index)
    with b.if_then(has_rows):
        _emit_rows(f, grow, row, known)
        f.leave_if_stopped(done)
    f.run(words[_BODY], words[_BODY + 1])
    f.watch.worked(b, I64(1))
    f.leave_if_stopped(done)
    with f.each(_CARRIES, CARRY_WORDS) as c:
        written = f.place(c[5])
        f.move(c[4], written)
        f.move(c[6], written)
        f.move(c[5], b.xor(b.xor(f.place(c[1]), f.place(c[2])), written))
    b.store(b.add(i, I64(1)), counted)
    b.branch(head)
    b.position_at_end(done)


def _emit_test(f: _Frame, i: Any, done: Any) -> None:
    """Run the condition's steps; leave the loop if it is false, or if there were enough trips."""
    b, words = f.b, f.words
    f.run(words[_TESTED], words[_TESTED + 1])
    f.leave_if_stopped(done)
    flag = b.load(b.inttoptr(f.place(words[_HOLDS]), POINTER), typ=ir.IntType(8))
    more = b.append_basic_block("holds")
    b.cbranch(b.icmp_unsigned("!=", flag, ir.IntType(8)(0)), more, done)
    b.position_at_end(more)
    with b.if_then(b.icmp_signed("==", i, words[_LIMIT]), likely=False):
        f.fail(words[_TOO_MANY])
    f.leave_if_stopped(done)


def _emit_rows(f: _Frame, grow: Any, row: Any, known: Any) -> None:
    b, words = f.b, f.words

    def point(r: Words) -> None:
        place = f.place(r[0])
        tape = b.icmp_unsigned("!=", r[3], I64(0))
        with b.if_else(tape) as (grown, fixed):
            with grown:
                data = Words(b, place)[DATA]
                first = b.block
            with fixed:
                second = b.block
        base = b.phi(I64)
        base.add_incoming(data, first)
        base.add_incoming(place, second)
        f.move(r[1], b.add(base, b.mul(row, r[2])))

    with f.each(_RECORDS, ROWS_WORDS) as r:
        with b.if_then(b.and_(b.not_(known), b.icmp_unsigned("!=", r[3], I64(0)))):
            rows = b.add(row, I64(1))
            rows = b.select(b.icmp_signed("<", rows, I64(FIRST_ROWS)), I64(FIRST_ROWS), rows)
            room = b.call(grow, [f.tape(r[0]).pointer, rows, r[2]])
            f.fail_unless(room, words[_NO_MEMORY])
        point(r)
    with f.each(_SEQUENCES, ROWS_WORDS) as r:
        point(r)


def emit_grow(module: Any) -> Any:
    """``bool grow(header, rows, bytes of a row)``: room for so many rows, doubled if need be."""
    signature = ir.FunctionType(ir.IntType(1), [POINTER, I64, I64])
    function = ir.Function(module, signature, module.get_unique_name("grow"))
    function.linkage = "internal"
    header, rows, nbytes = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    words = Words(b, header)
    needed, capacity = b.mul(rows, nbytes), words[CAPACITY]
    with b.if_then(b.icmp_signed("<=", needed, capacity)):
        b.ret(ir.IntType(1)(1))
    doubled = b.shl(capacity, I64(1))
    size = b.select(b.icmp_signed(">", needed, doubled), needed, doubled)
    resize = c_function(module, "realloc", POINTER, POINTER, I64)
    found = b.call(resize, [b.inttoptr(words[DATA], POINTER), size])
    with b.if_then(b.icmp_unsigned("==", found, POINTER(None)), likely=False):
        b.ret(ir.IntType(1)(0))
    words[DATA] = b.ptrtoint(found, I64)
    words[CAPACITY] = size
    b.ret(ir.IntType(1)(1))
    return function
