"""An evaluation outside a job."""
from __future__ import annotations

from typing import Any, Callable, Mapping, Union

import torch

from antdt.torch._batch import MicroBatch
from antdt.torch._loader import Loader
from antdt.torch._metrics import Evaluated, Sums, Total

Metric = Callable[[MicroBatch], Union[Sums, Mapping[str, Any]]]


def evaluate_alone(loader: Loader, metric: Metric, size: int) -> Evaluated:
    """All of the loader's records, `size` at a time."""
    total = Total()
    for first in range(0, len(loader), size):
        records = tuple(range(first, min(first + size, len(loader))))
        with torch.no_grad():
            batch = MicroBatch(loader.read(records), records)
            total.add(Sums.of(metric(batch), len(batch)))
    return total.found()
