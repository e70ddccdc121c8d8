"""A plain DDP program for torchrun that saves and loads its own checkpoint. Rank 0 writes which
steps it made, and the port of the rendezvous."""
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS, EVERY = int(os.environ.get("GANG_STEPS", "60")), 5


def main():
    out = pathlib.Path(sys.argv[1])
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    begin = 0
    saved = out / "own.pt"
    if saved.exists():
        state = torch.load(saved)
        model.load_state_dict(state["model"])
        begin = state["step"]
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    with open(out / f"log.{rank}", "a") as log:
        print("begin", begin, os.environ["MASTER_PORT"],
              os.environ["TORCHELASTIC_RESTART_COUNT"], file=log, flush=True)
        for step in range(begin, STEPS):
            optimizer.zero_grad()
            ddp(torch.ones(8, 4)).pow(2).mean().backward()
            optimizer.step()
            print("step", step, os.getpid(), file=log, flush=True)
            if rank == 0 and (step + 1) % EVERY == 0:
                torch.save({"model": model.state_dict(), "step": step + 1}, out / "tmp.pt")
                os.replace(out / "tmp.pt", saved)
            time.sleep(0.1)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
