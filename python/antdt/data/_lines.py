"""Lines of text files, plain or packed by gzip or zstd."""
from __future__ import annotations

import ctypes
from typing import Any, List, Optional, Sequence, Union

from antdt import _abi
from antdt._abi import Error
from antdt.data._index import check_place
from antdt.data._records import Path, Records, absolute


class _Handle:
    """An antdt_data, closed with its last reference in the process that opened it."""

    def __init__(self, paths: Sequence[str], beside: bool) -> None:
        self._library = _abi.load()
        texts = [path.encode("utf-8", "surrogateescape") for path in paths]
        array = (ctypes.c_char_p * len(texts))(*texts)
        options = _abi.DataOptions(
            struct_size=ctypes.sizeof(_abi.DataOptions),
            flags=_abi.DATA_INDEX_BESIDE if beside else 0, paths=array, path_count=len(texts))
        self._data = ctypes.c_void_p()
        self._check(self._library.antdt_data_open(ctypes.byref(options), ctypes.byref(self._data)))
        about = _abi.DataAbout(struct_size=ctypes.sizeof(_abi.DataAbout))
        self._check(self._library.antdt_data_describe(self._data, ctypes.byref(about)))
        self.records, self.fingerprint = about.records, about.fingerprint.decode()

    def _check(self, code: int) -> None:
        if code < 0:
            raise Error(code, (self._library.antdt_last_error() or b"").decode(errors="replace"))

    def read(self, records: List[int]) -> List[bytes]:
        numbers = (ctypes.c_uint64 * len(records))(*records)
        found = _abi.DataRecords(struct_size=ctypes.sizeof(_abi.DataRecords))
        self._check(self._library.antdt_data_read(self._data, numbers, len(records),
                                                  ctypes.byref(found)))
        lines, begin = [], 0
        for end in found.ends[:found.count]:
            lines.append(ctypes.string_at(found.bytes + begin, end - begin) if end > begin else b"")
            begin = end
        return lines

    def __del__(self) -> None:
        if getattr(self, "_data", None):
            self._library.antdt_data_close(self._data)


class Lines(Records):
    """Record i is line i of the files, in their order: a str, or bytes with encoding=None. Line ends (LF,
    CR LF) are left out; an empty line is a record, too. Files may be packed by gzip or zstd.

    index  "cache": the index is kept in the user's cache; "beside": beside the first file, for all hosts
    """

    def __init__(self, paths: Union[Path, Sequence[Path]], *, encoding: Optional[str] = "utf-8",
                 index: str = "cache") -> None:
        check_place(index)
        self._paths, self._encoding, self._beside = absolute(paths), encoding, index == "beside"
        handle = _Handle(self._paths, self._beside)
        super().__init__(handle.records, handle.fingerprint)
        self._opened = handle

    def _open(self) -> Any:
        return self._unchanged(_Handle(self._paths, self._beside), self._paths[0])

    def _read(self, opened: Any, records: List[int]) -> List[Any]:
        lines: List[bytes] = opened.read(records)
        encoding = self._encoding
        return [line.decode(encoding) for line in lines] if encoding is not None else lines
