"""The sums of an evaluation."""
from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

import torch

from antdt import _abi

_NAME = re.compile(r"[A-Za-z0-9_./@-]{1,64}")


def _check_names(names: Mapping[str, float]) -> None:
    for name in names:
        if not _NAME.fullmatch(name):
            raise ValueError(f"a named sum is called {name!r}: a name has 1 to 64 letters, digits and _ - . / @")
    if len(names) > 64:
        raise ValueError(f"the evaluation has {len(names)} named sums: 64 at most")


@dataclass
class Sums:
    """Sums over records, not means.

    loss     of their losses, by the natural logarithm
    correct  how many were classified rightly
    scores   and labels: of a binary classification, the probabilities of class 1 and the classes (0
             or 1), from which the job computes AUC
    records  how many they are; left out, the micro-batch's length
    named    the program's own sums, by name: {"true_positives": 3}. The job adds them up over all
             records, and Evaluated.sums has them. A name has 1 to 64 letters, digits and _ - . / @
    """

    loss: float = 0.0
    correct: int = 0
    scores: Optional[torch.Tensor] = None
    labels: Optional[torch.Tensor] = None
    records: int = -1
    named: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, value: Union["Sums", Mapping[str, Any]], records: int) -> "Sums":
        """The sums that a metric returned for `records` records."""
        if isinstance(value, Mapping):
            value = cls(**value)
        if not isinstance(value, Sums):
            raise TypeError(f"a metric returns adt.Sums or a dict of its fields, not "
                            f"{type(value).__name__}")
        value.loss, value.correct = float(value.loss), int(value.correct)
        value.named = {name: float(each) for name, each in value.named.items()}
        _check_names(value.named)
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


@dataclass(frozen=True)
class Evaluated:
    """What an evaluation found over all records, whichever member evaluated them.

    records    how many they were
    mean_loss  a record
    accuracy   the share of those that were classified rightly
    auc        of scores of a binary classification, from a histogram of 16,384 bins; NaN without
               scores of both classes
    sums       the program's own, by name
    """

    records: int
    mean_loss: float
    accuracy: float
    auc: float
    sums: Mapping[str, float] = field(default_factory=dict)


class Total:
    """The sums of a world of one."""

    def __init__(self) -> None:
        self._records, self._loss, self._correct = 0, 0.0, 0
        self._named: Dict[str, float] = {}
        self._classes = torch.zeros(2, _abi.SCORE_BINS, dtype=torch.int64)  # negatives, positives

    def add(self, sums: Sums) -> None:
        self._records += sums.records
        self._loss += sums.loss
        self._correct += sums.correct
        for name, value in sums.named.items():
            self._named[name] = self._named.get(name, 0.0) + value
        _check_names(self._named)
        used, negatives, positives = sums.bins()
        self._classes[:, used] += torch.tensor([negatives, positives], dtype=torch.int64)

    def found(self) -> Evaluated:
        records = self._records
        share = 1 / records if records else float("nan")
        return Evaluated(records, self._loss * share, self._correct * share, self._auc(),
                         dict(sorted(self._named.items())))

    def _auc(self) -> float:
        negatives, positives = self._classes.double()
        pairs = negatives.sum() * positives.sum()
        below = negatives.cumsum(0) - negatives / 2  # a pair of one bin counts half
        return float((positives * below).sum() / pairs) if pairs > 0 else float("nan")
