#!/usr/bin/python3
"""A plain PyTorch DistributedDataParallel program, as torchrun starts them.

It knows nothing of AntDT: rank, world size and the meeting point come from the
environment. Trains a small network to tell on which side of a curve points lie.
"""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS, BATCH = 200, 128


def points(count, generator):
    x = torch.rand(count, 2, generator=generator) * 2 - 1
    return x, (x[:, 1] > torch.sin(3 * x[:, 0])).float()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loss_of = nn.BCEWithLogitsLoss()
    mine = torch.Generator().manual_seed(100 + rank)
    for step in range(STEPS):
        x, y = points(BATCH, mine)
        optimizer.zero_grad()
        loss = loss_of(model(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    x, y = points(2000, torch.Generator().manual_seed(1))
    with torch.no_grad():
        accuracy = ((model(x).squeeze(1) > 0).float() == y).float().mean().item()
    print(f"rank {rank} of {world}: accuracy {accuracy:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()
    if accuracy < 0.9:
        raise SystemExit("the network did not learn")


if __name__ == "__main__":
    main()
