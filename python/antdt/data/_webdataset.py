"""WebDataset: tar files in which neighbours whose names begin alike make one sample."""
from __future__ import annotations

import os
import tarfile
from array import array
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from antdt.data._index import Built, cached, states_of
from antdt.data._open_files import OpenFiles, changed
from antdt.data._progress import Tell
from antdt.data._records import Path, Records, absolute

_KIND = "webdataset 1"
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ")


def _split(name: str) -> Tuple[str, str]:
    """Folder and name up to the first dot, and what follows that dot."""
    folder, _, file = name.rpartition("/")
    stem, _, extension = file.partition(".")
    return (f"{folder}/{stem}" if folder else stem), extension


class _Scan:
    """One pass over tar files, of `total` bytes."""

    def __init__(self, total: int, tell: Tell) -> None:
        self._passed, self._total, self._tell = 0, total, tell
        self.samples = array("Q")   # number of each one's first member
        self.tars = array("Q")      # of each member: its tar file
        self.offsets, self.sizes = array("Q"), array("Q")
        self.extensions = array("Q")  # of each member: where in `known`
        self.keys = array("Q")      # of each sample: where its key ends in `text`
        self.text = bytearray()
        self.known: Dict[str, int] = {}

    def add(self, number: int, path: str, size: int) -> None:
        with open(path, "rb") as file:
            head = file.read(8)
        if head.startswith(_PACKED):
            raise ValueError(f"{path} is packed; its members are read from the middle, so unpack it "
                             f"(what is inside may be packed)")
        key, extensions = None, set()
        try:
            with tarfile.open(path, "r:", encoding="utf-8", errors="surrogateescape") as tar:
                for member in tar:
                    self._tell(path, self._passed + member.offset_data, self._total)
                    name, extension = _split(member.name)
                    if not member.isreg() or not extension or name.rpartition("/")[2] == "":
                        continue
                    if member.issparse():
                        raise ValueError(f"{path}: {member.name} is sparse, and cannot be read")
                    if name != key:
                        key, extensions = name, set()
                        self._begin(name)
                    if extension in extensions:
                        raise ValueError(f"{path}: sample {name} has two members .{extension}")
                    extensions.add(extension)
                    self._member(number, member, extension)
                    tar.members = []  # type: ignore[misc]  # it would remember them all
        except tarfile.TarError as error:
            raise ValueError(f"{path} is no whole tar file: {error}") from error
        if self.tars and self.tars[-1] == number \
                and self.offsets[-1] + self.sizes[-1] > size:
            raise ValueError(f"{path} is cut short")
        self._passed += size

    def _begin(self, key: str) -> None:
        self.samples.append(len(self.tars))
        self.text += key.encode("utf-8", "surrogateescape")
        self.keys.append(len(self.text))

    def _member(self, number: int, member: tarfile.TarInfo, extension: str) -> None:
        self.tars.append(number)
        self.offsets.append(member.offset_data)
        self.sizes.append(member.size)
        self.extensions.append(self.known.setdefault(extension, len(self.known)))


def _build(paths: Sequence[str], tell: Tell) -> Built:
    states = states_of(paths, tell)
    scan = _Scan(sum(state[0] for state in states.values()), tell)
    for number, path in enumerate(paths):
        scan.add(number, path, states[path][0])
    return Built(states, {"samples": scan.samples, "keys": scan.keys, "tars": scan.tars,
                          "offsets": scan.offsets, "sizes": scan.sizes,
                          "extensions": scan.extensions}, bytes(scan.text), list(scan.known))


class WebDataset(Records):
    """Record i is the i-th sample of the tar files, in their order: a dict of bytes by extension, with its
    name as "__key__". `decode`, if there is one, makes of that dict what the data set gives.

    index  "cache": the index is kept in the user's cache; "beside": beside the first file, for all hosts
    """

    def __init__(self, tars: Union[Path, Sequence[Path]], *,
                 decode: Optional[Callable[[Dict[str, Any]], Any]] = None,
                 index: str = "cache") -> None:
        self._paths, self._decode, self._place = absolute(tars), decode, index
        found = self._index()
        super().__init__(len(found.columns["samples"]), found.fingerprint)

    def _index(self) -> Any:
        return cached(_KIND, self._paths, self._place, lambda tell: _build(self._paths, tell))

    def _open(self) -> Any:
        index = self._unchanged(self._index(), self._paths[0])
        return index, OpenFiles(index, self._paths, _File)

    def _read(self, opened: Any, records: List[int]) -> List[Any]:
        samples = [self._sample(*opened, record) for record in records]
        return [self._decode(sample) for sample in samples] if self._decode else samples

    def _sample(self, index: Any, files: OpenFiles, record: int) -> Dict[str, Any]:
        columns = index.columns
        samples, keys = columns["samples"], columns["keys"]
        key = bytes(index.bytes[keys[record - 1] if record else 0:keys[record]])
        sample: Dict[str, Any] = {"__key__": key.decode("utf-8", "surrogateescape")}
        end = samples[record + 1] if record + 1 < len(samples) else len(columns["tars"])
        for member in range(samples[record], end):
            number, size = columns["tars"][member], columns["sizes"][member]
            data = os.pread(files[number].descriptor, size, columns["offsets"][member])
            if len(data) != size:
                raise changed(self._paths[number])
            sample[index.about[columns["extensions"][member]]] = data
        return sample


class _File:
    def __init__(self, path: str) -> None:
        self.descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self) -> None:
        if hasattr(self, "descriptor"):
            os.close(self.descriptor)
