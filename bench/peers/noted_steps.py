"""Trains a small module, 10 ms a micro-batch, and notes the generation and the time of each step
(bench/python_recovery.py). Usage: noted_steps.py FOLDER"""
import os
import sys
import time

import torch

import antdt.torch as adt

RECORDS = 100000
notes = os.open(f"{sys.argv[1]}/steps-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return RECORDS

    def __getitem__(self, i):
        return torch.tensor([i / RECORDS])


torch.set_num_threads(1)
job = adt.init()
net = job.ddp(torch.nn.Sequential(torch.nn.Linear(1, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1)))
opt = torch.optim.Adam(net.parameters())
job.state(model=net, opt=opt)
generation = 0


def regrouped(now):
    global generation
    generation = now.generation


job.on("regroup", regrouped)
loader = adt.Loader(Numbers())
for epoch in job.epochs():
    for step in job.steps(loader):
        for mb in step:
            with step.micro(mb):
                time.sleep(0.01)
                step.backward(net(mb.data).square().sum(), weight=mb.weight)
        if step.apply(opt):
            os.write(notes, f"{generation} {time.monotonic()}\n".encode())
