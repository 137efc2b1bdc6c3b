"""The command line as a user meets it."""

import subprocess
import sys

import pytest

from tilegrad.__main__ import main


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--help"])
    assert exit_.value.code == 0
    shown = capsys.readouterr().out
    assert "demo" in shown
    assert "doctor" in shown


@pytest.mark.parametrize("argv", [[], ["fortune"]])
def test_misuse_ends_with_status_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(argv)
    assert exit_.value.code == 2
    assert "usage: tilegrad" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.startswith("tilegrad 0.")


def test_runs_as_a_module() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "tilegrad", "--help"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("usage: tilegrad")
