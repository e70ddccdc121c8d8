"""A plain DDP script, as torchrun starts it: a network with buffers, a data loader,
gradient accumulation, a schedule, and a collective of its own every few steps.

PLAIN_STEPS: steps. PLAIN_SLOW: seconds that rank 1 computes longer in each micro-batch. PLAIN_SKIP:
the step at which rank 2 does not take part in the script's own collective. PLAIN_SLEEP: how long it
sleeps then. PLAIN_OTHER: the step at which rank 2 calls another collective instead. PLAIN_TIMEOUT:
seconds after which a collective fails, from the first step on (PyTorch 2).
"""
import contextlib
import datetime
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

STEPS = int(os.environ.get("PLAIN_STEPS", "30"))
SLOW = float(os.environ.get("PLAIN_SLOW", "0"))
SKIP = int(os.environ.get("PLAIN_SKIP", "-1"))
OTHER = int(os.environ.get("PLAIN_OTHER", "-1"))
SLEEP = float(os.environ.get("PLAIN_SLEEP", "0"))
TIMEOUT = float(os.environ.get("PLAIN_TIMEOUT", "0"))
PAUSE = float(os.environ.get("PLAIN_PAUSE", "0.01"))  # of a micro-batch: an accelerator's time
LOADERS = int(os.environ.get("PLAIN_LOADERS", "0"))  # processes that read
BATCH, ACCUMULATION = 16, 2


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)  # before the group is there
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    ddp = DistributedDataParallel(net)
    records = STEPS * ACCUMULATION * BATCH * world
    data = TensorDataset(torch.randn(records, 16), torch.randn(records, 1))
    loader = DataLoader(data, batch_size=BATCH, sampler=DistributedSampler(data), num_workers=LOADERS)
    step = 0
    for i, (x, y) in enumerate(loader):
        last = i % ACCUMULATION == ACCUMULATION - 1
        with contextlib.nullcontext() if last else ddp.no_sync():
            loss = (ddp(x) - y).pow(2).mean()
            time.sleep(PAUSE + (SLOW if rank == 1 else 0))
            loss.backward()
        if not last:
            continue
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        step += 1
        if TIMEOUT and step == 1:
            dist.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=TIMEOUT))
        if rank == 2 and step == SKIP:
            time.sleep(SLEEP)
            continue
        if rank == 2 and step == OTHER:
            dist.broadcast(loss.detach(), src=0)
            continue
        if step % 5 == 0:
            mean = loss.detach()
            work = dist.all_reduce(mean, async_op=True)
            work.wait()
    dist.barrier()
    print("rank", rank, "made", step, "steps", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
