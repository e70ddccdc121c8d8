"""[hooks] event: programs that are told a job's events, well and badly. None of them harms the job."""

import json
import os
import signal
import unittest

from monitoring import Watched
from harness import await_true, needs_trainer


@needs_trainer
class Hooks(Watched):
    def hook(self, script):
        """[hooks] of a shell script, which finds the test's directory in $OUT."""
        path = self.write("hook.sh", f"OUT={self.dir}\n{script}\n")
        return f'[hooks]\nevent = ["sh", "{path}", "an argument"]\n'

    def kill_a_worker(self):
        def pid():
            status = self.antdt("status", self.run_dir, "--json", timeout=60)
            workers = json.loads(status.stdout)["workers"] if status.returncode == 0 else []
            # A worker may join before its agent has said that it runs; 0 would be the test's own group.
            return [w["pid"] for w in workers
                    if w["id"] == "w1" and w["state"] == "joined" and w["pid"] > 0]
        os.kill(await_true(pid, 60, "w1 trains")[0], signal.SIGKILL)

    def heard(self):
        path = self.dir / "heard"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def test_each_event_worth_it_is_told_the_last_one_too(self):
        self.start(self.hook('cat >> "$OUT/heard"; echo "said: $1"; echo complained >&2'))
        self.kill_a_worker()
        await_true(lambda: any(e["kind"] == "worker-exited" for e in self.heard()), 60,
                   "the failure is told")
        self.stop()
        heard = self.heard()
        kinds = [e["kind"] for e in heard]
        self.assertEqual((kinds[0], kinds[-1]), ("start", "end"), kinds)
        self.assertNotIn("phase", kinds)
        failure = next(e for e in heard if e["kind"] == "worker-exited")
        self.assertIn("w1", failure["text"])
        self.assertIn("signal 9", failure["text"])
        self.assertTrue(failure["job"].startswith("watched-"), failure)
        self.assertEqual((failure["run_dir"], failure["missed"]), (str(self.run_dir), 0))
        log = (self.run_dir / "hooks.log").read_text()
        self.assertIn("said: an argument", log)
        self.assertIn("complained", log)
        self.assertEqual(self.events("hook"), [])
        self.assert_nothing_left()

    def test_one_that_hangs_is_ended_and_the_job_does_not_wait_for_it(self):
        self.start(self.hook('[ -e "$OUT/began" ] && exit; touch "$OUT/began"; sleep 1000 & sleep 1000'))
        self.await_event("phase")
        self.kill_a_worker()

        def trains_again():
            status = json.loads(self.antdt("status", self.run_dir, "--json").stdout)
            return [w["attempt"] for w in status["workers"]
                    if w["id"] == "w1" and w["state"] == "joined"] == [2]
        await_true(trains_again, 60, "w1 trains again")
        told = self.await_event("hook")
        self.assertIn("took longer than 10 s", told["text"])
        self.assertIn("hooks.log", told["text"])
        self.stop()
        self.assert_nothing_left()

    def test_one_that_fails_is_told_of_once(self):
        self.start(self.hook('echo no mail >&2; exit 3'))
        self.kill_a_worker()
        self.await_event("worker-exited")
        self.await_event("hook")  # of a job that ends before, only hooks.log tells
        self.stop()
        told = self.events("hook")
        self.assertEqual(len(told), 1, told)
        self.assertIn("ended with code 3", told[0]["text"])
        self.assertIn("no mail", (self.run_dir / "hooks.log").read_text())

    def test_a_missing_program_is_reported_before_anything_starts(self):
        self.start('[hooks]\nevent = ["./none-of-that"]\n')
        _, err = self.process.communicate(timeout=60)
        self.assertEqual(self.process.returncode, 2, err)
        self.assertIn("hooks.event", err)
        self.assertIn("none-of-that", err)


if __name__ == "__main__":
    unittest.main()
