#!/usr/bin/env python3
"""Compares a PyTorch program under AntDT with the same program under PyTorch's DDP (Gloo).

    bench/python_speed.py [--python /usr/bin/python3] [--runs 5] [--slow 3] [--steps 300]

Four workers. The two runs of a pair follow one another, and the order alternates. With `--slow 3`,
worker 1 has a third of its speed all the time, which AntDT-ND must find by itself; with `--slow 1`
no worker is slow. A worker's speed is set by waiting (bench/peers/uneven_step.py), so that the
result is valid on 2 cores.
"""
import json
import os
import socket
import statistics
import subprocess

import runs

PROGRAM = runs.ROOT / "bench" / "peers" / "uneven_step.py"
WORKERS = 4
JOB = """
schema = 1
[job]
name = "speed"
[roles.worker]
count = {workers}
command = {command}
env = {{ PYTHONPATH = "{package}", OMP_NUM_THREADS = "1" }}
[data]
format = "index"
records = {records}
[batch]
global = {batch}
[trainer]
sync = "allreduce"
[control]
transient_window = "1s"
persistent_window = "5s"
[checkpoint]
every = "0s"
"""


def words(args):
    return ["--records", str(args.steps * args.batch), "--batch", str(args.batch), "--slow",
            str(args.slow), "--megabytes", str(args.megabytes), "--ms", str(args.ms)]


def under_antdt(args, place, name):
    library = args.bin.resolve().parent / "lib" / "libantdt.so.1"
    command = ["/usr/bin/env", f"ANTDT_LIBRARY={library}", args.python, str(PROGRAM), "antdt",
               *words(args)]
    done = place.run(name, JOB.format(workers=WORKERS, command=json.dumps(command),
                                      package=runs.ROOT / "python", batch=args.batch,
                                      records=args.steps * args.batch))
    if not done.exact(1, args.steps * args.batch):
        raise SystemExit(f"{name}: records did not count once each")
    out = (done.directory / "logs" / "w0.1.out").read_text()
    return json.loads(out.splitlines()[-1])["samples_per_second"]


def under_ddp(args, _place, _name):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = []
    for rank in range(WORKERS):
        env = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(WORKERS), MASTER_ADDR="127.0.0.1",
                   MASTER_PORT=str(port), OMP_NUM_THREADS="1")
        ranks.append(subprocess.Popen([args.python, str(PROGRAM), "ddp", *words(args)], env=env,
                                      stdout=subprocess.PIPE, text=True))
    out = [process.communicate()[0] for process in ranks]
    if any(process.returncode for process in ranks):
        raise SystemExit("DistributedDataParallel failed")
    return json.loads(out[0].splitlines()[-1])["samples_per_second"]


def measure(args, place):
    pairs = []
    for n in range(args.runs):
        both = {}
        for system in ((under_antdt, under_ddp) if n % 2 == 0 else (under_ddp, under_antdt)):
            both[system.__name__] = system(args, place, f"pair-{n}")
        pairs.append((both["under_antdt"], both["under_ddp"]))
        runs.progress("AntDT {:.0f}, DDP {:.0f} samples/s: {:.3f}".format(
            *pairs[-1], pairs[-1][0] / pairs[-1][1]))
    ratio = runs.spread([ours / theirs for ours, theirs in pairs])
    return {"pairs": pairs, "ratio": ratio, "good": True,
            "antdt": statistics.median(p[0] for p in pairs),
            "ddp": statistics.median(p[1] for p in pairs)}


def tell(result):
    print(f"AntDT {result['antdt']:.0f} samples/s, DistributedDataParallel {result['ddp']:.0f} "
          f"(medians); AntDT over DDP {runs.spread_text(result['ratio'], '{:.3f}')}")


def main():
    parser = runs.options(__doc__, 5)
    parser.add_argument("--python", default="/usr/bin/python3", help="with PyTorch")
    parser.add_argument("--slow", type=float, default=3, help="worker 1 takes so many times as long")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--ms", type=float, default=6, help="a sample")
    parser.add_argument("--megabytes", type=float, default=50, help="of parameters")
    args = parser.parse_args()
    runs.finish(args, runs.in_place(args, measure), tell)


if __name__ == "__main__":
    main()
