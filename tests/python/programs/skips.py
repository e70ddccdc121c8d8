"""Trains a module with a counter for each record, to which each step adds how often the record was in it,
and skips records that cannot be used (skips_test.py): some always, others in every second attempt of a
worker. At the end of a job a counter is the number of epochs in which its record was trained.
Usage: skips.py RECORDS DELAY"""
import os
import sys
import time

import torch

import antdt.torch as adt
from counted import Numbers, Tally

records, delay = int(sys.argv[1]), float(sys.argv[2])
attempt = int(os.environ.get("ANTDT_ATTEMPT", "1"))


def reason_of(record):
    if record % 29 == 0:
        return "torn"
    return "busy" if record % 31 == 0 and (record // 31 + attempt) % 2 else None


job = adt.init(epochs=2)
net = job.ddp(Tally(records))
job.state(model=net)
for epoch in job.epochs():
    for step in job.steps(adt.Loader(Numbers(records))):
        for mb in step:
            with step.micro(mb):
                for reason in ("torn", "busy"):
                    gone = [r for r in mb.records if reason_of(r) == reason]
                    if gone:
                        step.skip(mb, reason, gone)
                used = [r for r in mb.records if reason_of(r) is None]
                step.backward(net(torch.tensor(used, dtype=torch.long)), weight=len(used))
            time.sleep(delay)
        step.apply()
        if step.weight:
            net.add(step.weight)
if not job.in_job:
    print(int(net.counts.sum()), flush=True)
