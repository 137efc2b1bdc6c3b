"""Reads graph text back: ``parse(text(g))`` is the program ``g``."""

from __future__ import annotations

import base64
import json
import math
import re
import struct
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from .collector import no_collection
from .dtypes import ALL, DType
from .errors import TilegradError
from .graph import Graph, Literal, Node, Value
from .ops import OPS
from .types import GROWING, TensorType

__all__ = ["ParseError", "parse"]

_TOKEN = re.compile(
    r"""(?P<skip>[ \t\r\n]+|\#[^\n]*)
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<value>%\d+)
      | (?P<nan>nan\(0x[0-9a-f]+\))
      | (?P<number>-?(?:\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+|\d+|inf\b))
      | (?P<word>[A-Za-z_][A-Za-z0-9_.]*)
      | (?P<mark>[()\[\]{},:=~<?])""",
    re.VERBOSE,
)
_DTYPES = {d.short: d for d in ALL}
_WORDS = {"None": None, "True": True, "False": False, "inf": math.inf, "nan": math.nan}


class ParseError(TilegradError, ValueError):
    """Text that is not a graph: the message names the line and what was expected there."""


@no_collection()
def parse(source: str) -> Graph:
    """The graph that ``source`` spells.

    Parameters
    ----------
    source : str
        Text as :func:`.text.text` prints it.

    Returns
    -------
    Graph
        Fresh nodes; types are those of the text (:func:`.verify.verify` derives them anew),
        ``data`` nodes are without data.

    Raises
    ------
    ParseError
    """
    parser = _Parser(source)
    graph = parser.graph()
    if parser.kind != "end":
        parser.fail("the end of the text")
    return graph


class _Parser:
    """One token of look-ahead over the text."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = self._scan()
        self.advance()

    def _scan(self) -> Iterator[tuple[str, str, int]]:
        position = 0
        for match in _TOKEN.finditer(self.source):
            if match.start() != position:
                break
            position = match.end()
            kind = match.lastgroup
            if kind != "skip":
                yield kind or "", match.group(), match.start()
        if position != len(self.source):
            yield "bad", self.source[position], position
        yield "end", "the end", position

    # -------------------------------------------------------------------------- tokens

    def advance(self) -> str:
        """Step over the current token; returns its text."""
        spelled = getattr(self, "token", "")
        self.kind, self.token, self.position = next(self.tokens)
        return spelled

    def fail(self, expected: str) -> NoReturn:
        line = self.source.count("\n", 0, self.position) + 1
        raise ParseError(f"parse: line {line}: expected {expected}, got {self.token!r}")

    def take(self, kind: str, expected: str) -> str:
        if self.kind != kind:
            self.fail(expected)
        return self.advance()

    def mark(self, token: str) -> None:
        if self.token != token or self.kind == "string":
            self.fail(repr(token))
        self.advance()

    def at(self, token: str) -> bool:
        return self.token == token and self.kind != "string"

    def skip(self, token: str) -> bool:
        if self.at(token):
            self.advance()
            return True
        return False

    # -------------------------------------------------------------------------- grammar

    def graph(self) -> Graph:
        """``graph name(inputs) { statements return values }``"""
        if not self.at("graph"):
            self.fail("'graph'")
        self.advance()
        name = self.take("word", "the name of the graph")
        values: dict[str, Value] = {}
        inputs: list[Node] = []
        self.mark("(")
        while not self.at(")"):
            label = self.take("value", "an input such as %0")
            title = json.loads(self.take("string", "the input's name in quotes"))
            self.mark(":")
            node = _input(title, self.type())
            inputs.append(node)
            self.define(values, label, Value(node, 0))
            if not self.skip(","):
                break
        self.mark(")")
        self.mark("{")
        while not self.at("return"):
            self.statement(values)
        self.advance()
        outputs = self.uses(values)
        self.mark("}")
        return Graph(tuple(inputs), outputs, name)

    def statement(self, values: dict[str, Value]) -> None:
        """``%3: f64[4] = sin(%2) {params}``"""
        labels: list[str] = []
        types: list[TensorType] = []
        while True:
            labels.append(self.take("value", "a value such as %0, or 'return'"))
            self.mark(":")
            types.append(self.type())
            if not self.skip(","):
                break
        self.mark("=")
        name = self.take("word", "the name of an op")
        op = OPS.get(name)
        if op is None:
            raise ParseError(f"parse: {labels[0]}: there is no op {name!r}")
        operands: tuple[Value, ...] = ()
        params: tuple[tuple[str, Any], ...]
        if name == "constant":
            literal = self.literal(types[0])
            params = (("literal", literal), ("weak", types[0].weak))
        elif name == "data":
            params = (("type", types[0]),)
        elif name == "input":
            title = json.loads(self.take("string", "the input's name in quotes"))
            self.define(values, labels[0], Value(_input(title, types[0]), 0))
            return
        else:
            self.mark("(")
            operands = self.uses(values)
            self.mark(")")
            params = self.params()
        node = Node(op, operands, params, tuple(types))
        for i, label in enumerate(labels):
            self.define(values, label, Value(node, i))

    def define(self, values: dict[str, Value], label: str, value: Value) -> None:
        if label in values:
            self.fail(f"a new value, {label} is defined twice, before")
        values[label] = value

    def uses(self, values: dict[str, Value]) -> tuple[Value, ...]:
        """A list of values, possibly empty."""
        found: list[Value] = []
        while self.kind == "value":
            value = values.get(self.token)
            if value is None:
                self.fail("a value that is defined above")
            found.append(value)
            self.advance()
            if not self.skip(","):
                break
        return tuple(found)

    def params(self) -> tuple[tuple[str, Any], ...]:
        found: list[tuple[str, Any]] = []
        if self.skip("{"):
            while not self.at("}"):
                key = self.take("word", "the name of a param")
                self.mark("=")
                found.append((key, self.param()))
                if not self.skip(","):
                    break
            self.mark("}")
        return tuple(found)

    def param(self) -> Any:
        """One param: see ``text.spell``."""
        if self.kind == "string":
            return json.loads(self.advance())
        if self.kind in ("number", "nan"):
            return self.number()
        if self.at("("):
            return tuple(self.sequence("(", ")", self.param))
        if self.kind != "word":
            self.fail("a param (an object that graph text cannot spell prints as <...>)")
        if self.token == "graph":
            return self.graph()
        if self.token in _DTYPES:
            dtype = _DTYPES[self.advance()]
            if not self.at("["):
                return dtype
            t = self.shape_after(dtype)
            starts = self.kind in ("string", "number", "nan") or self.at("[") or self.at("(")
            return self.literal(t) if starts or self.token in _WORDS else t
        word = self.advance()
        if word in _WORDS:
            return _WORDS[word]
        if word == "bytes":
            return base64.b64decode(json.loads(self.take("string", "base64 in quotes")))
        if word == "complex":
            return complex(*self.sequence("(", ")", self.number))
        return self.fail("a param")

    def sequence(self, opening: str, closing: str, item: Any) -> list[Any]:
        self.mark(opening)
        found: list[Any] = []
        while not self.at(closing):
            found.append(item())
            if not self.skip(","):
                break
        self.mark(closing)
        return found

    def number(self) -> Any:
        """An int, or a float to the bit."""
        if self.kind == "nan":
            return struct.unpack("<d", int(self.advance()[4:-1], 16).to_bytes(8, "little"))[0]
        if self.token in ("nan", "inf"):
            return float(self.advance())
        spelled = self.take("number", "a number")
        return int(spelled) if spelled.lstrip("-").isdigit() else float(spelled)

    # ---------------------------------------------------------------- types and literals

    def type(self) -> TensorType:
        dtype = _DTYPES.get(self.token)
        if dtype is None:
            self.fail("a type such as f64[3]")
        self.advance()
        return self.shape_after(dtype)

    def shape_after(self, dtype: DType) -> TensorType:
        shape = tuple(self.sequence("[", "]", self.extent))
        return TensorType(shape, dtype, self.skip("~"))

    def extent(self) -> int:
        if self.skip("?"):
            return GROWING
        if not self.token.isdigit():
            self.fail("an extent")
        return int(self.advance())

    def literal(self, t: TensorType) -> Literal:
        """Data of the type ``t``: see ``text.spell_literal``."""
        little = t.dtype.numpy.newbyteorder("<")
        if self.kind == "string":
            data = base64.b64decode(json.loads(self.advance()))
            array = np.frombuffer(data, little)
        else:
            elements = (
                self.sequence("[", "]", lambda: self.element(t.dtype))
                if t.shape
                else [self.element(t.dtype)]
            )
            array = np.frombuffer(b"".join(elements), little)
        if array.size != t.size:
            self.fail(f"{t.size} elements for {t} instead of {array.size}, before")
        return Literal(t.dtype, t.shape, array.astype(t.dtype.numpy).tobytes())

    def element(self, dtype: DType) -> bytes:
        """The little-endian bytes of one element."""
        if dtype.is_complex:
            parts = self.sequence("(", ")", lambda: self.element(dtype.real))
            return b"".join(parts)
        if self.kind == "nan":  # by bits: a detour through a float could quiet a signalling NaN
            return int(self.advance()[4:-1], 16).to_bytes(dtype.itemsize, "little")
        if dtype.is_bool:
            if self.token not in ("True", "False"):
                self.fail("True or False")
            return bytes([self.advance() == "True"])
        value = self.number()
        if dtype.is_integer:
            return int(value).to_bytes(dtype.itemsize, "little", signed=dtype.is_signed)
        return struct.pack("<d" if dtype.itemsize == 8 else "<f", value)


def _input(name: str, t: TensorType) -> Node:
    return Node(OPS["input"], (), (("name", name), ("trace", None), ("type", t)), (t,))
