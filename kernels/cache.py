"""Compiled code on disk, shared by the processes of a user.

An entry is a file named by the digest of all that its content depends on, so it is never changed,
only written, found, or dropped. It holds a checksum: what a killed writer, a full disk or another
program left there is not taken for code. A process that cannot write goes on without.

The folder is ``TILEGRAD_CACHE_DIR``, else ``tilegrad`` in the user's cache folder. It keeps at
most ``TILEGRAD_CACHE_SIZE`` megabytes (512), the entries used last; 0 switches it off.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

__all__ = ["Store", "cache_folder", "store"]

_SUFFIX, _UNFINISHED = ".code", ".part"
_MAGIC = b"tilegrad code 1\n"
_DIGEST = 32
_MEGABYTE = 1_000_000
_DEFAULT_LIMIT = 512 * _MEGABYTE
_USE_NOTED = 3600.0  # seconds; the time of use is kept no finer than that
_ABANDONED = 3600.0  # seconds after which an unfinished file has no writer any more


def cache_folder() -> Path:
    """Where compiled code is kept between processes.

    Returns
    -------
    Path
        ``TILEGRAD_CACHE_DIR`` if that is set, else ``tilegrad`` in the user's cache folder as the
        platform has it (Linux: XDG Base Directory Specification 0.8). It need not exist yet.
    """
    chosen = os.environ.get("TILEGRAD_CACHE_DIR")
    if chosen:
        return Path(chosen)
    try:
        home = Path.home()
    except RuntimeError:  # a user without a home, as in some containers
        home = Path(os.devnull)  # no folder can be made there
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "tilegrad"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "tilegrad"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "tilegrad"


def _limit() -> int:
    text = os.environ.get("TILEGRAD_CACHE_SIZE", "")
    try:
        return int(float(text) * _MEGABYTE) if text else _DEFAULT_LIMIT
    except (ValueError, OverflowError):
        return _DEFAULT_LIMIT


@dataclass(frozen=True, slots=True)
class _Entry:
    used: float
    size: int
    path: str


class Store:
    """Blocks of bytes by key in one folder.

    Attributes
    ----------
    folder : Path
    limit : int
        Most bytes kept.
    problem : OSError or None
        Why the last block could not be written.
    """

    def __init__(self, folder: Path, limit: int, shared: bool = False) -> None:
        """``shared``: files of other users are trusted; else only one's own and root's."""
        self.folder = folder
        self.limit = limit
        self.problem: OSError | None = None
        self._shared = shared or not hasattr(os, "geteuid")
        self._size: int | None = None  # of all entries, as far as this process knows
        self._numbers = itertools.count()

    def get(self, key: str) -> bytes | None:
        """The block of a key; None if it is not there or not whole."""
        if not self.limit:
            return None
        path = self._path(key)
        try:
            with open(path, "rb") as file:
                status = os.fstat(file.fileno())
                if not self._shared and status.st_uid not in (os.geteuid(), 0):
                    return None
                content = file.read()
        except (OSError, ValueError):
            return None
        start = len(_MAGIC) + _DIGEST
        block = content[start:]
        if content[:start] != _MAGIC + _checksum(block):
            return None
        self._note_use(path, status.st_mtime)
        return block

    def put(self, key: str, block: bytes) -> bool:
        """Keep a block; False if that did not work, see ``problem``."""
        if not self.limit:
            return False
        content = _MAGIC + _checksum(block) + block
        path = self._path(key)
        # Not seen by readers until it is whole: a rename is atomic.
        part = f"{path}.{os.getpid()}.{time.time_ns()}.{next(self._numbers)}{_UNFINISHED}"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                with open(part, "xb") as file:
                    file.write(content)
                os.replace(part, path)
            except BaseException:
                _remove(part)
                raise
        except OSError as error:
            self.problem = error
            return False
        self._make_room(len(content))
        return True

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, key + _SUFFIX)

    def _note_use(self, path: str, noted: float) -> None:
        now = time.time()
        if now - noted > _USE_NOTED:
            with suppress(OSError):  # not ours to write: then we drop nothing either
                os.utime(path, (now, now))

    def _make_room(self, added: int) -> None:
        """Drop what was not used for longest when there is too much."""
        if self._size is not None:
            self._size += added
            if self._size <= self.limit:
                return
        entries = sorted(self._scan(), key=lambda entry: entry.used)
        total = sum(entry.size for entry in entries)
        if total > self.limit:
            for entry in entries:
                _remove(entry.path)
                total -= entry.size
                if total <= 0.8 * self.limit:
                    break
        self._size = total

    def _scan(self) -> Iterator[_Entry]:
        """All entries; files that a writer left unfinished are removed on the way."""
        oldest = time.time() - _ABANDONED
        for path, status in self._files():
            if path.endswith(_SUFFIX):
                yield _Entry(status.st_mtime, status.st_size, path)
            elif status.st_mtime < oldest:
                _remove(path)

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        """Our files in the folder, whatever else lies there."""
        try:
            with os.scandir(self.folder) as found:
                for item in found:
                    if item.name.endswith((_SUFFIX, _UNFINISHED)):
                        try:
                            yield item.path, item.stat(follow_symlinks=False)
                        except OSError:
                            continue  # another process was faster
        except OSError:
            return

    def usage(self) -> tuple[int, int]:
        """Number of entries and bytes they take."""
        sizes = [entry.size for entry in self._scan()]
        return len(sizes), sum(sizes)

    def clear(self) -> int:
        """Remove all entries; how many there were."""
        removed = [_remove(path) for path, _ in self._files()]
        self._size = None
        return sum(removed)


def _checksum(block: bytes) -> bytes:
    return blake2b(block, digest_size=_DIGEST).digest()


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


_STORES: dict[tuple[str | None, ...], Store] = {}


def store() -> Store:
    """The store that the environment asks for now."""
    names = ("TILEGRAD_CACHE_DIR", "TILEGRAD_CACHE_SIZE", "XDG_CACHE_HOME", "HOME")
    setting = tuple([os.environ.get(name) for name in names])
    found = _STORES.get(setting)
    if found is None:
        found = Store(cache_folder(), _limit(), shared=bool(setting[0]))
        _STORES[setting] = found
    return found
