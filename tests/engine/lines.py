"""Checks that an error shows the user's own line."""

from typing import Any

import pytest

__all__ = ["raises_here"]


class raises_here:  # noqa: N801 - used like pytest.raises
    """``pytest.raises`` that also wants the line marked ``# here`` of the calling file cited."""

    def __init__(self, error: type[BaseException], text: str, line: str = "# here") -> None:
        self._context = pytest.raises(error, match=text)
        self._line = line

    def __enter__(self) -> Any:
        self._info = self._context.__enter__()
        return self._info

    def __exit__(self, *details: Any) -> bool:
        handled = bool(self._context.__exit__(*details))
        message = str(self._info.value)
        assert "test_" in message, f"no line of the test in: {message}"
        assert self._line in message, f"the line with {self._line!r} is not cited in: {message}"
        return handled
