"""Trains a module with a counter for each record, to which each step adds how often the record was in
it. At the end of a job each counter is the number of epochs.

    tally.py RECORDS [DELAY [READERS [COUNTERS]]]

RECORDS is a number, or a file with a line for each record. There are as many counters, or COUNTERS."""
import sys
import time

import torch

import antdt.torch as adt
from antdt.data import Lines

lines = None if sys.argv[1].isdigit() else Lines(sys.argv[1])
records = int(sys.argv[1]) if lines is None else len(lines)
counters = int(sys.argv[4]) if len(sys.argv) > 4 else records


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return records

    def __getitem__(self, i):
        return i if lines is None else int(lines[i])


class Tally(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.counts = torch.nn.Parameter(torch.zeros(counters))

    def forward(self, i):
        return self.counts[i].sum()


class Count(torch.optim.Optimizer):
    """Adds the sums of gradients, of which `weight` was divided; keeps how often it did."""

    def __init__(self, parameters):
        super().__init__(parameters, {"weight": 1.0})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                kept = self.state[p]
                kept["added"] = kept.get("added", torch.zeros((), dtype=torch.int64)) + 1
                p += (p.grad * group["weight"]).round()


delay = float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
job = adt.init(epochs=2)
net = job.ddp(Tally())
opt = Count(net.parameters())
job.state(model=net, opt=opt)
job.on("regroup", lambda now: print(f"generation {now.generation}: rank {now.rank} of {now.size}",
                                    flush=True))
loader = adt.Loader(Numbers(), num_workers=int(sys.argv[3]) if len(sys.argv) > 3 else 0)
for epoch in job.epochs():
    for step in job.steps(loader):
        for mb in step:
            with step.micro(mb):
                step.backward(net(mb.data), weight=mb.weight)
            time.sleep(delay)
        step.apply()
        if step.weight:
            opt.param_groups[0]["weight"] = step.weight
            opt.step()
print("trained", flush=True)
if not job.in_job:
    print(net.counts.min().item(), net.counts.max().item())
