"""Reads the records that the job gives to this member.

What comes next is known a little ahead (antdt_ahead), so worker processes read whole micro-batches
before they are ordered. If the order turns out to be another one, because the plan changed the size
of a micro-batch, what was read ahead is thrown away and read again: exactly what is ordered is used.
The same at a change of membership, when records that were granted go to others.
"""
from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any, Callable, Deque, Iterable, List, Optional, Tuple

import torch
from torch.utils.data import DataLoader, default_collate

from antdt.torch._batch import padded
from antdt.torch._ranges import Ranges, ReadRange
from antdt.torch._readers import Readers

if TYPE_CHECKING:
    from antdt._member import Member, Order


_PASS_OVER = ("To pass over records that cannot be used, return something that says so and call "
              "step.skip in the loop")


def _each(dataset: Any, records: Tuple[int, ...]) -> List[Any]:
    samples = []
    for record in records:
        try:
            samples.append(dataset[record])
        except Exception as error:
            raise RuntimeError(f"the dataset cannot read record {record}: "
                               f"{type(error).__name__}: {error}. {_PASS_OVER}") from error
    return samples


def read(dataset: Any, collate_fn: Callable[[List[Any]], Any], records: Tuple[int, ...]) -> Any:
    """The records as collate_fn joins them; an error names the records."""
    ranges = isinstance(dataset, Ranges)
    samples = dataset.samples(records) if ranges else _each(dataset, records)
    try:
        return collate_fn(samples)
    except Exception as error:
        raise RuntimeError(f"collate_fn failed on records {_some(records)}: "
                           f"{type(error).__name__}: {error}. {_PASS_OVER}") from error


# Options of a DataLoader, and what says the same here.
_ELSEWHERE = {
    "batch_size": "the batch of all members is [batch] global in job.toml; outside a job it is "
                  "adt.init(batch_size=…)",
    "shuffle": "the order is data.shuffle in job.toml; outside a job it is adt.init(shuffle=…)",
    "sampler": "the job hands the records out; to train on some, give a torch.utils.data.Subset",
    "batch_sampler": "the job hands the records out, [batch] global of job.toml at a time",
    "drop_last": "each record counts once, and a smaller last batch is weighed by its records",
    "pin_memory": "call .pin_memory() in the loop, or move the batch to the device as it is",
    "worker_init_fn": "the processes are forked, have what the program had, and draw random numbers of their own; "
                      "the dataset may look at os.getpid() when it is read first",
    "generator": "the order is that of [job] seed in job.toml; outside a job of adt.init(seed=…)",
    "prefetch_factor": "it is prefetch=…",
    "persistent_workers": "they persist, until the job is given another Loader in this one's place",
    "multiprocessing_context": "they are forked",
    "timeout": "a process that ends is noticed, and one that is slow is waited for",
}


def _refuse(options: Iterable[str]) -> None:
    for name in options:
        if name in _ELSEWHERE:
            raise TypeError(f"adt.Loader has no {name}: {_ELSEWHERE[name]}")
        raise TypeError(f"adt.Loader has no {name}; it has dataset, collate_fn, num_workers and prefetch")


def _some(records: Tuple[int, ...]) -> str:
    shown = ", ".join(map(str, records[:8]))
    return shown if len(records) <= 8 else f"{shown}, … ({len(records)} in all)"


class Loader:
    """The records of a map-style dataset, in micro-batches.

    dataset      has `dataset[i]` for 0 <= i < len(dataset), the same on all members
    collate_fn   makes one batch of a list of samples (torch's default_collate)
    num_workers  processes that read ahead; 0 reads when a micro-batch is computed
    prefetch     micro-batches that each of them reads ahead
    """

    def __init__(self, dataset: Any, *, collate_fn: Optional[Callable[[List[Any]], Any]] = None,
                 num_workers: int = 0, prefetch: int = 2, **others: Any) -> None:
        _refuse(others)
        if isinstance(dataset, DataLoader):
            raise TypeError("adt.Loader(dataset): give it the DataLoader's dataset, and its collate_fn")
        map_style = hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
        if not map_style and not isinstance(dataset, Ranges):
            raise TypeError(f"{type(dataset).__name__} has no length or no dataset[i]: a job counts "
                            f"records, so the dataset has to be a map-style one; adt.shards is for "
                            f"data that are read in ranges")
        if num_workers < 0 or prefetch < 1:
            raise ValueError("num_workers is 0 or more, and prefetch 1 or more")
        self.dataset = dataset
        self.collate_fn = collate_fn or default_collate
        self.num_workers, self.prefetch = num_workers, prefetch
        self._readers: Optional[Readers] = None
        self._member: Optional[Member] = None
        self._phase = (0, 0)
        self._ahead: Deque[Tuple[int, Tuple[int, ...], int]] = collections.deque()

    def __len__(self) -> int:
        """Records, not batches: how many there are in a batch is the job's to say."""
        return len(self.dataset)

    def begin(self, member: "Member", order: "Order") -> None:
        """A phase begins, or goes on in another generation. For job.steps() and job.evaluate()."""
        self._drop_ahead()
        self._member, self._phase = member, (order.generation, order.phase)
        if self.num_workers > 0 and self._readers is None:
            # Not drawn from the program's generator, which may be in the state and alike on all members.
            seed = f"{torch.initial_seed()} {member.worker} {member.attempt} {order.generation} {order.phase}"
            self._readers = Readers(self.num_workers, self.read, seed)

    def read(self, records: Tuple[int, ...]) -> Any:
        """The batch of these records, read by this process."""
        return read(self.dataset, self.collate_fn, records)

    def fetch(self, order: "Order", sizes: Tuple[int, ...] = ()) -> Any:
        """The batch of an order of records, padded to the next of `sizes`."""
        if self._readers is None:
            return self.read(padded(order.records, sizes))
        while self._ahead and self._ahead[0][0] < order.position:
            self._readers.forget(self._ahead.popleft()[2])
        if self._ahead and self._ahead[0][:2] == (order.position, order.records):
            ticket = self._ahead.popleft()[2]
        else:
            self._drop_ahead()
            ticket = self._readers.ask(padded(order.records, sizes))
        self._read_ahead(order, sizes)
        return self._readers.take(ticket)

    def _read_ahead(self, order: "Order", sizes: Tuple[int, ...]) -> None:
        """Micro-batches as long as this one."""
        assert self._readers is not None and self._member is not None
        size = len(order.records)
        while len(self._ahead) < self.num_workers * self.prefetch:
            last = self._ahead[-1] if self._ahead else (order.position, order.records, 0)
            position = last[0] + len(last[1])
            found = self._member.ahead(*self._phase, position, size)
            if found is None or found[0] != position or len(found[1]) < size:
                return
            records = tuple(found[1])
            self._ahead.append((position, records, self._readers.ask(padded(records, sizes))))

    def _drop_ahead(self) -> None:
        while self._ahead:
            ticket = self._ahead.popleft()[2]
            if self._readers is not None:
                self._readers.forget(ticket)

    def close(self) -> None:
        """Ends the processes."""
        self._ahead.clear()
        if self._readers is not None:
            readers, self._readers = self._readers, None
            readers.close()


def shards(read: ReadRange, records: int, *,
           collate_fn: Optional[Callable[[List[Any]], Any]] = None, num_workers: int = 0,
           prefetch: int = 2) -> Loader:
    """A Loader of data that are read by the program in ranges.

    read(first, end)  gives the samples of records first, …, end - 1, in this order: an iterable, say
                      of a file that was opened and moved to record `first`. It may be called for any
                      range, and by the Loader's processes
    records           how many there are, on all members

    The other options are those of Loader.
    """
    if records < 0:
        raise ValueError(f"adt.shards(records={records}): how many records there are, 0 or more")
    return Loader(Ranges(read, records), collate_fn=collate_fn, num_workers=num_workers,
                  prefetch=prefetch)
