"""The files of a data set that a process has open: a few, since it may often have 1,024 and a set has more."""
from __future__ import annotations

import collections
import os
from typing import Any, Callable, Dict, Sequence, Tuple

_MOST = 64


class OpenFiles:
    """Files by their numbers. Those that were used last stay open; what `open_file` gives closes its file
    when nobody refers to it any more."""

    def __init__(self, paths: Sequence[str], open_file: Callable[[str], Any]) -> None:
        self._paths, self._open_file = paths, open_file
        self._open: "collections.OrderedDict[int, Any]" = collections.OrderedDict()
        self._states: Dict[int, Tuple[int, int]] = {}  # when they were opened first

    def __getitem__(self, number: int) -> Any:
        if number in self._open:
            self._open.move_to_end(number)
            return self._open[number]
        path = self._paths[number]
        info = os.stat(path)
        state = (info.st_size, info.st_mtime_ns)
        if self._states.setdefault(number, state) != state:
            raise ValueError(f"{path} has changed while it was in use")
        while len(self._open) >= _MOST:
            self._open.popitem(last=False)
        self._open[number] = self._open_file(path)
        return self._open[number]
