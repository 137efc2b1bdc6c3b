"""What ``docs/status.md`` lists as not built is not built, and every other case is a test."""

import re
from pathlib import Path

import pytest

import tilegrad as tg

ROOT = Path(__file__).resolve().parents[2]
# Cases live in this folder, but for the one of the disk cache, which needs processes of its own.
PLACES = [*sorted(Path(__file__).parent.glob("test_*.py")), ROOT / "tests/kernels/test_cache.py"]
TESTS = "\n".join(path.read_text() for path in PLACES)

# The ids of the collection whose tests are here, by its groups.
BUILT = {
    "elementwise": "intdiv intdivrt remzero fmodint intpowneg intdefault expsub log1ptiny u8diff "
    "u64i64 frexp intdiv0",
    "special": "betaneg",
    "reduction": "emptyred argmaxnan varcancel f32ones allaxis1 segempty softrow",
    "indexing": "oobgather negidx masklen dupset dupadd",
    "shape": "negstride revgrad",
    "gradient": "stdconst where1 pow0 powexp prod0 cumprod0 ties softplus0 lseinf lcse hypot xlogy",
    "higher order": "sinc xenthess abs4",
    "linalg": "chol solvetri",
    "complex": "ifftmode rfftgrad",
    "vmap": "vmapconst vmaperr",
    "jit cache": "staleglobal freshlambda signedconst unhash weak",
    "CPU codegen": "pinit pfuse threads",
    "control flow": "dynfori whilezero carrytype vmapcond condlanes",
    "disk cache": "stale",
    "compile time": "unroll scancompile",
    "performance": "inplace",
    "pytree": "treenone treeorder",
}


def waiting():
    """Pairs of case and name of a missing function."""
    text = (ROOT / "docs" / "status.md").read_text(encoding="utf-8")
    section = text.split("## Cases not built yet")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)`.*?\|.*?\|(.*)\|$", section, re.MULTILINE)
    return [(case, name) for case, cell in rows for name in re.findall(r"`tg\.([\w.]+)`", cell)]


@pytest.mark.parametrize("group", BUILT)
def test_every_case_is_a_test(group):
    missing = [i for i in BUILT[group].split() if not re.search(rf"def test_{i}(_|\()", TESTS)]
    assert not missing


@pytest.mark.parametrize(("case", "name"), waiting())
def test_what_is_missing_is_missing(case, name):
    place = tg
    for part in name.split("."):
        place = getattr(place, part, None)
    assert place is None, f"tg.{name} exists: make case {case} a test and take it off the list"


def test_no_case_is_forgotten():
    """98 ids: those with a test, those that wait, those that need CUDA or a clock."""
    section = (ROOT / "docs" / "status.md").read_text(encoding="utf-8")
    section = section.split("## Cases not built yet")[1].split("\n## ")[0]
    listed = set(re.findall(r"`(\w+)`", section)) - {"cummax", "test_intdiv"}
    built = {i for ids in BUILT.values() for i in ids.split()}
    assert len(listed | built) == 98
