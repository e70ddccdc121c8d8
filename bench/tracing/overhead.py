#!/usr/bin/env python3
"""The cost of tracing for an unmodified script: jobs of protocol torchrun in pairs, with and
without roles.worker.trace, one after the other. Each rank makes steps of a given length, of which
most is a sleep (an accelerator's time) and the rest a small network under DistributedDataParallel
on Gloo, so that the hooks' time shows in the length of a step.

    bench/tracing/overhead.py [--pairs 10] [--steps 500] [--step-ms 20] [--ranks 2] [--python python3]

Prints the median step of each job, and the median over the pairs of traced / untraced - 1.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ANTDT = pathlib.Path(os.environ.get("ANTDT_BIN", ROOT / "build" / "bin")) / "antdt"

SCRIPT = '''
import statistics, sys, time
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
steps, length = int(sys.argv[1]), float(sys.argv[2])
torch.set_num_threads(1)
dist.init_process_group("gloo")
net = DistributedDataParallel(nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1)))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.randn(steps * 16, 32), torch.randn(steps * 16, 1)), batch_size=16)
took, last = [], time.perf_counter()
for x, y in loader:
    loss = (net(x) - y).pow(2).mean()
    time.sleep(length)
    loss.backward()
    opt.step()
    opt.zero_grad()
    dist.all_reduce(loss.detach())
    now = time.perf_counter()
    took.append(now - last)
    last = now
if dist.get_rank() == 0:
    print("step", statistics.median(took[len(took) // 10:]), time.process_time(), flush=True)
dist.barrier()
'''


def run(directory, options, trace):
    """(seconds of a step, processor seconds of rank 0)"""
    script = directory / "script.py"
    script.write_text(SCRIPT)
    out = directory / f"run-{len(list(directory.iterdir()))}"
    done = subprocess.run(
        [ANTDT, "torchrun", "--nproc-per-node", str(options.ranks), "--run-dir", out, "--set",
         f"roles.worker.trace={'true' if trace else 'false'}", "--set", "job.name=overhead",
         script, str(options.steps), str(options.step_ms / 1e3)],
        env=dict(os.environ, PYTHON_EXEC=options.python), cwd=directory, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    summary = json.loads((out / "summary.json").read_text())
    if trace != (summary["steps"] == options.steps):
        sys.exit(f"traced is {trace}, and the job saw {summary['steps']} steps")
    line, = [line for log in (out / "logs").glob("*.out") for line in log.read_text().splitlines()
             if line.startswith("step ")]
    return tuple(map(float, line.split()[1:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--step-ms", type=float, default=20)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--python", default="python3")
    options = parser.parse_args()
    ratios, cpu = [], []
    with tempfile.TemporaryDirectory() as name:
        for pair in range(options.pairs):
            order = (True, False) if pair % 2 else (False, True)
            of = {trace: run(pathlib.Path(name), options, trace) for trace in order}
            ratios.append(of[True][0] / of[False][0] - 1)
            cpu.append((of[True][1] - of[False][1]) / options.steps)
            print(f"pair {pair + 1}: {1e3 * of[False][0]:.3f} ms untraced, {1e3 * of[True][0]:.3f} ms traced, "
                  f"{100 * ratios[-1]:+.2f}%", flush=True)
    print(f"median of {options.pairs} pairs: {100 * statistics.median(ratios):+.2f}% of a step, "
          f"{1e6 * statistics.median(cpu):.0f} us of a processor for each")


if __name__ == "__main__":
    main()
