"""Indexes of data sets, kept in the user's cache or beside the data. The same rules as libantdt's.

A file, written beside its place and renamed, so that nobody sees half of one:

    "ANTDTPY1"                                      8 bytes
    size of the description, then of the columns    2 x u64, little-endian
    description: JSON                               kind, version, what it was made of, sizes of columns
    columns                                         u64 each, 8-aligned, then bytes
    BLAKE2b of all before                           16 bytes

It is valid as long as the checksum is right, this release would build it in the same way, and what it was
made of has not changed: of files the size, the time of change, and a checksum of their head and tail; of
directories the time of change. Processes that come while it is built wait for that.
"""
from __future__ import annotations

import atexit
import functools
import hashlib
import json
import mmap
import os
import shutil
import stat
import struct
import sys
import tempfile
from array import array
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence

from antdt.data._progress import Tell, building, progress

_MAGIC = b"ANTDTPY1"
_SAMPLE = 65536
_SHARED = "/tmp"  # where everybody writes
_HASH_BYTES = 16


def check_place(place: str) -> None:
    if place not in ("cache", "beside"):
        raise ValueError(f"index={place!r}; it must be \"cache\" or \"beside\"")


def cache_folder() -> str:
    for base, below in ((os.environ.get("XDG_CACHE_HOME", ""), "antdt/index"),
                        (os.environ.get("HOME", ""), ".cache/antdt/index")):
        if base.startswith("/"):
            return os.path.join(base, below)
    return _private_folder(f"{_SHARED}/antdt-index-{os.getuid()}")


def _private_folder(path: str) -> str:
    """`path`, in a directory where everybody writes, if nobody else can have put anything there; else a
    folder of this process, which ends with it: so the index is built, and not kept."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    except OSError:
        return _folder_of_this_process()
    info = os.lstat(path)
    if stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid() and not info.st_mode & 0o022:
        return path
    print(f"antdt: {path} is not a directory that only this user writes to, so that the index is not kept. "
          f"Remove it, or set HOME or XDG_CACHE_HOME", file=sys.stderr, flush=True)
    return _folder_of_this_process()


@functools.lru_cache(maxsize=None)
def _folder_of_this_process() -> str:
    folder = tempfile.mkdtemp(prefix="antdt-index-")
    atexit.register(_remove, folder, os.getpid())
    return folder


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # not in one that it forked
        shutil.rmtree(folder, ignore_errors=True)


def _digest(*parts: bytes) -> "hashlib._Hash":
    digest = hashlib.blake2b(digest_size=_HASH_BYTES)
    for part in parts:
        digest.update(part)
    return digest


def state_of(path: str) -> List[Any]:
    """What tells that a file or a directory has changed: [size, time in ns, checksum]."""
    if os.path.isdir(path):
        return [0, os.stat(path).st_mtime_ns, ""]
    with open(path, "rb") as file:
        info = os.fstat(file.fileno())
        head = file.read(_SAMPLE)
        file.seek(max(0, info.st_size - _SAMPLE))
        return [info.st_size, info.st_mtime_ns, _digest(head, file.read(_SAMPLE)).hexdigest()]


def _is_of_file(state: List[Any]) -> bool:
    return bool(state[2])


@dataclass
class Built:
    """What a pass over the data found."""

    states: Dict[str, List[Any]]      # of files and directories whose change makes it invalid, before
    columns: Dict[str, "array[int]"]  # of type "Q"
    bytes: bytes = b""
    about: Any = None                 # anything that JSON can say


class Index:
    """An index that was read, whose files are named from `base`. columns: name -> u64 values, in memory that
    is mapped."""

    def __init__(self, description: Any, memory: memoryview, base: str) -> None:
        self._base = base
        self._states = {name: state for name, state in description["sources"] if _is_of_file(state)}
        self.about = description["about"]
        self.fingerprint: str = description["fingerprint"]
        self.columns: Dict[str, memoryview] = {}
        at = 0
        for name, count in description["columns"]:
            self.columns[name] = memory[at:at + 8 * count].cast("Q")
            at += 8 * count
        self.bytes = memory[at:]

    def states(self, paths: Sequence[str]) -> List[List[Any]]:
        """Of files that it was made of, as they were then; see state_of."""
        return [self._states[os.path.relpath(path, self._base)] for path in paths]


def _parse(path: str) -> Any:
    """(description, memory of the columns) of a whole index file; ValueError for anything else."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < len(_MAGIC) + 16 + _HASH_BYTES:
            raise ValueError("too short")
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    described, columns = struct.unpack_from("<2Q", whole, len(_MAGIC))
    begin = len(_MAGIC) + 16
    if bytes(whole[:len(_MAGIC)]) != _MAGIC or begin + described + columns + _HASH_BYTES != size:
        raise ValueError("no index")
    if _digest(whole[:-_HASH_BYTES]).digest() != bytes(whole[-_HASH_BYTES:]):  # type: ignore[arg-type]
        raise ValueError("damaged")
    description = json.loads(bytes(whole[begin:begin + described]))
    return description, whole[begin + described:size - _HASH_BYTES]


def _open_valid(path: str, kind: str, base: str) -> Optional[Index]:
    try:
        description, memory = _parse(path)
        if description["kind"] != kind:
            return None
        seen = 0
        for name, state in description["sources"]:
            source = os.path.join(base, name)
            if state_of(source) != state:
                return None
            seen += state[0] or len(name)  # a directory has its name
            progress(source, seen)
        return Index(description, memory, base)
    except (OSError, ValueError):
        return None


def _encode(kind: str, base: str, built: Built) -> bytes:
    sources = [(os.path.relpath(path, base), state) for path, state in built.states.items()]
    # Times differ between hosts that have copies; sizes and contents do not. Of directories only what the
    # columns have of them counts: one that comes and holds no record changes no record's number.
    files = [[name, state[0], state[2]] for name, state in sources if _is_of_file(state)]
    said = json.dumps([kind, files, built.about])
    columns = b"".join(values.tobytes() for values in built.columns.values()) + built.bytes
    text = json.dumps({
        "kind": kind, "sources": sources, "about": built.about,
        "fingerprint": _digest(said.encode(), columns).hexdigest(),
        "columns": [[name, len(values)] for name, values in built.columns.items()]}).encode()
    text += b" " * (-len(text) % 8)
    whole = _MAGIC + struct.pack("<2Q", len(text), len(columns)) + text + columns
    return whole + _digest(whole).digest()


def _write(path: str, data: bytes, mode: int) -> None:
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), mode)
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def states_of(paths: Sequence[str], tell: Tell) -> Dict[str, List[Any]]:
    """Of files, before a pass over them; that there are many is told."""
    states: Dict[str, List[Any]] = {}
    seen = 0
    for path in paths:
        states[path] = state_of(path)
        seen += _SAMPLE
        tell(path, seen, 0)
    return states


def cached(kind: str, paths: Sequence[str], place: str, build: Callable[[Tell], Built]) -> Index:
    """The index of `paths`: the valid one that is there, or a new one. `kind` says what is built and how,
    with a version, which is to be raised when the same data would make another index."""
    try:
        return _cached(kind, paths, place, build)
    finally:
        progress(None)


def _cached(kind: str, paths: Sequence[str], place: str, build: Callable[[Tell], Built]) -> Index:
    check_place(place)
    base = os.path.dirname(paths[0])
    beside = place == "beside"
    folder = os.path.join(base, ".antdt-index") if beside else cache_folder()
    names = [os.path.relpath(path, base) for path in paths] if beside else list(paths)
    path = os.path.join(folder, _digest(json.dumps([kind, names]).encode()).hexdigest() + ".pyidx")
    found = _open_valid(path, kind, base)
    if found is not None:
        return found
    try:
        os.makedirs(folder, 0o755 if beside else 0o700, exist_ok=True)
        with building(path + ".lock") as tell:
            found = _open_valid(path, kind, base)
            if found is None:
                _write(path, _encode(kind, base, build(tell)), 0o644 if beside else 0o600)
    except PermissionError as error:
        raise PermissionError(
            f"the index of {paths[0]} cannot be written to {folder}: {error}. Let somebody build it who "
            f"may write there, or use index=\"cache\"") from error
    return found if found is not None else Index(*_parse(path), base)
