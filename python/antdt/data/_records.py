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
        if self._owner != os.getpid():
            self._reset()
        with self._lock:
            if self._opened is None:
                self._opened = self._open()
            return self._read(self._opened, numbers)

    def _number(self, record: int) -> int:
        number = record.__index__()
        if number < 0:
            number += self._count
        if not 0 <= number < self._count:
            raise IndexError(f"there is no record {record}: there are {self._count}")
        return number

    def _open(self) -> Any:
        """What _read needs and cannot be shared with other processes."""
        raise NotImplementedError

    def _read(self, opened: Any, records: List[int]) -> List[Any]:
        raise NotImplementedError

    def __getstate__(self) -> Any:
        own = ("_owner", "_lock", "_opened")
        return {name: value for name, value in self.__dict__.items() if name not in own}

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        self._reset()
