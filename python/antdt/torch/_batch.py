"""What the program is given to compute."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Tuple


@dataclass(frozen=True)
class MicroBatch:
    """Records that are computed at once.

    data     what collate_fn made of them
    records  their numbers in the dataset
    last     nothing more is computed in this step
    """

    data: Any
    records: Tuple[int, ...]
    last: bool = False

    def __len__(self) -> int:
        return len(self.records)

    @property
    def weight(self) -> float:
        """One for each record, which is right for a loss that is summed over records."""
        return float(len(self.records))

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
