"""The files of a data set that a process has open: a few, since it may often have 1,024 and a set has more."""
from __future__ import annotations

import collections
import os
from typing import Any, Callable, List, Sequence

from antdt.data._index import Index, state_of

_MOST = 64


def changed(path: str) -> ValueError:
    return ValueError(
        f"{path} has changed while it was in use, so that a record's number may mean another record now. Put "
        f"back what was there, or start again with the data as they are, and leave them as they are while a "
        f"program uses them")


class OpenFiles:
    """The files of an index by their numbers. Those that were used last stay open; what `open_file` gives
    closes its file when nobody refers to it any more. A file that is not the one of which the index was made
    is refused whenever it is opened, which may be hours after the index was."""

    def __init__(self, index: Index, paths: Sequence[str], open_file: Callable[[str], Any]) -> None:
        self._paths, self._open_file = paths, open_file
        self._open: "collections.OrderedDict[int, Any]" = collections.OrderedDict()
        self._states: List[List[Any]] = index.states(paths)

    def __getitem__(self, number: int) -> Any:
        if number in self._open:
            self._open.move_to_end(number)
            return self._open[number]
        while len(self._open) >= _MOST:
            self._open.popitem(last=False)
        try:
            opened = self._open_file(self._paths[number])
        finally:
            # After it is opened: a file that was compared before could be replaced in between. Also if it
            # cannot be opened, which a change may explain.
            self._compare(number)
        self._open[number] = opened
        return opened

    def _compare(self, number: int) -> None:
        path, then = self._paths[number], self._states[number]
        info = os.stat(path)
        if [info.st_size, info.st_mtime_ns] == then[:2]:
            return
        now = state_of(path)
        if (now[0], now[2]) != (then[0], then[2]):
            raise changed(path)
        self._states[number] = now  # another time alone, as of a copy or by touch, is no change
