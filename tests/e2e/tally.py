"""Jobs that train the model `tally`, and how often each record entered it."""

import array
import json
import os
import pathlib
import signal
import sys
import time

from harness import EndToEnd, await_true


def job(workers=4, records=20000, epochs=2, batch=64, delay="", extra="", sync="allreduce"):
    """`delay`: how long each worker waits after a batch, so that faults happen during training."""
    inject = f'[[inject]]\nworkers = ["*"]\ndelay = "{delay}"\n' if delay else ""
    return f"""
schema = 1
[job]
name = "tally"
epochs = {epochs}
seed = 11
[roles.worker]
count = {workers}
command = ["antdt-trainer"]
[data]
format = "index"
records = {records}
[batch]
global = {batch}
[trainer]
model = "tally"
sync = "{sync}"
{extra}
{inject}
"""


def order_of(checkpoint):
    """(lineage, step) of a checkpoint, from its name: a later one is greater."""
    step, lineage = checkpoint.name.split("-")[:2]
    return int(lineage[1:]), int(step[1:])


def newest(run_dir):
    """The newest checkpoint."""
    return max((p for p in (pathlib.Path(run_dir) / "checkpoints").iterdir()
                if p.name.startswith("s")), key=order_of)


def counts(run_dir):
    """The counters of the newest checkpoint: how often each record entered the model."""
    values = array.array("f")
    values.frombytes((newest(run_dir) / "tally.f32").read_bytes())
    if sys.byteorder == "big":
        values.byteswap()
    return values


class TallyTest(EndToEnd):
    """Runs in the background, with faults in them."""

    def status(self, run_dir):
        done = self.antdt("status", run_dir, "--json", timeout=60)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def await_status(self, run_dir, condition, seconds, what):
        last = None

        def holds():
            nonlocal last
            last = self.status(run_dir)
            return last if last and condition(last) else None
        try:
            return await_true(holds, seconds, what)
        except AssertionError as error:
            state = json.dumps(last)[:2000]
            raise AssertionError(f"{error}\n{state}\n{self.why('', '', run_dir)}") from None

    def await_answer(self, run_dir):
        """The status, as soon as the job daemon has answered."""
        return self.await_status(run_dir, lambda s: True, 60, "an answer of the job daemon")

    def await_training(self, run_dir, samples=1, seconds=60):
        """The status once `samples` are trained in all, by whoever is in the group."""
        return self.await_status(
            run_dir, lambda s: s["state"] == "training" and s["samples_done"] >= samples, seconds,
            f"{samples} samples trained")

    def moments(self, process, run_dir, rng, count, samples, meanwhile=lambda: None):
        """Yields `count` times, whenever a fault is due in a job that trains `samples`: at certain
        numbers of trained samples, or while the job recovers from the previous fault. Faults follow
        samples and not time, so that a fast machine has as many faults as a slow one."""
        def trained(point):
            meanwhile()
            self.assertIsNone(process.poll(), "the job was over too soon")
            status = self.status(run_dir)
            return status and status["samples_done"] >= point

        amid_mending = False
        for point in sorted(rng.uniform(0.05, 0.7) * samples for _ in range(count)):
            if amid_mending:
                time.sleep(rng.uniform(0, 0.8))  # the fault's time, not a wait for anything
            else:
                await_true(lambda p=point: trained(p), 120, f"{point:.0f} samples trained")
            yield
            amid_mending = not amid_mending and rng.random() < 0.5

    def finish(self, process, run_dir, timeout=180):
        out, err = process.communicate(timeout=timeout)
        self.assertEqual(process.returncode, 0, self.why(out, err, run_dir))
        return json.loads((run_dir / "summary.json").read_text())

    def why(self, out, err, run_dir):
        parts = [out[-2000:], err[-2000:]]
        for log in [run_dir / "jobd.log", *sorted((run_dir / "logs").glob("w*.err"))]:
            if log.exists():
                parts.append(f"--- {log.name}\n" + log.read_text(errors="replace")[-2500:])
        return "\n".join(parts)

    def assert_exact(self, summary, run_dir, records, epochs):
        """The model, the audit and the summary agree that every record counted once in each
        epoch."""
        found = self.counts(run_dir)
        wrong = {i: c for i, c in enumerate(found) if c != epochs}
        self.assertEqual(len(found), records)
        self.assertEqual(wrong, {}, "records that did not enter the model once an epoch")
        audit = self.antdt("data", "audit", run_dir, "--json")
        self.assertEqual(audit.returncode, 0, audit.stdout + audit.stderr)
        for epoch in json.loads(audit.stdout)["epochs"]:
            self.assertEqual((epoch["once"], epoch["repeated"], epoch["lost"]), (records, 0, 0))
        self.assertEqual(summary["samples_trained"], records * epochs)

    def counts(self, run_dir):
        return counts(run_dir)

    @staticmethod
    def kill(pid, which=signal.SIGKILL):
        if pid <= 0:
            raise AssertionError(f"no process: {pid}")  # 0 is the group of the test itself
        try:
            os.kill(pid, which)
            return True
        except ProcessLookupError:
            return False

    def jobd_pid(self, run_dir):
        text = (run_dir / "jobd.lock").read_text().strip()
        return int(text) if text else 0


class ReplicasTest(TallyTest):
    """Jobs whose workers hold replicas that differ, with operators and faults in them. A class has
    `job(**kinds)`, which writes the job and returns its path."""

    RECORDS, EPOCHS, BATCH = 12_000, 2, 96

    def job_of(self, sync, workers, delay, extra="", records=RECORDS, batch=BATCH):
        return self.write("job.toml", job(
            workers=workers, records=records, epochs=self.EPOCHS, batch=batch, delay=delay,
            extra=extra, sync=sync))

    def begin(self, samples=1500, **kinds):
        process, run_dir = self.start_job(self.job(**kinds))
        self.await_training(run_dir, samples=samples)
        return process, run_dir

    def ask(self, *words):
        done = self.antdt(*words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def await_more(self, run_dir, records=1000):
        self.await_training(run_dir, samples=self.await_answer(run_dir)["samples_done"] + records)

    def end(self, process, run_dir):
        summary = self.finish(process, run_dir)
        self.assert_exact(summary, run_dir, self.RECORDS, self.EPOCHS)
        self.assert_nothing_left()
        return summary

    def evict_and_resize(self, process, run_dir, counts):
        """One worker leaves, then there are so many, one number after the other."""
        self.assertIn("w1 has left", self.ask("evict", run_dir, "w1", "--reason", "a drill"))
        self.await_more(run_dir)
        for count in counts:
            self.ask("resize", run_dir, count)
            self.await_status(
                run_dir, lambda s, n=count: sum(w["rank"] is not None for w in s["workers"]) == n,
                60, f"{count} workers train")
            self.await_more(run_dir)
        return self.end(process, run_dir)

    def stop_and_resume(self, process, run_dir, samples=1500):
        """Stops a job that has trained so many, and resumes it from one replica."""
        self.ask("stop", run_dir, "--reason", "a drill")
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, self.why(out, err, run_dir))
        values = counts(run_dir)
        self.assertLessEqual(max(values), self.EPOCHS)
        self.assertGreaterEqual(sum(values), samples - self.BATCH,
                                "what was trained before the stop")
        self.assertEqual(sum(values) % self.BATCH, 0, "whole steps of all workers")
        self.ask("run", "--resume", run_dir)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertEqual(summary["lineages"], 2)
        self.assert_exact(summary, run_dir, self.RECORDS, self.EPOCHS)
        return summary
