"""Evaluates after each epoch, and notes which records it evaluated and which result it got
(evaluation_test.py). Usage: evaluation.py FOLDER RECORDS EVALUATED [DELAY [diverged]]"""
import json
import os
import sys
import time

import torch

import antdt.torch as adt
from counted import Numbers

folder, records, evaluated = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
delay = float(sys.argv[4]) if len(sys.argv) > 4 else 0.0
factor = float("nan") if len(sys.argv) > 5 else 1.0


def loss(i):
    return (i.double() * 0.37).sin() + 1


def score(i):
    return (i * 7919 % 1009).double() / 1009


def label(i):
    return ((i * 7919 % 1009) * 3 + i * 31 % 2000 > 2000).long()


def metric(mb):
    i = mb.data
    note("evaluated", job.epoch, list(mb.records))
    time.sleep(delay)
    return adt.Sums(loss=loss(i).sum() * factor, correct=((score(i) > 0.5) == (label(i) > 0)).sum(),
                    scores=score(i), labels=label(i),
                    named={"records/squared": (i.double() ** 2).sum(), "odd": int((i % 2).sum())})


if __name__ == "__main__":
    notes = os.open(f"{folder}/notes-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(what, epoch, value):
        os.write(notes, json.dumps({"epoch": epoch, what: value}).encode() + b"\n")

    job = adt.init(epochs=2)
    net = job.ddp(torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.BatchNorm1d(1)))
    opt = torch.optim.SGD(net.parameters(), lr=1e-6)
    job.state(model=net, opt=opt)
    train, validation = adt.Loader(Numbers(records)), adt.Loader(Numbers(evaluated), num_workers=1)
    for epoch in job.epochs():
        for step in job.steps(train):
            for mb in step:
                with step.micro(mb):
                    step.backward(net(mb.data.float().unsqueeze(1)).sum(), weight=mb.weight)
            step.apply(opt)
        found = job.evaluate(validation, metric)
        if found is not None:
            note("found", epoch, [found.records, found.mean_loss, found.accuracy, found.auc, found.sums])
