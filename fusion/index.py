"""Index expressions: integer functions of loop variables.

An :class:`Index` is ``const + sum(coefficient * atom)``. Atoms are loop variables, quotients and
remainders that did not simplify (a reshape that cuts across axes), and run-time integers (the
index array of a gather). Views compose by substitution, so a chain of views is one expression and
never a copy.

Expressions are simplified when they are made, with the ranges of their loop variables:
``(v0 * 12 + v1) // 12`` is ``v0`` when ``v1`` runs below 12.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..ir.records import record

__all__ = [
    "Atom",
    "Dynamic",
    "Index",
    "Mod",
    "Quotient",
    "Var",
    "constant",
    "delinearize",
    "linearize",
    "reindex_reshape",
    "row_major",
    "variable",
]


@record()
class Var:
    """A loop variable: runs over ``0 .. extent - 1``. ``axis`` numbers the loops of a nest."""

    axis: int
    extent: int

    def __str__(self) -> str:
        return f"i{self.axis}"


@record()
class Quotient:
    """``numerator // divisor`` with a non-negative numerator."""

    numerator: Index
    divisor: int

    def __str__(self) -> str:
        return f"({self.numerator})//{self.divisor}"


@record()
class Mod:
    """``numerator % divisor`` with a non-negative numerator."""

    numerator: Index
    divisor: int

    def __str__(self) -> str:
        return f"({self.numerator})%{self.divisor}"


@record()
class Dynamic:
    """A run-time integer: instruction ``number`` of the nest's tape; ``low <= value < high``."""

    number: int
    low: int
    high: int

    def __str__(self) -> str:
        return f"%{self.number}"


Atom = Var | Quotient | Mod | Dynamic


@record()
class Index:
    """``const + sum(coefficient * atom for atom, coefficient in terms)``, no zero coefficients."""

    const: int
    terms: tuple[tuple[Atom, int], ...] = ()

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return Index(self.const + other, self.terms) if other else self
        if not other.terms:
            return self + other.const
        merged = dict(self.terms)
        for atom, coefficient in other.terms:
            total = merged.get(atom, 0) + coefficient
            if total:
                merged[atom] = total
            else:
                del merged[atom]
        return Index(self.const + other.const, tuple(merged.items()))

    def __mul__(self, factor: int) -> Index:
        if factor == 1:
            return self
        if factor == 0:
            return Index(0)
        return Index(self.const * factor, tuple((a, c * factor) for a, c in self.terms))

    def range(self) -> tuple[int, int]:
        """Smallest and largest value (inclusive); of no iteration at all: those of one."""
        low = high = self.const
        for atom, coefficient in self.terms:
            a, b = _atom_range(atom)
            low += min(coefficient * a, coefficient * b)
            high += max(coefficient * a, coefficient * b)
        return low, high

    def divmod(self, divisor: int) -> tuple[Index, Index]:
        """Floor quotient and remainder by a positive constant."""
        if divisor == 1:
            return self, Index(0)
        whole: list[tuple[Atom, int]] = []
        rest: list[tuple[Atom, int]] = []
        for atom, coefficient in self.terms:
            (rest if coefficient % divisor else whole).append((atom, coefficient))
        part = Index(self.const % divisor, tuple(rest))
        quotient = Index(self.const // divisor, tuple((atom, c // divisor) for atom, c in whole))
        low, high = part.range()
        if low >= 0 and high < divisor:
            return quotient, part
        if low < 0:  # keep numerators non-negative: lift by a multiple of the divisor
            lift = -(low // divisor)
            part, quotient = part + lift * divisor, quotient + (-lift)
        return (
            quotient + Index(0, ((Quotient(part, divisor), 1),)),
            Index(0, ((Mod(part, divisor), 1),)),
        )

    def substitute(self, atoms: Mapping[Atom, Index]) -> Index:
        """The expression with atoms replaced; simplified again."""
        return self.map_atoms(lambda atom: atoms.get(atom))

    def map_atoms(self, replace: Callable[[Atom], Index | None]) -> Index:
        result = Index(self.const)
        for atom, coefficient in self.terms:
            new = replace(atom)
            if new is None:
                if isinstance(atom, Quotient):
                    new = atom.numerator.map_atoms(replace).divmod(atom.divisor)[0]
                elif isinstance(atom, Mod):
                    new = atom.numerator.map_atoms(replace).divmod(atom.divisor)[1]
                else:
                    new = Index(0, ((atom, 1),))
            result = result + new * coefficient
        return result

    def coefficient(self, axis: int) -> int | None:
        """Coefficient of loop variable ``axis``; None where it occurs inside another atom."""
        found = 0
        for atom, coefficient in self.terms:
            if isinstance(atom, Var):
                if atom.axis == axis:
                    found = coefficient
            elif not isinstance(atom, Dynamic) and atom.numerator.depends_on(axis):
                return None
        return found

    def depends_on(self, axis: int) -> bool:
        """Whether loop variable ``axis`` occurs (run-time integers are the caller's business)."""
        return self.coefficient(axis) != 0

    def dynamics(self) -> list[int]:
        """Tape numbers of the run-time integers inside."""
        found: list[int] = []
        for atom, _ in self.terms:
            if isinstance(atom, Dynamic):
                found.append(atom.number)
            elif not isinstance(atom, Var):
                found.extend(atom.numerator.dynamics())
        return found

    def __str__(self) -> str:
        parts = [f"{a}" if c == 1 else f"{c}*{a}" for a, c in self.terms]
        if self.const or not parts:
            parts.append(str(self.const))
        return " + ".join(parts)


def _atom_range(atom: Atom) -> tuple[int, int]:
    if isinstance(atom, Var):
        return 0, max(atom.extent - 1, 0)
    if isinstance(atom, Dynamic):
        return atom.low, max(atom.high - 1, atom.low)
    low, high = atom.numerator.range()
    if isinstance(atom, Quotient):
        return low // atom.divisor, high // atom.divisor
    return 0, min(atom.divisor - 1, high)


def constant(value: int) -> Index:
    return Index(value)


def variable(axis: int, extent: int) -> Index:
    """Loop variable ``axis``; a loop of one iteration is the constant 0."""
    return Index(0) if extent == 1 else Index(0, ((Var(axis, extent), 1),))


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides in elements of a C-ordered array."""
    strides = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        strides[d] = strides[d + 1] * max(shape[d + 1], 1)
    return tuple(strides)


def linearize(indices: Sequence[Index], strides: Sequence[int]) -> Index:
    total = Index(0)
    for index, stride in zip(indices, strides, strict=True):
        total = total + index * stride
    return total


def delinearize(linear: Index, shape: Sequence[int]) -> list[Index]:
    """Multi-index of row-major position ``linear`` in ``shape``."""
    if 0 in shape:  # no element, no index
        return [Index(0)] * len(shape)
    indices: list[Index] = []
    for extent in reversed(shape[1:]):
        linear, remainder = linear.divmod(extent)
        indices.append(remainder)
    if shape:
        indices.append(linear)
    return indices[::-1]


def reindex_reshape(
    indices: Sequence[Index], new: Sequence[int], old: Sequence[int]
) -> list[Index]:
    """Indices into shape ``old`` of the element at ``indices`` of its reshape ``new``.

    Works group by group: axes of ``new`` and ``old`` are matched while their products agree, so
    that an axis that is not cut is passed through and only the rest needs quotients.
    """
    if 0 in old:  # there is no element
        return [Index(0)] * len(old)
    result: list[Index] = []
    i = j = 0
    while i < len(new) or j < len(old):
        start_i, start_j = i, j
        a = new[i] if i < len(new) else 1
        b = old[j] if j < len(old) else 1
        i, j = min(i + 1, len(new)), min(j + 1, len(old))
        while a != b:
            if a < b:
                a *= new[i]
                i += 1
            else:
                b *= old[j]
                j += 1
        group_new, group_old = new[start_i:i], old[start_j:j]
        if len(group_new) == 1 and len(group_old) == 1:
            result.append(indices[start_i])
        else:
            linear = linearize(indices[start_i:i], row_major(group_new))
            result.extend(delinearize(linear, group_old))
    return result
