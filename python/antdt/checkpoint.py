"""Reads what libantdt wrote: a checkpoint is `parts.json` (what there is) and `parts.bin` (the bytes of
all parts, one after the other). Needs neither torch nor numpy, and loads no code."""
from __future__ import annotations

import json
import os
import pathlib
import re
from dataclasses import dataclass
from typing import Dict, List, Tuple, Union

_NAME = re.compile(r"s(\d+)-l(\d+)-")


@dataclass(frozen=True)
class Part:
    """One registered part: `shape` elements of `dtype` ("float32", …; "bytes"), `bytes` bytes from
    `first` on in parts.bin, in the writer's byte order."""

    name: str
    dtype: str
    shape: Tuple[int, ...]
    first: int
    bytes: int


def newest_checkpoint(run_dir: Union[str, "os.PathLike[str]"]) -> pathlib.Path:
    """The directory of a run's newest checkpoint; FileNotFoundError where there is none."""
    folder = pathlib.Path(run_dir) / "checkpoints"
    found = []
    for path in folder.iterdir() if folder.is_dir() else ():
        name = _NAME.match(path.name)
        if name:
            found.append((int(name.group(2)), int(name.group(1)), path))
    if not found:
        raise FileNotFoundError(f"{folder} has no checkpoint")
    return max(found)[2]


class Checkpoint:
    """A checkpoint of a program that uses libantdt; `path` is a run directory, whose newest is meant,
    or the directory of one checkpoint."""

    def __init__(self, path: Union[str, "os.PathLike[str]"]) -> None:
        self.path = pathlib.Path(path)
        if not (self.path / "parts.json").exists():
            self.path = newest_checkpoint(self.path)
        description = json.loads((self.path / "parts.json").read_text())
        if description.get("schema") != 1:
            raise ValueError(f"{self.path}/parts.json has schema {description.get('schema')}, and "
                             f"this release reads 1: install the release that wrote it")
        self.step: int = description["step"]
        self.parts: Dict[str, Part] = {
            part["name"]: Part(part["name"], part["dtype"], tuple(part["shape"]), part["first"],
                               part["bytes"])
            for part in description["parts"]}

    def names(self) -> List[str]:
        return list(self.parts)

    def read(self, name: str) -> bytearray:
        """The bytes of a part."""
        part = self.parts[name]
        data = bytearray(part.bytes)
        if part.bytes == 0:
            return data
        with open(self.path / "parts.bin", "rb") as file:
            file.seek(part.first)
            if file.readinto(data) != part.bytes:
                raise ValueError(f"{self.path}/parts.bin is shorter than parts.json says")
        return data
