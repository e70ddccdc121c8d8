"""Counts like tally.py how often each record was trained, evaluates, and ends the training early
(end_training_test.py).

    ends.py FOLDER RECORDS WHO UNIT NUMBER [DELAY]

WHO ends it: "all" members or "one", that of rank 0. UNIT and NUMBER say when: "epochs" 2 is behind the
evaluation of the second epoch, "records" 400 behind the step in which so many have been trained. Who ends
it leaves both loops."""
import os
import sys
import time

import torch

import antdt.torch as adt
from counted import Numbers, Tally

folder, records, who, unit, number = sys.argv[1], int(sys.argv[2]), *sys.argv[3:5], int(sys.argv[5])
delay = float(sys.argv[6]) if len(sys.argv) > 6 else 0.0


def note(words):
    with open(f"{folder}/notes-{os.getpid()}", "a") as notes:
        print(words, file=notes)


def metric(mb):
    return adt.Sums(loss=torch.ones(len(mb)).sum(), correct=torch.zeros(1, dtype=torch.int64))


job = adt.init(epochs=5, batch_size=50)
net = job.ddp(Tally(records))
job.state(model=net)
train, validation = adt.Loader(Numbers(records)), adt.Loader(Numbers(100))


def ends():
    """Whether this member ends the training, and then it does."""
    if who == "one" and job.rank != 0:
        return False
    note("ends")
    job.end_training(f"enough after {number} {unit}")
    return True


ended = False
for epoch in job.epochs():
    for step in job.steps(train):
        for mb in step:
            with step.micro(mb):
                step.backward(net(mb.data), weight=mb.weight)
            time.sleep(delay)
        applied = step.apply()
        if applied:
            net.add(step.weight)
        if applied and unit == "records" and net.counts.sum() >= number and ends():
            ended = True
            break
    found = job.evaluate(validation, metric)
    note(f"evaluated epoch {epoch}: {found is not None}")
    if ended or (unit == "epochs" and epoch + 1 == number and ends()):
        break
note("behind the loop")
if not job.in_job:
    print(int(net.counts.sum().item()), int(net.counts.max().item()))
