"""Opens data in a way of its own, which goes on until a file is there, and trains one weight.
Usage: opens_data.py FILE"""
import pathlib
import sys
import time

import torch

import antdt.torch as adt
from antdt.data import progress

done = 0
while not pathlib.Path(sys.argv[1]).exists():
    done += 10**9
    progress("/data/by-itself", done, 9 * 10**12)
    time.sleep(0.05)  # what a part of it takes
progress(None)
job = adt.init()
net = job.ddp(torch.nn.Linear(1, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
job.state(model=net, opt=opt)
loader = adt.Loader(torch.ones(64, 1))
for epoch in job.epochs():
    for step in job.steps(loader):
        for mb in step:
            with step.micro(mb):
                step.backward(net(mb.data).sum(), weight=mb.weight)
        step.apply()
        opt.step()
