#!/usr/bin/python3
"""How soon training goes on after a worker is killed, and what an outage of the
job daemon costs.

    bench/recovery.py [--kills 10] [--bin build/bin]

Trains the model `tally` with 4 workers (each waits 10 ms a batch, so that the
steps are of one length on any machine), kills one with SIGKILL and measures the
time until a step later than the last one seen before is reported; checks that
the survivors' processes are the same. Then stops the job daemon for 2 s and
compares the steps made in that time with the steps made before.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "e2e"))
import tally  # noqa: E402


class Job:
    def __init__(self, binaries, directory, budget):
        self.antdt = str(binaries / "antdt")
        self.run = directory / "run"
        runtime = directory / "rt"
        runtime.mkdir(mode=0o700)
        self.env = dict(os.environ, XDG_RUNTIME_DIR=str(runtime),
                        XDG_CACHE_HOME=str(directory / "cache"))
        (directory / "job.toml").write_text(tally.job(
            records=1_000_000, epochs=50, batch=64, delay="10ms",
            extra=f"[failure]\nbudgets = {{ signal = {budget} }}\n"))
        self.process = subprocess.Popen(
            [self.antdt, "run", str(directory / "job.toml"), "--run-dir", str(self.run)],
            env=self.env, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def status(self):
        done = subprocess.run([self.antdt, "status", str(self.run), "--json"], env=self.env,
                              capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def until(self, condition, seconds=60):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            status = self.status()
            if status and condition(status):
                return status
        raise SystemExit("the job did not get there")

    def whole_group(self):
        return self.until(lambda s: s["state"] == "training" and s["step"] > 0 and
                          all(w["rank"] is not None for w in s["workers"]))

    def stop(self):
        subprocess.run([self.antdt, "stop", str(self.run), "--grace", "0s"], env=self.env,
                       capture_output=True)
        self.process.wait(30)


def kill_and_measure(job, n):
    before = job.whole_group()
    victim = before["workers"][n % 4]
    survivors = {w["id"]: w["pid"] for w in before["workers"] if w["id"] != victim["id"]}
    os.kill(victim["pid"], signal.SIGKILL)
    killed = time.monotonic()
    generation = before["generation"]
    after = job.until(lambda s: s["generation"] > generation and s["step"] > before["step"] + 1)
    seconds = time.monotonic() - killed
    assert all(w["pid"] == survivors[w["id"]] for w in after["workers"] if w["id"] in survivors)
    return seconds


def outage(job, seconds):
    """Steps a second before and during an outage of the job daemon."""
    def steps_in(duration, away):
        first, began = job.whole_group()["step"], time.monotonic()
        pid = int((job.run / "jobd.lock").read_text())
        if away:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(duration)
        if away:
            os.kill(pid, signal.SIGCONT)
        time.sleep(1)  # it has heard of what was made meanwhile
        last = job.whole_group()["step"]
        return (last - first) / (time.monotonic() - began)
    return steps_in(seconds, False), steps_in(seconds, True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--bin", type=pathlib.Path, default=HERE.parent / "build" / "bin")
    options = parser.parse_args()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="antdt-recovery-"))
    job = Job(options.bin.resolve(), directory, options.kills + 5)
    try:
        times = [kill_and_measure(job, n) for n in range(options.kills)]
        print("next step after kill -9, s:", " ".join(f"{t:.2f}" for t in times))
        print(f"median {statistics.median(times):.2f} s, {min(times):.2f} to {max(times):.2f}")
        for _ in range(3):
            before, during = outage(job, 2)
            print(f"steps/s: {before:.1f} before, {during:.1f} with the job daemon away for 2 s "
                  f"({100 * (during / before - 1):+.1f}%)")
    finally:
        job.stop()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
