"""Trains a module with a counter for each line of text files, as tally.py does for numbers; a line says which
counter it is of, so that a line that is not its record's is found. Usage: lines.py EPOCHS FILES..."""
import sys

import torch

import antdt.torch as adt
from antdt.data import Lines

epochs, paths = int(sys.argv[1]), sys.argv[2:]
lines = Lines(paths, index="beside")


def counters(batch):
    return torch.tensor([int(line.split()[1]) for line in batch])


class Tally(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.counts = torch.nn.Parameter(torch.zeros(len(lines)))

    def forward(self, i):
        return self.counts[i].sum()


job = adt.init(epochs=epochs, fingerprint=lines.fingerprint)
net = job.ddp(Tally())
opt = torch.optim.SGD(net.parameters(), lr=1.0)
job.state(model=net, opt=opt)
loader = adt.Loader(lines, collate_fn=counters, num_workers=2)
for epoch in job.epochs():
    for step in job.steps(loader):
        for mb in step:
            assert mb.data.tolist() == list(mb.records), "a line of another record"
            with step.micro(mb):
                step.backward(-net(mb.data), weight=mb.weight)
        step.apply()
        if step.weight:
            for p in net.parameters():
                p.grad.mul_(step.weight).round_()
            opt.step()
if not job.in_job:
    print(net.counts.min().item(), net.counts.max().item())
