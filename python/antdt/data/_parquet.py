"""Rows of Parquet files, by pyarrow."""
from __future__ import annotations

import bisect
import collections
from array import array
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from antdt.data._index import Built, cached, states_of
from antdt.data._open_files import OpenFiles
from antdt.data._progress import Tell
from antdt.data._records import Path, Records, absolute

_KIND = "parquet 1"
_KEPT = 4  # row groups that were read last


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("antdt.data.Parquet reads by pyarrow, which is not installed: "
                          "pip install pyarrow") from error
    return pyarrow


def _open_file(path: str) -> Any:
    pyarrow = _pyarrow()
    try:
        return pyarrow.parquet.ParquetFile(path)
    except pyarrow.ArrowInvalid as error:
        raise ValueError(f"{path} is no whole Parquet file: {error}") from error


def _build(paths: Sequence[str], tell: Tell) -> Built:
    states = states_of(paths, tell)
    passed, size = 0, sum(state[0] for state in states.values())
    files, groups, ends, names = array("Q"), array("Q"), array("Q"), None
    total = 0
    for number, path in enumerate(paths):
        file = _open_file(path)
        if names is not None and file.schema_arrow.names != names:
            raise ValueError(f"{path} has the columns {', '.join(file.schema_arrow.names)}, and {paths[0]} "
                             f"has {', '.join(names)}")
        names = file.schema_arrow.names
        for group in range(file.num_row_groups):
            total += file.metadata.row_group(group).num_rows
            files.append(number)
            groups.append(group)
            ends.append(total)
        passed += states[path][0]  # of which its end was read
        tell(path, passed, size)
    return Built(states, {"files": files, "groups": groups, "ends": ends}, about=names)


class Parquet(Records):
    """Record i is row i of the files, in their order: a dict of Python values by column; columns=[…] reads
    those alone. The index says which rows are in which row group of which file; a row group is read as a
    whole, and those read last are kept, so groups of some thousand rows are best for shuffled reading.

    index  "cache": the index is kept in the user's cache; "beside": beside the first file, for all hosts
    """

    def __init__(self, paths: Union[Path, Sequence[Path]], *, columns: Optional[Sequence[str]] = None,
                 index: str = "cache") -> None:
        _pyarrow()
        self._paths, self._place = absolute(paths), index
        self._columns = list(columns) if columns is not None else None
        found = self._index()
        missing = [name for name in self._columns or [] if name not in found.about]
        if missing:
            raise ValueError(f"{self._paths[0]} has no column {', '.join(missing)}; it has "
                             f"{', '.join(found.about)}")
        ends = found.columns["ends"]
        super().__init__(ends[len(ends) - 1] if len(ends) else 0, found.fingerprint)

    def _index(self) -> Any:
        return cached(_KIND, self._paths, self._place, lambda tell: _build(self._paths, tell))

    def _open(self) -> Any:
        return _Groups(self._unchanged(self._index(), self._paths[0]), self._paths, self._columns)

    def _read(self, opened: Any, records: List[int]) -> List[Any]:
        return [opened.row(record) for record in records]


class _Groups:
    """Row groups that are in memory; of one process."""

    def __init__(self, index: Any, paths: Tuple[str, ...], columns: Optional[List[str]]) -> None:
        self._index, self._columns = index, columns
        self._files = OpenFiles(index, paths, _open_file)
        self._tables: "collections.OrderedDict[int, Any]" = collections.OrderedDict()

    def row(self, record: int) -> Dict[str, Any]:
        ends = self._index.columns["ends"]
        group = bisect.bisect_right(ends, record)
        row = record - (ends[group - 1] if group else 0)
        table = self._table(group)
        return {name: table.column(name)[row].as_py() for name in table.column_names}

    def _table(self, group: int) -> Any:
        if group in self._tables:
            self._tables.move_to_end(group)
            return self._tables[group]
        columns = self._index.columns
        file = self._files[columns["files"][group]]
        table = file.read_row_group(columns["groups"][group], columns=self._columns)
        if len(self._tables) >= _KEPT:
            self._tables.popitem(last=False)
        self._tables[group] = table
        return table
