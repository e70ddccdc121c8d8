"""A directory of files, whose folders are classes."""
from __future__ import annotations

import os
from array import array
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from antdt.data._index import Built, cached, state_of
from antdt.data._progress import Tell
from antdt.data._records import Path, Records, absolute

_KIND = "folder 2"


def _walk(root: str, tell: Tell) -> Tuple[Dict[str, List[Any]], List[str]]:
    """All directories with their states and all files below `root`, sorted by path, hidden ones left out."""
    left, states, files, listed = [root], {}, [], 0
    passed = set()  # a link may lead back
    while left:
        folder = left.pop()
        info = os.stat(folder)
        if (info.st_dev, info.st_ino) in passed:
            continue
        passed.add((info.st_dev, info.st_ino))
        states[folder] = state_of(folder)
        with os.scandir(folder) as found:
            entries = sorted((entry for entry in found if not entry.name.startswith(".")),
                             key=lambda entry: os.fsencode(entry.name), reverse=True)
        listed += sum(len(entry.name) for entry in entries)
        tell(folder, listed, 0)
        left += [entry.path for entry in entries if entry.is_dir()]
        files += [entry.path for entry in entries if entry.is_file()]
    # As bytes: the same on all hosts, whatever their language.
    return states, sorted(files, key=os.fsencode)


def _build(root: str, extensions: Tuple[str, ...], tell: Tell) -> Built:
    states, files = _walk(root, tell)
    text, ends, classes = bytearray(), array("Q"), array("Q")
    found = [os.path.relpath(path, root) for path in files
             if not extensions or path.lower().endswith(extensions)]
    names = sorted({name.split(os.sep)[0] for name in found if os.sep in name}, key=os.fsencode)
    number = {name: i for i, name in enumerate(names)}
    for name in found:
        text += os.fsencode(name)
        ends.append(len(text))
        # Behind the last class: a file that is in no folder.
        classes.append(number[name.split(os.sep)[0]] if os.sep in name else len(names))
    return Built(states, {"ends": ends, "classes": classes}, bytes(text), names)


class Folder(Records):
    """Record i is the i-th file below `folder`, sorted by path: (its bytes, the number of its class), or
    what `load(path)` makes in place of the bytes. `classes` names the folders directly below, sorted; a
    file that is in none has the class -1. Hidden files and folders are left out.

    extensions  files with another end are left out, as (".jpg", ".png"); none: all are in
    index       "cache": the listing is kept in the user's cache; "beside": in a directory beside `folder`

    The listing is made anew when a folder has another time of change, which it has when a file came or
    went. The fingerprint is that of the records' names and classes: what is in the files is not read for it,
    and folders without a record do not count.
    """

    def __init__(self, folder: Path, *, extensions: Sequence[str] = (),
                 load: Optional[Callable[[str], Any]] = None, index: str = "cache") -> None:
        (self.folder,) = absolute(folder)
        if not os.path.isdir(self.folder):
            raise NotADirectoryError(f"{self.folder} is no directory")
        self._extensions = tuple(sorted(extension.lower() for extension in extensions))
        self._load, self._place = load, index
        found = self._index()
        self.classes: List[str] = found.about
        super().__init__(len(found.columns["ends"]), found.fingerprint)

    def _index(self) -> Any:
        return cached(f"{_KIND} {' '.join(self._extensions)}", [self.folder], self._place,
                      lambda tell: _build(self.folder, self._extensions, tell))

    def path(self, record: int) -> str:
        """The file of a record."""
        number = self._number(record)
        with self._own_lock():
            return self._path(self._opened_here(), number)

    def _path(self, index: Any, number: int) -> str:
        ends = index.columns["ends"]
        name = bytes(index.bytes[ends[number - 1] if number else 0:ends[number]])
        return os.path.join(self.folder, os.fsdecode(name))

    def _open(self) -> Any:
        return self._unchanged(self._index(), self.folder)

    def _read(self, opened: Any, records: List[int]) -> List[Any]:
        samples = []
        for record in records:
            path, kind = self._path(opened, record), opened.columns["classes"][record]
            samples.append((self._load(path) if self._load else _bytes_of(path),
                            kind if kind < len(self.classes) else -1))
        return samples


def _bytes_of(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
