"""Data that are read in ranges, as the files of an iterable dataset are.

A micro-batch's records are numbers; consecutive ones are read in one call. With `data.shuffle =
"shards"` in job.toml they are all consecutive but for where a shard ends; with "none" they are in the
data's order; with "full" (the default) each record is a call of its own.
"""
from __future__ import annotations

from itertools import islice
from typing import Any, Callable, Iterable, Iterator, List, Tuple

ReadRange = Callable[[int, int], Iterable[Any]]


def ranges_of(records: Tuple[int, ...]) -> Iterator[Tuple[int, int]]:
    """(first, one after the last) of the consecutive numbers, in their order."""
    first = 0
    for i in range(1, len(records) + 1):
        if i == len(records) or records[i] != records[i - 1] + 1:
            yield records[first], records[i - 1] + 1
            first = i


class Ranges:
    """Data that are read in ranges; what adt.shards was given."""

    def __init__(self, read: ReadRange, records: int) -> None:
        self._read, self._records = read, records

    def __len__(self) -> int:
        return self._records

    def samples(self, records: Tuple[int, ...]) -> List[Any]:
        found: List[Any] = []
        for first, end in ranges_of(records):
            try:
                part = list(islice(iter(self._read(first, end)), end - first + 1))
            except Exception as error:
                raise RuntimeError(f"records {first} to {end - 1} cannot be read: "
                                   f"{type(error).__name__}: {error}") from error
            if len(part) != end - first:
                some = "more" if len(part) > end - first else f"{len(part)}"
                raise RuntimeError(f"read({first}, {end}) gave {some} samples, and has to give one "
                                   f"for each of the {end - first} records")
            found += part
        return found
