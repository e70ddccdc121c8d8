"""The batches that the program computes."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Tuple

import torch


def pieces_of(records: Tuple[int, ...], sizes: Tuple[int, ...]) -> List[Tuple[int, ...]]:
    """The records in pieces of at most the greatest of `sizes`, which rise; in one, without sizes."""
    if not sizes:
        return [records]
    return [records[i:i + sizes[-1]] for i in range(0, len(records), sizes[-1])]


def padded(records: Tuple[int, ...], sizes: Tuple[int, ...]) -> Tuple[int, ...]:
    """Padded to the next of `sizes` by repeating the last record."""
    wanted = next((size for size in sizes if size >= len(records)), len(records))
    return records + records[-1:] * (wanted - len(records))


@dataclass(frozen=True)
class MicroBatch:
    """Records that are computed at once.

    data     what collate_fn made of them
    records  their numbers in the dataset
    last     nothing more is computed in this step
    size     samples in data: more than the records where job.declare(sizes=…) had it padded
    """

    data: Any
    records: Tuple[int, ...]
    last: bool = False
    size: int = 0

    def __len__(self) -> int:
        return len(self.records)

    @property
    def weight(self) -> float:
        """One for each record, which is right for a loss that is summed over records."""
        return float(len(self.records))

    @property
    def mask(self) -> torch.Tensor:
        """float32, (size,): 1 for each record, 0 for what it was padded with."""
        size = max(self.size, len(self.records))
        return (torch.arange(size) < len(self.records)).float()

    @property
    def x(self) -> Any:
        """The first of a pair of data; data itself, if they are no pair."""
        return self.data[0] if isinstance(self.data, (list, tuple)) else self.data

    @property
    def y(self) -> Any:
        """The second of a pair of data."""
        if not isinstance(self.data, (list, tuple)) or len(self.data) < 2:
            raise TypeError(f"mb.y: the data of a micro-batch are a {type(self.data).__name__} and "
                            f"no pair; use mb.data")
        return self.data[1]
