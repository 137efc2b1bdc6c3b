"""Loop normalization: drop unit loops, merge loops that every access sees as one.

Loops ``a`` (outer) and ``b`` (inner, extent n) merge when in every index expression the
coefficient of ``a`` is n times that of ``b``: then ``a * n + b`` is one variable. Reduction loops
always become one; where an access does not see them as one, it divides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from .index import Atom, Index, Mod, Quotient, Var, delinearize, variable
from .loops import Instruction, Nest

__all__ = ["normalize"]


def normalize(nest: Nest, reduce_loops: int, rows: int = 0) -> Nest:
    """``nest`` with as few loops as its accesses allow; the last ``reduce_loops`` reduce.

    With ``rows``, loops whose extents multiply to that number stay apart from those inside them.
    """
    extents = list(nest.extents)
    count = len(extents)
    outer = [d for d in range(count - reduce_loops) if extents[d] != 1]
    inner = [d for d in range(count - reduce_loops, count) if extents[d] != 1]
    expressions = list(_indices(nest))
    cut = _prefix(outer, extents, rows) if rows else 0
    groups = _merge(outer[:cut], extents, expressions) + _merge(outer[cut:], extents, expressions)
    inner_groups = _merge(inner, extents, expressions) if reduce_loops else []

    new_extents: list[int] = []
    atoms: dict[Atom, Index] = {}
    for group in groups:
        _assign(group, extents, new_extents, atoms)
    if reduce_loops:
        if len(inner_groups) == 1:
            _assign(inner_groups[0], extents, new_extents, atoms)
        else:
            sizes = [prod(extents[d] for d in group) for group in inner_groups]
            loop = variable(len(new_extents), prod(sizes)) if sizes else Index(0)
            new_extents.append(prod(sizes))
            parts = delinearize(loop, sizes)
            for group, part in zip(inner_groups, parts, strict=True):
                for d, index in zip(
                    group, delinearize(part, [extents[d] for d in group]), strict=True
                ):
                    atoms[Var(d, extents[d])] = index
    unchanged = tuple(new_extents) == nest.extents and all(
        index.terms == ((loop, 1),) for loop, index in atoms.items()
    )
    if unchanged and not any(type(atom) is Mod for x in expressions for atom, _ in x.terms):
        return nest
    return _rewrite(nest, tuple(new_extents), atoms)


def _prefix(loops: list[int], extents: list[int], rows: int) -> int:
    """How many leading loops make ``rows`` iterations."""
    total = 1
    for k, d in enumerate(loops):
        total *= extents[d]
        if total == rows:
            return k + 1
    return 0


def _assign(group: list[int], extents: list[int], new: list[int], atoms: dict[Atom, Index]) -> None:
    sizes = [extents[d] for d in group]
    loop = variable(len(new), prod(sizes))
    new.append(prod(sizes))
    for d, index in zip(group, delinearize(loop, sizes), strict=True):
        atoms[Var(d, extents[d])] = index


def _indices(nest: Nest) -> Iterator[Index]:
    for instruction in nest.tape:
        if instruction.index is not None:
            yield from _flat(instruction.index)
    for store in nest.stores:
        yield from _flat(store.index)


def _flat(index: Index) -> Iterator[Index]:
    """The expression and the numerators inside it: each must see merged loops as one."""
    yield index
    for atom, _ in index.terms:
        numerator = getattr(atom, "numerator", None)
        if numerator is not None:
            yield from _flat(numerator)


def _merge(loops: list[int], extents: list[int], expressions: list[Index]) -> list[list[int]]:
    groups: list[list[int]] = []
    for d in loops:
        if groups and _mergeable(groups[-1][-1], d, extents[d], expressions):
            groups[-1].append(d)
        else:
            groups.append([d])
    return groups


def _mergeable(a: int, b: int, extent: int, expressions: list[Index]) -> bool:
    for index in expressions:
        first = second = 0
        for atom, coefficient in index.terms:
            if isinstance(atom, Var):
                if atom.axis == a:
                    first = coefficient
                elif atom.axis == b:
                    second = coefficient
        if first != second * extent:
            return False
    return True


def _rewrite(nest: Nest, extents: tuple[int, ...], atoms: dict[Atom, Index]) -> Nest:
    known: dict[Index, Index] = {}  # most accesses of a nest are alike

    def moved(index: Index) -> Index:
        # Merging needs each expression rebuilt as a whole: c*n*q + c*r is c times the new loop,
        # which divmod of the merged variable has taken apart.
        found = known.get(index)
        if found is None:
            found = known[index] = _recombine(index.map_atoms(atoms.get))
        return found

    tape: list[Instruction] = [
        i if i.index is None else replace(i, index=moved(i.index)) for i in nest.tape
    ]
    stores = tuple([replace(s, index=moved(s.index)) for s in nest.stores])
    return replace(nest, extents=extents, tape=tuple(tape), stores=stores)


def _recombine(index: Index) -> Index:
    """``n * (x // n) + x % n`` is ``x``, with any common factor."""
    terms = dict(index.terms)
    result = index
    for atom, coefficient in index.terms:
        if isinstance(atom, Mod):
            whole = Quotient(atom.numerator, atom.divisor)
            if terms.get(whole) == coefficient * atom.divisor:
                without = tuple((a, c) for a, c in result.terms if a is not atom and a != whole)
                result = Index(result.const, without) + atom.numerator * coefficient
                return _recombine(result)
    return result
