#!/usr/bin/env python3
"""An all-reduce among processes of this machine: AntDT over tcp and in shared memory, and peers.

    bench/peers/allreduce.py [--ranks 2,4,8] [--bytes 256,4096,...] [--rounds 5] [--seconds 0.3]
                             [--gloo PYTHON] [--mpi] [--real-time]

Each round measures every one of them, one after the other, so that all meet the same load of the
machine. Prints a table with the median of the rounds' median calls and their span. "copies" is how
long all ranks take, at the same time, to copy the bytes that must move: 2 (n - 1) / n of the size
for each. --gloo names a Python with torch, --mpi needs mpicc and mpiexec. --real-time gives the
ranks priority over all other load (chrt -f 1, needs root); use it for short runs only, and not with
MPICH where ranks share a processor: they spin while they wait, and the one that they wait for would
never run.
"""
import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BENCH = HERE.parent.parent / "build/bin/antdt-bench-allreduce"


def numbers(text):
    return [int(part) for part in text.split(",")]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Bench:
    def __init__(self, args, directory):
        self.args = args
        self.first = ["chrt", "-f", "1"] if args.real_time else []
        self.mpi = None
        if args.mpi:
            self.mpi = str(pathlib.Path(directory) / "allreduce_mpi")
            subprocess.run(["mpicc", "-O2", str(HERE / "allreduce_mpi.c"), "-o", self.mpi], check=True)

    def output(self, command):
        done = subprocess.run([*self.first, *command], capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed: {done.stderr[-500:]}")
        return done.stdout

    def antdt(self, kind, ranks, size):
        return json.loads(self.output([
            str(BENCH), "--collective", kind, "--ranks", str(ranks), "--bytes", str(size),
            "--seconds", str(self.args.seconds), "--json"]))

    def gloo(self, ranks, size):
        port = free_port()
        processes = [subprocess.Popen(
            [*self.first, self.args.gloo, str(HERE / "allreduce_gloo.py"), str(rank), str(ranks),
             str(port), str(size), str(self.args.seconds)], stdout=subprocess.PIPE, text=True)
            for rank in range(ranks)]
        outputs = [process.communicate(timeout=300)[0] for process in processes]
        if any(process.returncode != 0 for process in processes):
            sys.exit("gloo's all_reduce failed")
        return float(outputs[0])

    def mpich(self, ranks, size):
        return float(self.output(["mpiexec", "-n", str(ranks), self.mpi, str(size),
                                  str(self.args.seconds)]))

    def round(self, ranks, size):
        """The median call of each, in us."""
        tcp, shm = self.antdt("tcp", ranks, size), self.antdt("shm", ranks, size)
        found = {"copies": shm["copies_us"], "tcp": tcp["p50_us"], "shm": shm["p50_us"]}
        if self.args.gloo:
            found["gloo"] = self.gloo(ranks, size)
        if self.mpi:
            found["mpi"] = self.mpich(ranks, size)
        return found


def cell(values):
    middle = statistics.median(values)
    digits = 1 if middle < 100 else 0
    return f"{middle:,.{digits}f} ({min(values):,.{digits}f}–{max(values):,.{digits}f})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=numbers, default=[2, 4, 8])
    parser.add_argument("--bytes", type=numbers, default=[1 << n for n in range(8, 29, 4)])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--gloo", default="")
    parser.add_argument("--mpi", action="store_true")
    parser.add_argument("--real-time", action="store_true")
    args = parser.parse_args()
    if args.mpi and args.real_time and max(args.ranks) > os.cpu_count():
        parser.error(f"--mpi --real-time is for at most {os.cpu_count()} ranks here, which is how many "
                     "processors there are: MPICH's ranks spin while they wait")
    names = ["copies", "tcp", "shm"] + ["gloo"] * bool(args.gloo) + ["mpi"] * args.mpi
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(args, directory)
        print(f"| ranks | bytes | {' | '.join(name + ', us' for name in names)} | tcp / shm | copies / shm |")
        print("|---" * (len(names) + 4) + "|")
        for ranks in args.ranks:
            for size in args.bytes:
                rounds = [bench.round(ranks, size) for _ in range(args.rounds)]
                cells = [cell([found[name] for found in rounds]) for name in names]
                ratios = [statistics.median(found[name] / found["shm"] for found in rounds)
                          for name in ("tcp", "copies")]
                print(f"| {ranks} | {size} | {' | '.join(cells)} | {ratios[0]:.1f} | {ratios[1]:.2f} |",
                      flush=True)


if __name__ == "__main__":
    main()
