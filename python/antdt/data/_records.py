"""What data sets of files have in common: numbers from 0, files that are open in one process only."""
from __future__ import annotations

import os
import threading
from typing import Any, List, Sequence, Tuple, Union

Path = Union[str, "os.PathLike[str]"]


def absolute(paths: Union[Path, Sequence[Path]]) -> Tuple[str, ...]:
    """One path or several, as a tuple of absolute ones, so that a change of directory does no harm."""
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not given:
        raise ValueError("paths names no file")
    return tuple(os.path.abspath(os.fspath(path)) for path in given)


class Records:
    """A map-style data set. It may be pickled, and used in processes that were forked: each opens files
    of its own, when it reads its first record."""

    def __init__(self, count: int, fingerprint: str) -> None:
        self._count = count
        # The same exactly where the data are: for adt.init(fingerprint=…).
        self.fingerprint = fingerprint
        self._reset()

    def _reset(self) -> None:
        self._owner, self._lock, self._opened = os.getpid(), threading.Lock(), None

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, record: int) -> Any:
        return self.__getitems__([record])[0]

    def __getitems__(self, records: Sequence[int]) -> List[Any]:
        """Several at once; PyTorch 2's DataLoader asks so."""
        numbers = [self._number(record) for record in records]
        with self._own_lock():
            return self._read(self._opened_here(), numbers)

    def _own_lock(self) -> threading.Lock:
        """Of this process, to which what is opened belongs."""
        if self._owner != os.getpid():
            self._reset()
        return self._lock

    def _opened_here(self) -> Any:
        """What _open gives; with the lock."""
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _number(self, record: int) -> int:
        number = record.__index__()
        if number < 0:
            number += self._count
        if not 0 <= number < self._count:
            raise IndexError(f"there is no record {record}: there are {self._count}")
        return number

    def _open(self) -> Any:
        """What _read needs and cannot be shared with other processes. Processes open the data at different
        times, so it calls _unchanged."""
        raise NotImplementedError

    def _unchanged(self, found: Any, path: str) -> Any:
        """found  with the fingerprint of the data as they are now; it is returned
        path   of the data, for the message"""
        if found.fingerprint != self.fingerprint:
            raise RuntimeError(
                f"the data of {type(self).__name__} ({path}) have changed since this program opened them, so "
                f"that a record's number means another record now: their fingerprint was {self.fingerprint} "
                f"and is {found.fingerprint}. Put back what was there, or start again with the data as they "
                f"are, and leave them as they are while a program uses them")
        return found

    def _read(self, opened: Any, records: List[int]) -> List[Any]:
        raise NotImplementedError

    def __getstate__(self) -> Any:
        own = ("_owner", "_lock", "_opened")
        return {name: value for name, value in self.__dict__.items() if name not in own}

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        self._reset()
