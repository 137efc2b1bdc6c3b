"""What the doctor tells."""

import sys
from pathlib import Path

import numpy as np
import pytest

from tilegrad.__main__ import main
from tilegrad.command import doctor
from tilegrad.kernels.cache import cache_folder


def test_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert shown["numpy"] == np.__version__
    assert shown["python"].startswith(sys.version.split()[0])
    assert {"tilegrad", "scipy", "numba", "llvmlite", "cupy", "mpi4py"} <= set(shown)
    assert {"processor", "features", "threads", "threading", "cache"} <= set(shown)


def test_missing_requirement_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "numba" else found(name))
    assert main(["doctor"]) == 1
    assert "numba is missing, and tilegrad needs it: pip install numba" in capsys.readouterr().out


def test_missing_options_say_what_they_are_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = doctor._version
    optional = ("cupy", "mpi4py")
    monkeypatch.setattr(doctor, "_version", lambda name: None if name in optional else found(name))
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "not installed (optional, for CUDA devices: pip install 'tilegrad[cuda]')" in shown
    assert "not installed (optional, for several hosts: pip install 'tilegrad[mpi]')" in shown


def test_cache_folder_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TILEGRAD_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.delenv("TILEGRAD_CACHE_SIZE")
    assert cache_folder() == tmp_path / "kept"
    main(["doctor"])
    assert f"{tmp_path / 'kept'} (not made yet)" in capsys.readouterr().out
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "plan.code").write_bytes(bytes(3_000_000))
    main(["doctor"])
    assert f"{tmp_path / 'kept'} (1 files, 3.0 MB)" in capsys.readouterr().out
    monkeypatch.setenv("TILEGRAD_CACHE_SIZE", "0")
    main(["doctor"])
    assert f"{tmp_path / 'kept'} (switched off)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("system", "variable", "tail"),
    [
        ("linux", "XDG_CACHE_HOME", "tilegrad"),
        ("linux", None, ".cache/tilegrad"),
        ("darwin", None, "Library/Caches/tilegrad"),
        ("win32", "LOCALAPPDATA", "tilegrad"),
        ("win32", None, "AppData/Local/tilegrad"),
    ],
)
def test_cache_folder_of_the_platform(
    system: str, variable: str | None, tail: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("TILEGRAD_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "own"))
    base = tmp_path / "own" if variable else tmp_path
    assert cache_folder() == base / tail
