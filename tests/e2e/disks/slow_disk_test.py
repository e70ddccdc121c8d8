"""Writing and reading a checkpoint take longer than hang_after. Because bytes move, no process is
ended for it. Steps go on while the checkpoint is written. One member reads it, and the other
receives its content."""

import json
import pathlib
import re
import subprocess
import time
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import ANTDT, BIN, await_true, needs_trainer

PRELOAD = pathlib.Path(BIN).parent / "tests" / "libantdt_slow_path.so"
PARAMETERS = 4_000_000  # 16 MB
RATE = 4_000_000        # bytes a second: 4 s, and 2 s are waited
RECORDS = 120_000


def job(control, records=RECORDS, parameters=PARAMETERS, hang_after="2s", every="1s"):
    """Workers whose files are on a disk that `control` makes slow."""
    command = ["env", f"LD_PRELOAD={PRELOAD}", f"ANTDT_TEST_SLOW_CONTROL={control}",
               f"ANTDT_TEST_SLOW_PATH={control.parent}/run1", str(BIN / "antdt-trainer")]
    return f"""
schema = 1
[job]
name = "slow-disk"
seed = 5
[roles.worker]
count = 2
command = {json.dumps(command)}
[data]
format = "index"
records = {records}
[batch]
global = 32
[checkpoint]
every = "{every}"
keep = 2
[failure]
hang_after = "{hang_after}"
[trainer]
model = "emulated"
[emulated]
parameters = {parameters}
[[emulated.device]]
class = "any"
flat = "4ms"
per_sample = "10us"
"""


@needs_trainer
@unittest.skipUnless(PRELOAD.exists(), "the library that makes a disk slow was not built")
class SlowDisk(tally.TallyTest):
    def events(self, run_dir):
        lines = (run_dir / "events.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def io_of(self, status, what):
        """The workers' reads or writes of this kind in `antdt status --json`."""
        return [w["io"] for w in status["workers"] if w.get("io", {}).get("what") == what]

    def resume(self, run_dir):
        process = subprocess.Popen([ANTDT, "run", "--resume", str(run_dir)], env=self.env,
                                   cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        self.addCleanup(lambda: (process.poll() is None and process.kill(),
                                 process.communicate()))
        return process

    def assert_nobody_was_ended(self, run_dir):
        ended = [e["text"] for e in self.events(run_dir)
                 if e["kind"] == "hang" or "stands still" in e["text"]]
        self.assertEqual(ended, [])

    def test_a_slow_disk_is_waited_for_and_steps_go_on(self):
        control = self.dir / "control"
        control.write_text(f"rate {RATE}")
        process, run_dir = self.start_job(self.write("job.toml", job(control)))
        writing = self.await_status(
            run_dir, lambda s: any(io["done_bytes"] for io in
                                   self.io_of(s, "writing the checkpoint")),
            60, "a checkpoint is being written")
        self.assertRegex(self.io_of(writing, "writing the checkpoint")[0]["text"],
                         r"^writing the checkpoint: \d+\.\d of 16\.0 MB")
        self.assertIn("w0 on", self.antdt("status", run_dir).stdout)
        began = time.monotonic()
        kept = run_dir / "checkpoints"
        await_true(lambda: list(kept.glob("s*")), 60, "a checkpoint")
        self.assertGreater(time.monotonic() - began, 1.5, "the disk was slow")
        after = self.status(run_dir)
        steps = after["step"] - writing["step"]
        self.assertGreater(steps, 50, "steps went on while it was written")
        self.assert_nobody_was_ended(run_dir)

        # The last checkpoint takes longer than the grace of a stop, and the job waits for it.
        before = self.status(run_dir)["step"]
        stopped = self.antdt("stop", run_dir, "--grace", "1s")
        self.assertEqual(stopped.returncode, 0, stopped.stderr)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75)
        self.assertGreaterEqual(tally.order_of(tally.newest(run_dir))[1], before)
        self.assertEqual([e["text"] for e in self.events(run_dir)
                          if e["kind"] == "checkpoint-failed"], [])

        resumed = self.resume(run_dir)
        reading = self.await_status(
            run_dir, lambda s: any(io["done_bytes"] for io in
                                   self.io_of(s, "reading the checkpoint")),
            60, "a checkpoint is being read")
        self.assertEqual(len(self.io_of(reading, "reading the checkpoint")), 1, "by one member")
        explained = self.antdt("explain", run_dir).stdout
        self.assertTrue(re.search(r"reading the checkpoint: \d+\.\d of 16\.0 MB", explained) or
                        self.status(run_dir)["state"] == "training", explained)
        self.await_training(run_dir, samples=reading["samples_done"] + 100)
        self.assert_nobody_was_ended(run_dir)
        control.write_text("")
        summary = self.finish(resumed, run_dir)
        self.assertEqual(summary["failures"], [])
        wrong = {i: c for i, c in enumerate(tally.counts(run_dir)) if c != (i < RECORDS)}
        self.assertEqual(dict(list(wrong.items())[:5]), {}, f"{len(wrong)} records")

    def test_a_disk_that_stands_still_costs_the_checkpoint_and_not_the_worker(self):
        control = self.dir / "control"
        control.write_text("")
        process, run_dir = self.start_job(self.write("job.toml", job(control, records=60_000)))
        await_true(lambda: list((run_dir / "checkpoints").glob("s*")), 60, "a checkpoint")
        control.write_text("stall")

        def failed():
            return [e["text"] for e in self.events(run_dir) if e["kind"] == "checkpoint-failed"]
        await_true(failed, 30, "a checkpoint is given up")
        self.assertRegex(failed()[0], r"writing the checkpoint .*stands still at .* for 2 s")
        before = self.status(run_dir)["step"]
        self.await_status(run_dir, lambda s: s["step"] > before + 50, 30, "steps go on")
        control.write_text("")
        summary = self.finish(process, run_dir)
        self.assertEqual(summary["failures"], [])


if __name__ == "__main__":
    unittest.main()
