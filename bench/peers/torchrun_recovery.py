#!/usr/bin/python3
"""How soon a DDP program goes on after a rank is killed, under torchrun: the
comparison to bench/recovery.py. torchrun restarts the whole gang; the program
loads its own checkpoint (tests/e2e/programs/gang_train.py, 4 ranks, a step each 0.1 s).

    bench/peers/torchrun_recovery.py [--kills 10]
"""
import argparse
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "tests" / "e2e" / "programs" / "gang_train.py"


def lines(directory, rank):
    path = directory / f"log.{rank}"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def until(process, condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None:
            raise SystemExit(f"torchrun ended with {process.returncode}")
        if time.monotonic() > deadline:
            raise SystemExit("torchrun did not get there")
        time.sleep(0.005)


def attempts(directory):
    """(how often rank 0 began, whether it has made a step since)."""
    log = lines(directory, 0)
    began = sum(1 for line in log if line[0] == "begin")
    return began, bool(log) and log[-1][0] == "step"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    options = parser.parse_args()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="torchrun-recovery-"))
    env = dict(os.environ, GANG_STEPS="100000", OMP_NUM_THREADS="1")
    # With Python 3.11 torchrun 1.13 does not find its own default for these two.
    process = subprocess.Popen(
        ["/usr/bin/python3", "-m", "torch.distributed.run", "--nproc_per_node", "4",
         "--max_restarts", str(options.kills + 1), "--master_port", "29517",
         "--redirects", "1", "--tee", "1", "--log_dir", str(directory / "logs"),
         str(PROGRAM), str(directory)], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True)
    times = []
    try:
        for n in range(options.kills):
            until(process, lambda: attempts(directory) == (n + 1, True))
            victim = int([line for line in lines(directory, 1) if line[0] == "step"][-1][2])
            os.kill(victim, signal.SIGKILL)
            killed = time.monotonic()
            until(process, lambda: attempts(directory) == (n + 2, True))
            times.append(time.monotonic() - killed)
        print("next step after kill -9, s:", " ".join(f"{t:.2f}" for t in times))
        print(f"median {statistics.median(times):.2f} s, {min(times):.2f} to {max(times):.2f}")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
