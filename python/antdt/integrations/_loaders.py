"""A DataLoader as a Loader of the job, where that can hold."""
from __future__ import annotations

from torch.utils.data import DataLoader, IterableDataset, RandomSampler, SequentialSampler

import antdt.torch as adt


def loader_of(loader: DataLoader) -> adt.Loader:
    """Its dataset, collate function and number of processes; which records are in a batch is the job's
    to say."""
    if isinstance(loader.dataset, IterableDataset):
        raise TypeError("the loader has an iterable dataset, whose records a job cannot hand out; "
                        "antdt.torch.shards reads data in ranges")
    if loader.batch_size is None or type(loader.sampler) not in (RandomSampler, SequentialSampler):
        raise TypeError("the loader has a sampler of its own, and in a job the ledger says which "
                        "records are whose: leave the sampler out")
    return adt.Loader(loader.dataset, collate_fn=loader.collate_fn, num_workers=loader.num_workers)


def is_shuffled(loader: DataLoader) -> bool:
    """Whether a world of one is to shuffle; in a job job.toml says so."""
    return not isinstance(loader.sampler, SequentialSampler)
