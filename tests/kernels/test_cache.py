"""The store of compiled code on disk: what it gives back, what it survives, what makes a key."""

from __future__ import annotations

import builtins
import dataclasses
import errno
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from plans import plan_of
from scripts import finish, run, start

from tilegrad.__main__ import main
from tilegrad.ir import ops
from tilegrad.ir.graph import make
from tilegrad.ir.ops.registry import OPS
from tilegrad.kernels import fingerprint
from tilegrad.kernels.cache import Store, store
from tilegrad.kernels.objects import is_loadable

KEY = "0123456789abcdef"
BLOCK = bytes(range(256)) * 20

# Prints the result, how much was compiled and loaded, and whether numba was there.
FIRST = """
with tg.counters() as seen:
    y = tg.jit(lambda x: tg.sum(tg.exp(x) * tg.sin(x)))(np.linspace(0.0, 1.0, 1000))
    print(np.asarray(y).tobytes().hex())
print(seen.compilations, seen.loads, "numba" in sys.modules, "scipy" in sys.modules)
"""


@pytest.fixture
def kept(tmp_path) -> Store:
    return Store(tmp_path / "store", 1_000_000)


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


# ------------------------------------------------------------------------------------- the store


def test_a_block_comes_back(kept):
    assert kept.get(KEY) is None
    assert kept.put(KEY, BLOCK)
    assert kept.get(KEY) == BLOCK
    assert kept.put(KEY, b"")
    assert kept.get(KEY) == b""
    assert len(files(kept.folder)) == 1


def test_what_is_not_whole_is_not_there(kept):
    kept.put(KEY, BLOCK)
    (path,) = files(kept.folder)
    content = path.read_bytes()
    for length in (0, 1, 15, 16, 47, 48, 49, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        assert kept.get(KEY) is None, length
    for place in (0, 20, 48, len(content) - 1):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert kept.get(KEY) is None, place
    path.write_bytes(content + b"x")
    assert kept.get(KEY) is None
    assert kept.put(KEY, BLOCK)
    assert kept.get(KEY) == BLOCK


def test_what_was_not_used_for_longest_is_dropped(tmp_path):
    kept = Store(tmp_path, 10_000)
    for k in range(6):
        assert kept.put(f"{k}", bytes(1500))
        os.utime(tmp_path / f"{k}.code", (k, k))
    assert kept.get("0") is not None  # that is a use
    (tmp_path / "mine").write_bytes(bytes(5000))  # not ours: neither counted nor touched
    kept.put("6", bytes(1500))
    assert [k for k in range(7) if kept.get(f"{k}") is not None] == [0, 3, 4, 5, 6]
    assert (tmp_path / "mine").exists()
    count, size = kept.usage()
    assert count == 5
    assert 5 * 1500 < size <= 8000


def test_no_limit_is_exceeded_in_many_writes(tmp_path):
    kept = Store(tmp_path, 10_000)
    for k in range(50):
        kept.put(f"{k}", bytes(700))
        assert kept.usage()[1] <= 10_000
    assert kept.get("49") is not None


def test_a_limit_of_nothing_switches_it_off(tmp_path):
    kept = Store(tmp_path / "store", 0)
    assert not kept.put(KEY, BLOCK)
    assert kept.get(KEY) is None
    assert not kept.folder.exists()


def test_settings_of_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEGRAD_CACHE_DIR", str(tmp_path))
    for text, limit in (("2.5", 2_500_000), ("0", 0), ("", 512_000_000), ("much", 512_000_000)):
        monkeypatch.setenv("TILEGRAD_CACHE_SIZE", text)
        assert (store().folder, store().limit) == (tmp_path, limit)
    assert store() is store()


def test_unfinished_files_are_removed_when_they_are_old(kept):
    kept.put(KEY, BLOCK)
    young, old = (kept.folder / f"{name}.code.1.part" for name in ("young", "old"))
    for path in (young, old):
        path.write_bytes(b"half")
    os.utime(old, (1, 1))
    assert kept.usage()[0] == 1
    assert young.exists()
    assert not old.exists()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EIO])
def test_a_failing_write_leaves_nothing(kept, monkeypatch, code):
    class Full:
        def __init__(self, file):
            self._file = file

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self._file.close()

        def write(self, content):
            self._file.write(content[:100])
            raise OSError(code, os.strerror(code))

    def open_(path, mode="r"):
        file = builtins.open(path, mode)  # noqa: SIM115  # closed by who asked for it
        return Full(file) if "x" in mode else file

    kept.put("before", BLOCK)
    monkeypatch.setattr("tilegrad.kernels.cache.open", open_, raising=False)
    assert not kept.put(KEY, BLOCK)
    assert kept.problem.errno == code
    assert [path.name for path in files(kept.folder)] == ["before.code"]
    assert kept.get("before") == BLOCK


def test_a_folder_that_can_only_be_read(kept, monkeypatch):
    kept.put(KEY, BLOCK)
    (path,) = files(kept.folder)
    os.utime(path, (1, 1))

    def refuse(*_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    for name in ("utime", "replace", "unlink"):
        monkeypatch.setattr(os, name, refuse)
    assert kept.get(KEY) == BLOCK
    assert not kept.put("other", BLOCK)
    assert kept.problem.errno == errno.EROFS


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")
def test_code_of_others_is_not_run(kept, monkeypatch):
    kept.put(KEY, BLOCK)
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert (kept.get(KEY) is None) == (owner != 0)  # root's is trusted
    assert Store(kept.folder, 1_000_000, shared=True).get(KEY) == BLOCK
    (path,) = files(kept.folder)
    if owner == 0:
        os.chown(path, 12345, -1)
        assert kept.get(KEY) is None


# ---------------------------------------------------------------------------------- whole processes


def test_a_second_process_compiles_nothing(tmp_path):
    cold, warm = run(FIRST, tmp_path), run(FIRST, tmp_path)
    assert cold[1:] == ["1", "0", "True", "True"]
    assert warm[1:] == ["0", "1", "False", "False"]
    assert warm[0] == cold[0]


def test_products_and_threads_from_disk(tmp_path):
    script = """
    x = np.random.default_rng(0).standard_normal((300, 300))
    f = tg.jit(lambda x: tg.sum(tg.exp(x @ x / 300.0), axis=1))
    for threads in (1, 2):
        with tg.config(num_threads=threads):
            print(np.asarray(f(x)).tobytes().hex())
    print("numba" in sys.modules, tg.jit.stats().compiles)
    """
    cold, warm = run(script, tmp_path), run(script, tmp_path)
    assert cold[0] == cold[1] == warm[0] == warm[1]
    assert (cold[2], warm[2]) == ("True", "False")
    assert int(cold[3]) > int(warm[3]) == 0


def test_a_new_size_is_found_too(tmp_path):
    script = """
    n = int(os.environ["N"])
    with tg.counters() as seen:
        y = tg.jit(lambda x: tg.sum(x * x, axis=1))(np.ones((n, 30)))
        print(float(np.asarray(y).sum()), seen.compilations)
    """
    assert run(script, tmp_path, N="100") == ["3000.0", "1"]
    assert run(script, tmp_path, N="4321") == [str(4321 * 30.0), "0"]


def test_stale(tmp_path):
    """Case 122: an edit in a module that a traced function uses is seen, and undone."""
    helper = tmp_path / "helper.py"
    script = """
    import helper
    f = tg.jit(lambda x: helper.h(x) * 2)
    print(float(f(1.0)), tg.jit.stats().compiles)
    """
    found = []
    for body in ("x + 1", "x + 2", "x + 1"):
        helper.write_text(f"def h(x): return {body}\n")
        found.append(run(script, tmp_path / "cache", PYTHONPATH=str(tmp_path)))
    assert [value for value, _ in found] == ["4.0", "6.0", "4.0"]
    assert int(found[0][1]) > 0
    assert found[2][1] == "0"


def test_damaged_entries_are_written_anew(tmp_path):
    right = run(FIRST, tmp_path)[0]
    for path in files(tmp_path):
        path.write_bytes(path.read_bytes()[:-7])
    assert run(FIRST, tmp_path) == [right, "1", "0", "True", "True"]
    assert run(FIRST, tmp_path) == [right, "0", "1", "False", "False"]


def test_whole_entries_that_are_no_code_are_written_anew(tmp_path):
    right = run(FIRST, tmp_path)[0]
    kept = Store(tmp_path, 1_000_000)
    for path in files(tmp_path):
        kept.put(path.stem, b"\x7fELF\x02\x01 not code")
    assert run(FIRST, tmp_path) == [right, "1", "0", "True", "True"]
    assert run(FIRST, tmp_path)[1:3] == ["0", "1"]


@pytest.mark.parametrize("folder", ["/dev/null/tilegrad", "/proc/no/tilegrad"])
def test_no_folder_can_be_made(folder):
    assert run(FIRST, Path(folder))[1:] == ["1", "0", "True", "True"]


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of this kind")
def test_a_full_disk(tmp_path):
    """The system lets no file grow beyond 4 KB: the result is right, nothing half is left."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
    right = run(FIRST)[0]
    assert run(limit + FIRST, tmp_path) == [right, "1", "0", "True", "True"]
    assert files(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_a_writer_that_is_killed(tmp_path):
    kill = """
import signal
os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = start(kill + FIRST, tmp_path)
    killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL
    (part,) = files(tmp_path)
    assert part.suffix == ".part"
    right = run(FIRST)[0]
    assert run(FIRST, tmp_path)[:3] == [right, "1", "0"]
    assert run(FIRST, tmp_path)[:3] == [right, "0", "1"]
    os.utime(part, (1, time.time() - 7200))
    assert Store(tmp_path, 1_000_000).usage()[0] == 1
    assert not part.exists()


def test_several_processes_share_it(tmp_path):
    together = [start(FIRST, tmp_path) for _ in range(4)]
    results = {finish(process)[0] for process in together}
    assert len(results) == 1
    (path,) = files(tmp_path)
    assert path.suffix == ".code"
    assert run(FIRST, tmp_path)[1:3] == ["0", "1"]


def test_text_of_code_from_disk(tmp_path):
    script = """
    from tilegrad.ir.graph import Graph
    from tilegrad.ir import ops
    from tilegrad.ir.dtypes import float64
    from tilegrad.ir.ops.leaves import input_node
    from tilegrad.ir.types import TensorType
    from tilegrad.kernels.plan import compile_graph
    x = input_node(TensorType((1000,), float64), "x")
    plan = compile_graph(Graph((x,), (ops.exp(x.out),)))
    print(plan.from_disk, "define" in plan.as_text("llvm"), "ret" in plan.as_text("asm"))
    """
    assert run(script, tmp_path) == ["False", "True", "True"]
    assert run(script, tmp_path) == ["True", "True", "True"]


# ------------------------------------------------------------------------------------------- keys


def test_keys_tell_programs_apart():
    x = ((1000,), "float64")
    functions = [
        lambda x: ops.exp(x),
        lambda x: ops.sin(x),
        lambda x: ops.sum_(x, 0),
        lambda x: ops.exp(x) + 1.0,
        lambda x: ops.exp(x) + 2.0,
    ]
    plans = [plan_of(f, x) for f in functions] + [plan_of(functions[0], ((1000,), "float32"))]
    keys = {fingerprint.plan_key(p.functions) for p in plans}
    assert None not in keys
    assert len(keys) == len(plans)
    again = plan_of(functions[0], ((1234,), "float64"))
    assert fingerprint.plan_key(again.functions) in keys
    assert fingerprint.entry_key("a") != fingerprint.entry_key("b")


@pytest.mark.parametrize("change", ["source", "file", "processor", "version", "setting"])
def test_keys_depend_on_the_surroundings(monkeypatch, tmp_path, change):
    for part in fingerprint._TRANSLATING:
        (tmp_path / part).mkdir()
        (tmp_path / part / "a.py").write_text("x = 1\n")
    monkeypatch.setattr(fingerprint, "_PACKAGE", tmp_path)

    def key():
        fingerprint._environment.cache_clear()
        return fingerprint.entry_key("a")

    try:
        before = key()
        assert before == key()
        if change == "source":
            (tmp_path / "ir" / "a.py").write_text("x = 2\n")
        elif change == "file":
            (tmp_path / "ir" / "a.py").rename(tmp_path / "ir" / "b.py")
        elif change == "processor":
            monkeypatch.setattr(fingerprint, "host", lambda: ("triple", "other", "features"))
        elif change == "version":
            monkeypatch.setattr(fingerprint, "_version", lambda name: f"{name} 99")
        else:
            monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
        assert key() != before
        monkeypatch.setattr(fingerprint, "_TRANSLATING", ("nothing",))
        assert key() is None, "where there are no sources nothing is kept"
    finally:
        fingerprint._environment.cache_clear()


def test_programs_of_others_are_not_kept():
    def foreign(h, x):
        return h.mul(x, x)

    def wrapped(program):
        def inside(h, x):
            return program(h, x)

        inside.__module__ = "tilegrad.ir.ops.elementwise"
        return inside

    x = ((1000,), "float64")
    for scalar in (foreign, wrapped(foreign)):
        op = dataclasses.replace(OPS["exp"], name="foreign_square", scalar=scalar)
        plan = plan_of(lambda x, op=op: make(op, [x]), x)
        assert fingerprint.plan_key(plan.functions) is None
    plan = plan_of(ops.exp, x)
    assert fingerprint.plan_key(plan.functions) is not None


def test_all_our_own_programs_can_be_kept():
    programs = [
        inner
        for op in OPS.values()
        for program in (op.scalar, op.complex_scalar, op.check)
        for inner in fingerprint._with_enclosed(program)
        if op.name != "foreign_square"
    ]
    assert len(programs) > 100
    for program in programs:
        assert fingerprint._source(program.__module__) is not None, program


def test_files_that_need_numba_are_not_loadable():
    plan = plan_of(ops.exp, ((1000,), "float64"))
    code = plan.code.library._get_compiled_object()
    assert is_loadable(code)
    assert not is_loadable(code.replace(b"PyErr_Occurred", b"PyErr_Obcurred"))
    assert not is_loadable(b"")
    assert not is_loadable(b"MZ" + code[2:])


# ------------------------------------------------------------------------------------ the command


def test_command(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("TILEGRAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TILEGRAD_CACHE_SIZE", "3")
    store().put(KEY, bytes(1_200_000))
    (tmp_path / "mine").write_text("stays")
    assert main(["cache", "info"]) == 0
    assert capsys.readouterr().out == (
        f"folder   {tmp_path}\nentries  1\nsize     1.2 MB of 3 MB\n"
    )
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"removed 1 of 1 entries from {tmp_path}\n"
    assert store().get(KEY) is None
    assert [path.name for path in files(tmp_path)] == ["mine"]
