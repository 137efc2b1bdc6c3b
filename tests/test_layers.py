"""The shape of the house: who may import whom, what is shipped, what an import costs."""

import ast
import configparser
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Top to bottom: a layer imports from itself and from those before it. What is not named here
# is a library and stands between the engine and the command line.
LAYERS = ("ir", "autodiff", "fusion", "kernels", "engine")
LIBRARY = len(LAYERS)
COMMAND = LIBRARY + 1

# Libraries that may use another, with the reason. (user, used) -> why
LIBRARY_USES: dict[tuple[str, str], str] = {}

# Python files in the repository that are no part of the package.
OUTSIDE = {"tests", "docs", "examples", "build", "dist"}

LINES = 500
# Files that may be longer, with the reason. path -> why
LONG_FILES: dict[str, str] = {}


def package_files() -> Iterator[Path]:
    """Every Python file of the package, relative to the root."""
    for path in sorted(ROOT.rglob("*.py")):
        relative = path.relative_to(ROOT)
        top = relative.parts[0]
        if top in OUTSIDE or top.endswith(".egg-info") or hidden(relative):
            continue
        if (ROOT / top / "pyvenv.cfg").exists():
            continue
        yield relative


def hidden(relative: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in relative.parts)


def rank(folder: str) -> int:
    """The layer of a top-level folder; the root's own modules may import everything.

    ``bench`` measures all of the package and is run by its subcommand.
    """
    if folder in LAYERS:
        return LAYERS.index(folder)
    return COMMAND if folder in ("", "bench", "command") else LIBRARY


def imports(relative: Path) -> Iterator[tuple[int, str]]:
    """Line and target of each import: `.x.y` from the package's root, or an absolute name."""
    package = relative.parts[:-1]
    for node in ast.walk(ast.parse((ROOT / relative).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.lineno, node.module or ""
        elif isinstance(node, ast.ImportFrom):
            up = node.level - 1
            assert up <= len(package), f"{relative}:{node.lineno} leaves the package"
            base = [*package[: len(package) - up], *filter(None, (node.module or "").split("."))]
            if base:
                yield node.lineno, "." + ".".join(base)
            else:
                for alias in node.names:
                    yield node.lineno, f".{alias.name}"


def test_imports_flow_one_way() -> None:
    faults = []
    for relative in package_files():
        own = relative.parts[0] if len(relative.parts) > 1 else ""
        for line, target in imports(relative):
            if not target.startswith("."):
                continue
            other = target[1:].split(".")[0]
            if not (ROOT / other).is_dir():
                # `from .. import jit`: the public face, which is made of the engine.
                if own and rank(own) < LIBRARY:
                    faults.append(f"{relative}:{line} takes {other!r} from the public face")
            elif rank(other) > rank(own):
                faults.append(f"{relative}:{line} {own or 'root'} imports {other}, a later layer")
            elif (
                own != other
                and rank(own) == rank(other) == LIBRARY
                and (own, other) not in LIBRARY_USES
            ):
                faults.append(f"{relative}:{line} library {own} imports library {other}")
    assert not faults, "\n".join(faults)


def test_imports_inside_the_package_are_relative() -> None:
    faults = [
        f"{relative}:{line} imports {target}"
        for relative in package_files()
        for line, target in imports(relative)
        if target.split(".")[0] == "tilegrad"
    ]
    assert not faults, "\n".join(faults)


def test_public_face_holds_no_logic() -> None:
    """The root's `__init__` only imports, names and documents."""
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    faults = [
        f"line {node.lineno}: {type(node).__name__}"
        for node in tree.body
        if not isinstance(node, ast.Import | ast.ImportFrom)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        and not (
            isinstance(node, ast.Assign | ast.AnnAssign)
            and isinstance(node.value, ast.List | ast.Tuple | ast.Constant | ast.Name)
        )
    ]
    assert not faults, "\n".join(faults)


def test_setup_cfg_lists_every_package() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    listed = setup["options"]["packages"].split()
    found = {
        ".".join(("tilegrad", *relative.parts[:-1]))
        for relative in package_files()
        if relative.name == "__init__.py"
    }
    assert listed == sorted(listed), "keep the list sorted"
    assert sorted(found) == listed


def test_every_folder_with_modules_is_a_package() -> None:
    """A folder without `__init__.py` would be left out of a wheel without a word."""
    folders = {relative.parent for relative in package_files()}
    assert [str(f) for f in sorted(folders) if not (ROOT / f / "__init__.py").exists()] == []


def test_no_folder_shadows_a_standard_module() -> None:
    """With the root as working directory, Python would import the folder in its place."""
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()}
    modules = {path.stem for path in ROOT.glob("*.py")}
    assert not (folders | modules) & (sys.stdlib_module_names - {"__main__"})


@pytest.mark.parametrize("module", ["tilegrad", "tilegrad.__main__"])
def test_import_leaves_compilers_and_scipy_alone(module: str) -> None:
    script = (
        f"import sys, {module}\n"
        "print(*{'numba', 'llvmlite', 'scipy', 'cupy', 'mpi4py'} & set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == []


def test_files_stay_readable() -> None:
    """At 500 lines, ask what two things live there."""
    lengths = {
        relative.as_posix(): len((ROOT / relative).read_text(encoding="utf-8").splitlines())
        for relative in package_files()
    }
    too_long = {name: count for name, count in lengths.items() if count > LINES}
    assert {name: n for name, n in too_long.items() if name not in LONG_FILES} == {}
    assert set(LONG_FILES) <= set(too_long), "take files that are short again off the list"
