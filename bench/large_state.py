#!/usr/bin/env python3
"""A model of 4 GB on a disk of 50 MB/s, and hang_after = 5s: written, resumed and healed.

    bench/large_state.py [--gb 4] [--rate 50e6] [--hang-after 5s] [--records 1200000] [--bin build/bin]

Two workers around a ring on emulated devices; their model is one table. A preloaded library holds
the workers' reads and writes below the run directory to the rate. The program trains until a
checkpoint is written, kills a worker (the next attempt receives the state from the other one),
stops the job, resumes it, and trains the rest. It prints

    written      seconds, and what `antdt status` said of it
    pause        for which the writer's steps stood still for it, from its account of time
    steps/s      before it was written, and meanwhile
    memory       of the writer and the child that writes, together (PSS), before and at most
    healed       seconds from the death of a worker until both train
    resumed      seconds until it trains, by whom the checkpoint was read, what was said of it

The exit code is 1 if the job daemon ended a process, or if a record did not count exactly once.
Takes some ten minutes, three times the state in memory and in $TMPDIR.
"""
import argparse
import array
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import runs


class Job:
    def __init__(self, options, top):
        self.options = options
        self.top = top
        self.run_dir = top / "run"
        self.control = top / "control"
        self.antdt = str(pathlib.Path(options.bin) / "antdt")
        self.env = dict(os.environ, XDG_RUNTIME_DIR=str(top / "rt"), TMPDIR=str(top / "tmp"))
        for name in ("rt", "tmp"):
            (top / name).mkdir(mode=0o700)
        preload = pathlib.Path(options.bin).parent / "tests" / "libantdt_slow_path.so"
        command = ["env", f"LD_PRELOAD={preload}", f"ANTDT_TEST_SLOW_CONTROL={self.control}",
                   f"ANTDT_TEST_SLOW_PATH={self.run_dir}",
                   str(pathlib.Path(options.bin).resolve() / "antdt-trainer")]
        self.parameters = int(options.gb * 1e9 / 4)
        text = runs.emulated_job("large-state", command, options.records, self.parameters, options.every,
                                 "5ms", f'[failure]\nhang_after = "{options.hang_after}"\n')
        self.file = top / "job.toml"
        self.file.write_text(text)
        self.process = None

    def slow(self, on):
        self.control.write_text(f"rate {int(self.options.rate)}" if on else "")

    def start(self, *args):
        self.process = subprocess.Popen([self.antdt, "run", *map(str, args)], env=self.env,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def status(self):
        done = subprocess.run([self.antdt, "status", str(self.run_dir), "--json"], env=self.env,
                              capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def until(self, condition, seconds, what, meanwhile=lambda status: None):
        """The first status for which the condition holds, and how long that took."""
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            if self.process.poll() is not None:
                sys.exit(f"{what}: the job is over\n{self.process.stdout.read()[-3000:]}")
            status = self.status()
            if status:
                meanwhile(status)
                if condition(status):
                    return status, time.monotonic() - began
            time.sleep(0.2)
        sys.exit(f"{what}: not within {seconds} s; {json.dumps(status)[:2000]}")

    def stop(self):
        subprocess.run([self.antdt, "stop", str(self.run_dir)], env=self.env, check=True)
        self.process.communicate(timeout=600)

    def events(self):
        lines = (self.run_dir / "events.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


def io_of(status, what):
    return {w["id"]: w["io"] for w in status["workers"] if w.get("io", {}).get("what") == what}


def trains(status):
    ranked = [w for w in status["workers"] if w["rank"] is not None]
    return status["state"] == "training" and len(ranked) == 2 and status["samples_per_second"] > 0


def pss(pid):
    """The memory of a process and its children, in bytes."""
    total = 0
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            stat = (path / "stat").read_text().rsplit(")", 1)[1].split()
            if int(path.name) != pid and int(stat[1]) != pid:
                continue
            for line in (path / "smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
        except (OSError, IndexError):
            continue
    return total


def steps_a_second(job, seconds):
    first, began = job.status()["step"], time.monotonic()
    time.sleep(seconds)
    return (job.status()["step"] - first) / (time.monotonic() - began)


def write(job):
    status, took = job.until(trains, 300, "training")
    print(f"start        {took:.0f} s until it trains")
    before = steps_a_second(job, 5)
    job.slow(True)
    writer_pid = next(w["pid"] for w in status["workers"] if w["rank"] == 0)
    memory_before, memory = pss(writer_pid), 0
    status, _ = job.until(lambda s: io_of(s, "writing the checkpoint"), 120, "a checkpoint begins")
    began, first = time.monotonic(), status["step"]
    texts = []

    def look(status):
        nonlocal memory
        memory = max(memory, pss(writer_pid))
        texts.extend(io["text"] for io in io_of(status, "writing the checkpoint").values())
    kept = job.run_dir / "checkpoints"
    known = {p.name for p in kept.glob("s*")}
    status, _ = job.until(lambda s: {p.name for p in kept.glob("s*")} - known, 900,
                          "a checkpoint is kept", look)
    seconds = time.monotonic() - began
    meanwhile = (status["step"] - first) / seconds
    print(f"written      {seconds:.1f} s; said: {texts[len(texts) // 2]}")
    print(f"steps/s      {before:.1f} before, {meanwhile:.1f} while it was written")
    print(f"memory       {memory_before / 1e9:.2f} GB before, {memory / 1e9:.2f} GB at most")


def heal(job):
    job.slow(False)
    status, _ = job.until(trains, 120, "training")
    victim = next(w for w in status["workers"] if w["rank"] == 1)
    os.kill(victim["pid"], signal.SIGKILL)
    texts = []
    _, seconds = job.until(
        lambda s: trains(s) and any(w["id"] == victim["id"] and w["attempt"] > victim["attempt"]
                                    for w in s["workers"]), 600, "both train again",
        lambda s: texts.extend(io["text"] for io in io_of(s, "receiving the state").values()))
    print(f"healed       {seconds:.1f} s after {victim['id']} was killed; said: "
          f"{texts[len(texts) // 2] if texts else '(it was too quick to be seen)'}")


def resume(job):
    job.stop()
    job.slow(True)
    job.start("--resume", job.run_dir)
    readers, texts = set(), []

    def look(status):
        found = io_of(status, "reading the checkpoint")
        readers.update(found)
        texts.extend(io["text"] for io in found.values())
    _, seconds = job.until(trains, 1200, "training goes on", look)
    print(f"resumed      {seconds:.1f} s until it trains, read by {sorted(readers)}; said: "
          f"{texts[len(texts) // 2] if texts else ''}")
    job.slow(False)


def finish(job):
    out, _ = job.process.communicate(timeout=3600)
    if job.process.returncode != 0:
        sys.exit(f"the job ended with {job.process.returncode}\n{out[-3000:]}")
    summary = json.loads((job.run_dir / "summary.json").read_text())
    checkpoints = sum(e["kind"] == "checkpoint" for e in job.events())
    spent = max(w["lost_time"]["checkpoint"] for w in summary["workers"])
    print(f"pause        {1000 * spent / max(1, checkpoints):.1f} ms for each of {checkpoints} "
          "checkpoints, in the mean")
    ended = [e["text"] for e in job.events() if e["kind"] in ("hang", "checkpoint-failed")]
    newest = max((job.run_dir / "checkpoints").glob("s*"), key=lambda p: p.stat().st_mtime)
    wrong, at = 0, 0
    with open(newest / "tally.f32", "rb") as file:
        while part := file.read(64 << 20):
            counts = array.array("f", part)
            expected = max(0, min(job.options.records - at, len(counts)))
            wrong += sum(1 for c in counts[:expected] if c != 1)
            rest = part[4 * expected:]
            wrong += int(rest.count(0) != len(rest))
            at += len(counts)
    print(f"exact        {at} parameters, {wrong} of them wrong; ended by the job daemon: {ended}")
    return 1 if wrong or ended or at != job.parameters else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gb", type=float, default=4)
    parser.add_argument("--rate", type=float, default=50e6)
    parser.add_argument("--hang-after", default="5s")
    parser.add_argument("--every", default="20s")
    parser.add_argument("--records", type=int, default=1_200_000)
    parser.add_argument("--bin", default=str(runs.BIN))
    options = parser.parse_args()
    top = pathlib.Path(tempfile.mkdtemp(prefix="antdt-large-state-"))
    job = Job(options, top)
    try:
        job.slow(False)
        job.start(job.file, "--run-dir", job.run_dir)
        write(job)
        heal(job)
        resume(job)
        return finish(job)
    finally:
        if job.process.poll() is None:
            subprocess.run([job.antdt, "stop", "--grace", "1s", str(job.run_dir)], env=job.env)
            job.process.kill()
            job.process.communicate()
        shutil.rmtree(top, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
