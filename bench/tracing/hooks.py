#!/usr/bin/env python3
"""The cost of each hook of the tracer. One rank of a traced job calls the hooked functions in
blocks, alternating between a tracer that measures and one that does not, and measures the processor
time of its thread and of its process. It does the same for all hooks of a whole step of
DistributedDataParallel without a sleep.

    bench/tracing/hooks.py [--rounds 200] [--calls 50] [--python python3] [--json]

Prints microseconds for each: the median over the rounds of the difference within a round, so that a
temporarily slower machine affects both; and the difference between the least times with and
without, which is closest to an idle machine.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ANTDT = pathlib.Path(os.environ.get("ANTDT_BIN", ROOT / "build" / "bin")).resolve() / "antdt"

SCRIPT = '''
import json, statistics, sys, time
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
rounds, calls = int(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(1)
dist.init_process_group("gloo")
tracer = sys.modules["_antdt_trace._tracer"].TRACER
assert tracer.on, "this job is traced"
net = DistributedDataParallel(nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1)))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
data = TensorDataset(torch.randn(1 << 16, 32), torch.randn(1 << 16, 1))
x, y = data[:16]
mean = torch.ones(1)


def batches():
    while True:
        yield from DataLoader(data, batch_size=1)


batch = batches()


def step():
    inputs, wanted = next(batch)
    loss = (net(inputs) - wanted).pow(2).mean()
    loss.backward()
    opt.step()
    opt.zero_grad()
    dist.all_reduce(mean)


def reduced():
    work = dist.all_reduce(mean, async_op=True)
    work.wait()


hooks = {"a batch of a DataLoader": lambda: next(batch),
         "forward and backward of DDP": lambda: net(x).sum().backward(), "step of an optimizer": opt.step,
         "all_reduce": lambda: dist.all_reduce(mean), "all_reduce and its wait": reduced,
         "a whole step": step}
found = {}
for name, call in hooks.items():
    thread, process, least = [], [], {}
    for number in range(rounds):
        took = {}
        for on in (True, False) if number % 2 else (False, True):
            tracer.on = on
            call()
            began, used = time.process_time(), time.thread_time()
            for _ in range(calls):
                call()
            took[on] = (time.thread_time() - used) / calls, (time.process_time() - began) / calls
            least[on] = min(least.get(on, 1e9), took[on][0])
        tracer.on = True
        thread.append(took[True][0] - took[False][0])
        process.append(took[True][1] - took[False][1])
    found[name] = {"thread_us": 1e6 * statistics.median(thread), "process_us": 1e6 * statistics.median(process),
                   "least_us": 1e6 * (least[True] - least[False]), "without_us": 1e6 * least[False]}
print("found", json.dumps(found), flush=True)
'''


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--python", default="python3")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="antdt-bench-") as name:
        directory = pathlib.Path(name)
        (directory / "rt").mkdir(mode=0o700)
        (directory / "hooks.py").write_text(SCRIPT, encoding="utf-8")
        done = subprocess.run(
            [ANTDT, "torchrun", "--nproc-per-node", "1", "--run-dir", directory / "run", "hooks.py",
             str(options.rounds), str(options.calls)], cwd=directory, capture_output=True, text=True, check=False,
            env=dict(os.environ, PYTHON_EXEC=options.python, XDG_RUNTIME_DIR=str(directory / "rt")))
        logs = [path.read_text(encoding="utf-8") for path in (directory / "run" / "logs").glob("*")]
        if done.returncode != 0:
            sys.exit(done.stdout + done.stderr + "".join(logs))
        line, = [line for log in logs for line in log.splitlines() if line.startswith("found ")]
    found = json.loads(line.split(" ", 1)[1])
    if options.json:
        print(json.dumps(found, indent=2))
        return
    print(f"{'microseconds':28}{'thread':>8}{'process':>9}{'of least':>10}{'without':>9}")
    for hook, cost in found.items():
        print(f"{hook:28}{cost['thread_us']:8.1f}{cost['process_us']:9.1f}{cost['least_us']:10.1f}"
              f"{cost['without_us']:9.1f}")


if __name__ == "__main__":
    main()
