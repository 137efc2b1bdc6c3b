"""Examples in docstrings, in README and in the guides run and show what they say."""

import doctest
import importlib
import pkgutil
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
TEXTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


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


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_texts(path: Path) -> None:
    failed, _ = doctest.testfile(str(path), module_relative=False, optionflags=FLAGS)
    assert failed == 0
