"""Programs whose membership is fixed are started again together."""

import json
import os
import pathlib
import signal
import unittest

import shared  # noqa: F401 (finds what follows)
from harness import EndToEnd, await_true
from programs_test import PLAIN, has_python_torch


class Gang(EndToEnd):
    def lines(self, rank):
        path = self.dir / f"log.{rank}"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    @unittest.skipUnless(has_python_torch(), "no python3-torch")
    def test_a_ddp_program_goes_on_from_its_own_checkpoint_when_a_rank_is_killed(self):
        script = pathlib.Path(__file__).resolve().parent / "gang_train.py"
        job = self.write("job.toml", PLAIN.format(
            protocol="torchrun",
            command=json.dumps(["/usr/bin/python3", str(script), str(self.dir)])))
        process, run_dir = self.start_job(job)
        await_true(lambda: [x for x in self.lines(1) if x[:2] == ["step", "12"]], 60, "step 12")
        victim = int(self.lines(1)[-1][2])
        os.kill(victim, signal.SIGKILL)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, out + err)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertEqual([w["attempt"] for w in summary["workers"]], [2, 2])
        first, = [f for f in summary["failures"] if f["first"]]
        self.assertEqual((first["worker"], first["class"]), ("w1", "signal"), summary["failures"])
        begins = [x for x in self.lines(0) if x[0] == "begin"]
        self.assertEqual([x[3] for x in begins], ["0", "1"], "the restart count")
        self.assertGreaterEqual(int(begins[1][1]), 10, "it went on from its own checkpoint")
        self.assertEqual(self.lines(0)[-1][1], "59")
        self.assert_nothing_left()

    def test_a_gang_that_always_fails_uses_up_its_budget(self):
        self.write("fail.sh", 'echo "$ANTDT_WORKER_ID $ANTDT_ATTEMPT" >> tries; kill -SEGV $$\n')
        job = self.write("job.toml", PLAIN.format(
            protocol="exec", command=json.dumps(["/bin/sh", str(self.dir / "fail.sh")])) +
            "[failure]\nbudgets = { signal = 2 }\n")
        run = self.run_job(job)
        self.assertEqual(run.code, 1, run.explain())
        self.assertEqual(run.summary["exit"]["class"], "signal")
        self.assertIn("SIGSEGV", run.summary["exit"]["first_cause"])
        attempts = {line.split()[1] for line in (self.dir / "tries").read_text().splitlines()}
        self.assertEqual(attempts, {"1", "2", "3"})
        self.assert_nothing_left()

    def test_an_error_before_anything_was_done_is_not_tried_again(self):
        self.write("fail.sh", "echo x >> tries; echo no such flag >&2; exit 4\n")
        job = self.write("job.toml", PLAIN.format(
            protocol="exec", command=json.dumps(["/bin/sh", str(self.dir / "fail.sh")])))
        run = self.run_job(job)
        self.assertEqual(run.code, 1, run.explain())
        self.assertIn("no such flag", run.out + run.err)
        self.assertEqual({w["attempt"] for w in run.summary["workers"]}, {1})


if __name__ == "__main__":
    unittest.main()
