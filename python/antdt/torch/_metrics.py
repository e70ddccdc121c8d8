"""What an evaluation adds up."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Mapping, Optional, Tuple, Union

import torch

from antdt import _abi


@dataclass
class Sums:
    """Sums over records, not means.

    loss     of their losses, by the natural logarithm
    correct  how many were classified rightly
    scores   and labels: of a binary classification, the probabilities of class 1 and the classes (0
             or 1), from which the job computes AUC
    records  how many they are; left out, the micro-batch's length
    """

    loss: float = 0.0
    correct: int = 0
    scores: Optional[torch.Tensor] = None
    labels: Optional[torch.Tensor] = None
    records: int = -1

    @classmethod
    def of(cls, value: Union["Sums", Mapping[str, Any]], records: int) -> "Sums":
        """What a metric returned for `records` records."""
        if isinstance(value, Mapping):
            value = cls(**value)
        if not isinstance(value, Sums):
            raise TypeError(f"a metric returns adt.Sums or a dict of its fields, not "
                            f"{type(value).__name__}")
        value.loss, value.correct = float(value.loss), int(value.correct)
        if value.records < 0:
            value.records = records
        return value

    def bins(self) -> Tuple[List[int], List[int], List[int]]:
        """(bins that are not empty, records of class 0 in each, of class 1)."""
        if self.scores is None or self.labels is None:
            return [], [], []
        scores = self.scores.detach().flatten().double().cpu()
        labels = self.labels.detach().flatten().cpu() > 0
        places = (scores * _abi.SCORE_BINS).long().clamp(0, _abi.SCORE_BINS - 1)
        negatives = torch.bincount(places[~labels], minlength=_abi.SCORE_BINS)
        positives = torch.bincount(places[labels], minlength=_abi.SCORE_BINS)
        used = torch.nonzero(negatives + positives).flatten()
        return used.tolist(), negatives[used].tolist(), positives[used].tolist()


@dataclass
class Evaluated:
    """What this member evaluated; outside a job that is everything. The job's own figures, over all
    members, are in its reports."""

    records: int = 0
    loss: float = 0.0
    correct: int = 0

    def add(self, sums: Sums) -> None:
        self.records += sums.records
        self.loss += sums.loss
        self.correct += sums.correct

    @property
    def mean_loss(self) -> float:
        return self.loss / self.records if self.records else float("nan")

    @property
    def accuracy(self) -> float:
        return self.correct / self.records if self.records else float("nan")
