"""Classifies points of two interleaved spirals, by a small PyTorch program that is a worker of AntDT.

Run it alone (python3 train.py), or as the workers of job.toml."""
import math

import torch
from torch.nn import functional

import antdt.torch as adt

RECORDS = 8000


class Spirals(torch.utils.data.Dataset):
    """Record i is a point of one of two spirals, the same on each worker."""

    def __len__(self):
        return RECORDS

    def __getitem__(self, i):
        random = torch.Generator().manual_seed(i)
        angle, noise = torch.rand(2, generator=random)
        angle = 0.5 + 3 * math.pi * math.sqrt(angle)
        turned = angle + math.pi * (i % 2)
        point = torch.tensor([math.cos(turned), math.sin(turned)]) * angle / 10
        return point + 0.03 * (noise - 0.5), i % 2


job = adt.init(epochs=10, batch_size=64)  # what job.toml says in a job
torch.manual_seed(1)
net = job.ddp(torch.nn.Sequential(
    torch.nn.Linear(2, 64), torch.nn.ReLU(),
    torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2)))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.998)
job.state(model=net, opt=opt, sched=sched)
loader = adt.Loader(Spirals(), num_workers=1)

for epoch in job.epochs():
    right = seen = 0
    for step in job.steps(loader):
        for mb in step:
            with step.micro(mb):
                scores = net(mb.x)
                loss = functional.cross_entropy(scores, mb.y, reduction="sum")
                step.backward(loss, weight=mb.weight)
            right += (scores.argmax(1) == mb.y).sum().item()
            seen += len(mb)
        if step.apply(opt, clip=1.0):
            sched.step()
    print(f"epoch {epoch + 1}: {right / max(1, seen):.3f} of {seen} points were classified rightly",
          flush=True)
