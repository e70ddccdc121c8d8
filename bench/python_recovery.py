#!/usr/bin/env python3
"""How soon the survivors make their next step after a Python worker is killed, by kill -9.

    bench/python_recovery.py [--python /usr/bin/python3] [--kills 10] [--json]

Four workers train the tally as a PyTorch module (bench/peers/noted_steps.py, 10 ms a micro-batch).
bench/peers/torchrun_recovery.py and torchft_recovery.py measure the same for other launchers. Each
survivor notes when it made its steps, so that only the job is measured. A killed worker is back in
the group before the next kill."""
import json
import os
import signal
import time

import runs

PROGRAM = runs.ROOT / "bench" / "peers" / "noted_steps.py"
JOB = """
schema = 1
[job]
name = "recovery"
epochs = 1000
[roles.worker]
count = 4
command = {command}
env = {{ PYTHONPATH = "{package}", OMP_NUM_THREADS = "1" }}
[data]
format = "index"
records = 100000
[batch]
global = 64
[trainer]
sync = "allreduce"
[failure]
budgets = {{ signal = 1000 }}
[checkpoint]
every = "0s"
"""


def kill_and_measure(job, folder, n):
    before = job.until(lambda s: s["state"] == "training" and s["step"] > 0 and
                       all(w["rank"] is not None for w in s["workers"]), 120, "a whole group")
    victim = before["workers"][n % 4]
    survivors = [w["pid"] for w in before["workers"] if w["id"] != victim["id"]]
    os.kill(victim["pid"], signal.SIGKILL)
    killed = time.monotonic()
    generation = before["generation"]
    job.until(lambda s: s["generation"] > generation and s["step"] > before["step"] + 1, 60,
              "the next step")
    # A step that was in progress when the victim died may still complete if its sums were complete,
    # so the first step of the new generation counts.
    notes = [folder / f"steps-{pid}" for pid in survivors]
    firsts = []
    for path in notes:
        lines = [line.split() for line in path.read_text().splitlines()]
        firsts.append(min(float(t) for g, t in lines if int(g) > generation) - killed)
    return max(firsts)


def measure(args, place):
    folder = place.directory / "notes"
    folder.mkdir()
    library = args.bin.resolve().parent / "lib" / "libantdt.so.1"
    command = ["/usr/bin/env", f"ANTDT_LIBRARY={library}", args.python, str(PROGRAM), str(folder)]
    job = place.start("recovery", JOB.format(command=json.dumps(command),
                                             package=runs.ROOT / "python"))
    times = []
    for n in range(args.kills):
        times.append(kill_and_measure(job, folder, n))
        runs.progress(f"{times[-1]:.3f} s")
    job.stop()
    return {"seconds": runs.spread(times), "good": True}


def tell(result):
    print(f"next step of all survivors after kill -9: {runs.spread_text(result['seconds'], '{:.3f}')} s")


def main():
    parser = runs.options(__doc__, 1)
    parser.add_argument("--python", default="/usr/bin/python3", help="with PyTorch")
    parser.add_argument("--kills", type=int, default=10)
    args = parser.parse_args()
    runs.finish(args, runs.in_place(args, measure), tell)


if __name__ == "__main__":
    main()
