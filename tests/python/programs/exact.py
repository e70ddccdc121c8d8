"""Trains a small model in float64 and notes the records of each step, so that one process can
repeat the training (exact_test.py). Records have different weights, as texts of different lengths
do. Usage: exact.py FOLDER [DELAY]"""
import json
import os
import sys
import time

import torch

import antdt.torch as adt

RECORDS = 3000


class Texts(torch.utils.data.Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(4)
        self.x = torch.randn(RECORDS, 6, generator=generator, dtype=torch.float64)
        self.y = (self.x * torch.arange(1.0, 7)).sum(1, keepdim=True).sin()
        self.weight = torch.randint(1, 9, (RECORDS, 1), generator=generator).double()

    def __len__(self):
        return RECORDS

    def __getitem__(self, i):
        return self.x[i], self.y[i], self.weight[i]


def model():
    net = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    return net.double()


def optimizer_of(net):
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    return opt, torch.optim.lr_scheduler.StepLR(opt, 40, 0.5)


def loss_of(net, x, y, weight):
    return (weight * (net(x) - y) ** 2).sum()


CLIP = 0.8


def main():
    folder, delay = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
    # One write for each line, so that a line is complete or missing whenever this process is
    # killed.
    notes = os.open(f"{folder}/notes-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(**line):
        os.write(notes, json.dumps(line).encode() + b"\n")

    job = adt.init(epochs=2)
    torch.manual_seed(os.getpid())  # whose parameters they begin with is settled by the job
    net = job.ddp(model())
    opt, schedule = optimizer_of(net)
    job.state(model=net, opt=opt, sched=schedule)
    generation = [0]
    job.on("regroup", lambda now: generation.__setitem__(0, now.generation))
    for epoch in job.epochs():
        for step in job.steps(adt.Loader(Texts())):
            at, records = None, []
            for mb in step:
                # Until a step is applied; the first ones may have nobody's records.
                if schedule.last_epoch == 0 and at is None:
                    note(begin={k: v.tolist() for k, v in net.state_dict().items()},
                         generation=generation[0])
                at = (job.step, generation[0])
                with step.micro(mb):
                    x, y, weight = mb.data
                    step.backward(loss_of(net, x, y, weight), weight=weight.sum().item())
                records += mb.records
                time.sleep(delay)
            if at is not None:
                note(at=at, records=records)
            before = (job.step, generation[0])
            if step.apply(opt, clip=CLIP):
                note(applied=before)
                schedule.step()


if __name__ == "__main__":
    main()
