"""PyTorch programs as workers of AntDT (docs/python.md).

    import antdt.torch as adt

    job = adt.init()
    net = job.ddp(Net())
    job.state(model=net, opt=opt)
    for epoch in job.epochs():
        for step in job.steps(loader):
            for mb in step:
                with step.micro(mb):
                    step.backward(loss(net(mb.x), mb.y, reduction="sum"), weight=mb.weight)
            step.apply(opt)

Outside a job the same program is a world of one.
"""
from __future__ import annotations

import numbers
from typing import Optional

from antdt._abi import Error
from antdt._member import Options
from antdt.torch._batch import MicroBatch
from antdt.torch._job import Job, Regroup
from antdt.torch._load import load
from antdt.torch._loader import Loader, shards
from antdt.torch._metrics import Evaluated, Sums
from antdt.torch._step import Step

__all__ = ["Error", "Evaluated", "Job", "Loader", "MicroBatch", "Regroup", "Step", "Sums", "init",
           "load", "shards"]


def init(*, epochs: int = 1, batch_size: int = 32, accumulation: int = 1, seed: int = 0,
         shuffle: bool = True, fingerprint: Optional[str] = None,
         device: Optional[str] = None, max_micro_batch: int = 0, read_ahead: int = 0) -> Job:
    """The job that this process takes part in; outside a job a world of one.

    In a world of one, where in a job job.toml says it:
      epochs        how often all records are trained
      batch_size    records of a micro-batch
      accumulation  micro-batches of a step
      seed          of the order of the records; `shuffle=False`: in their order

    In both:
      fingerprint      any text that is the same exactly where the data, and how they become records,
                       are the same; members that differ are refused
      device           what this process computes on; alike devices have the same name
      max_micro_batch  records that fit on it at once (0: any)
      read_ahead       records that a Loader's processes can know of beforehand (0: those of three
                       micro-batches)
    """
    for name, value, least in (("epochs", epochs, 1), ("batch_size", batch_size, 1),
                               ("accumulation", accumulation, 1), ("seed", seed, 0),
                               ("max_micro_batch", max_micro_batch, 0), ("read_ahead", read_ahead, 0)):
        if not isinstance(value, numbers.Integral):
            raise TypeError(f"adt.init({name}={value!r}): a whole number, not a {type(value).__name__}")
        if value < least:
            raise ValueError(f"adt.init({name}={value}): {least} or more")
    return Job(Options(epochs=epochs, micro_batch=batch_size, accumulation=accumulation, seed=seed,
                       shuffle=shuffle, fingerprint=fingerprint, device=device,
                       max_micro_batch=max_micro_batch, read_ahead=read_ahead))
