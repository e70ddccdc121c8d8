"""How far this process is with opening its data: its job shows that, and waits for it to join as long as bytes
move; and whoever waits for the same index to be built is told, too."""
from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import struct
import time
from typing import Any, Callable, Iterator, Optional

from antdt import _abi
from antdt._abi import Error

_LOOK_EVERY = 0.2  # s, while another process builds
_SAY_EVERY = 1.0
_POSITION = struct.Struct("<2Q")  # in a lock file: done, total

Tell = Callable[[str, int, int], None]


@functools.lru_cache(maxsize=None)
def _library() -> Optional[Any]:
    try:
        return _abi.load()
    except ImportError:
        return None  # there is no job then


def progress(path: "os.PathLike[str] | str | None", done_bytes: int = 0, total_bytes: int = 0) -> None:
    """For a program that opens its data, or the weights of its model, in a way of its own before it joins:
    it is at done_bytes of total_bytes of `path` (0: the total is not known); None: they are open. `antdt
    status` shows it, and the job waits as long as bytes move. Call it as often as is convenient. Does nothing
    outside of a job, and in processes that the program itself starts."""
    _tell(path, done_bytes, total_bytes, 0)


def _tell(path: "os.PathLike[str] | str | None", done_bytes: int, total_bytes: int, flags: int) -> None:
    library = _library()
    if library is None:
        return
    text = None if path is None else os.fspath(path).encode("utf-8", "surrogateescape")
    code = library.antdt_data_progress(text, done_bytes, total_bytes, flags)
    if code < 0:
        raise Error(code, (library.antdt_last_error() or b"").decode(errors="replace"))


class _Position:
    """Where a builder is, in the lock file that it holds."""

    def __init__(self, lock: int) -> None:
        self._lock, self._due = lock, 0.0

    def write(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + _SAY_EVERY
        os.pwrite(self._lock, _POSITION.pack(done, total), 0)

    def read(self) -> "tuple[int, int]":
        found = os.pread(self._lock, _POSITION.size, 0)
        return _POSITION.unpack(found) if len(found) == _POSITION.size else (0, 0)


@contextlib.contextmanager
def building(lock_file: str) -> Iterator[Tell]:
    """The lock of an index, which ends with the process, however that ends. Gives what the builder calls with
    the file that it reads, and how many of all bytes it has read."""
    lock = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        position = _Position(lock)
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                _tell(lock_file, *position.read(), _abi.DATA_WAITS)
                time.sleep(_LOOK_EVERY)

        def tell(path: str, done: int, total: int) -> None:
            progress(path, done, total)
            position.write(done, total)

        yield tell
    finally:
        os.close(lock)
