"""Examples in docstrings, in README and in the guides run; what pages cite is there."""

import ast
import doctest
import functools
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import tilegrad

ROOT = Path(__file__).resolve().parent.parent
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
OPTIONAL = {"cupy", "mpi4py"}

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(tilegrad.__path__, "tilegrad.", onerror=lambda name: None)
)
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
TEXTS += sorted((ROOT / "docs").rglob("*.md"))

# `kernels/cpu/blas.py::panels`, `tests/kernels/test_forms.py::test_row`; tests/ may be left out.
_CITED = re.compile(r"`((?:\w+/)+[\w-]+\.\w+)(?:::(\w+))?`")
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")

every_text = pytest.mark.parametrize(
    "path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix()
)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in OPTIONAL:
            raise
        pytest.skip(f"{error.name} is not installed")
    failed, _ = doctest.testmod(module, optionflags=FLAGS)
    assert failed == 0


@every_text
def test_texts(path: Path) -> None:
    failed, _ = doctest.testfile(str(path), module_relative=False, optionflags=FLAGS)
    assert failed == 0


@functools.cache
def _names_in(path: Path) -> frozenset[str]:
    """Functions and classes at the top of a module."""
    tree = ast.parse(path.read_text())
    kinds = (ast.FunctionDef, ast.ClassDef)
    return frozenset(node.name for node in tree.body if isinstance(node, kinds))


@every_text
def test_cited_tests_and_files_exist(path: Path) -> None:
    missing = []
    for place, name in _CITED.findall(path.read_text()):
        found = [file for file in (ROOT / place, ROOT / "tests" / place) if file.exists()]
        if not found or (name and name not in _names_in(found[0])):
            missing.append(f"{place}::{name}")
    assert missing == []


@every_text
def test_links_lead_somewhere(path: Path) -> None:
    missing = [to for to in _LINK.findall(path.read_text()) if not (path.parent / to).exists()]
    assert missing == []
