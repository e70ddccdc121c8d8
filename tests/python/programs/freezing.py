"""Freezes the first layer before the epochs 0 and 2, trains it in epoch 1, and notes after each step
which model it has (freezing_test.py). While a member is missing its steps take long, so that the missing
one joins before the job is done. Usage: freezing.py FOLDER RECORDS DELAY MEMBERS"""
import hashlib
import json
import os
import sys
import time

import torch

import antdt.torch as adt

folder, records, delay, members = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])


def digest_of(module):
    digest = hashlib.sha256()
    for p in module.parameters():
        digest.update(p.detach().numpy().tobytes())
    return digest.hexdigest()


def freeze(module, frozen):
    for p in module.parameters():
        p.requires_grad_(not frozen)


x = torch.randn(records, 4, generator=torch.Generator().manual_seed(1))
job = adt.init(epochs=3)
net = job.ddp(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)))
opt = torch.optim.AdamW(net.parameters(), lr=1e-2, weight_decay=0.1)
job.state(model=net, opt=opt)
freeze(net[0], True)
notes = os.open(f"{folder}/notes-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for epoch in job.epochs():
    if epoch == 1:  # and not epoch >= 1: a process that joins later never comes here
        freeze(net[0], False)
    if epoch == 2:
        freeze(net[0], True)
    for step in job.steps(adt.Loader(torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)))):
        for mb in step:
            with step.micro(mb):
                step.backward(((net(mb.x) - mb.y) ** 2).sum(), weight=mb.weight)
            time.sleep(delay if job.size == members else 3)
        at = job.step
        if step.apply(opt):
            note = {"epoch": job.epoch, "step": at, "layer": digest_of(net[0]), "model": digest_of(net)}
            os.write(notes, json.dumps(note).encode() + b"\n")
