"""Runs a script as one traced rank, and writes each of the tracer's messages as a line of JSON.
Usage: recorded.py SCRIPT ARGUMENTS. The variable OUT names the output, and a file OUT.ask makes the
job ask for stacks."""
import importlib
import json
import os
import runpy
import sys
import time

import torch.distributed  # the tracer is there from here on

OUT = os.environ["OUT"]


class Carrier:
    def __init__(self):
        self._file = open(f"{OUT}.{os.environ['RANK']}", "w")

    def _say(self, *what):
        print(json.dumps(what), file=self._file, flush=True)

    def step(self, samples, data, compute, wait):
        self._say("step", samples, data, compute, wait)

    def say(self, *state):
        self._say("say", *state)

    def asked(self, number, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if number == 0 and os.path.exists(OUT + ".ask"):
                return 1
            time.sleep(0.05)
        return number

    def tell(self, *what):
        self._say("tell", *what)

    def on_abort(self, fd, seconds):
        pass

    def close(self):
        self._say("close")


importlib.import_module("_antdt_trace._library").Trace = Carrier
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
