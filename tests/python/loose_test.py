"""Loose clients in Python share a job's records: the fast ones take more, and what a killed one held goes to
others. They need no PyTorch."""
import collections
import sys
import unittest

import python_jobs
from harness import processes_of

RECORDS = 3000


@unittest.skipUnless(python_jobs.LIBRARY.exists(), f"{python_jobs.LIBRARY} is not built")
class LooseClients(python_jobs.PythonJobs):
    def job_of(self, delay, *arguments):
        return self.toml("loose.py", self.dir, RECORDS, delay, *arguments, python=sys.executable, workers=3,
                         records=RECORDS, epochs=1,
                         extra='[failure]\nbudgets = { signal = 10 }\n')

    def seen(self):
        return collections.Counter(int(record) for path in self.dir.glob("notes-*")
                                   for line in path.read_text().splitlines()
                                   for record in line.split()[1:])

    def test_each_record_is_worked_through_once(self):
        run = self.run_job(self.job_of(0.01))
        self.assert_done(run)
        self.assert_once(run, 1, RECORDS)
        self.assertEqual(self.seen(), collections.Counter(range(RECORDS)))
        samples = {w["id"]: w["samples"] for w in run.summary["workers"]}
        self.assertLess(samples["w1"], 0.7 * samples["w0"], samples)
        self.assert_nothing_left()

    def test_records_of_a_killed_client_go_to_others(self):
        process, run_dir = self.start_job(self.job_of(0.05))
        self.await_status(run_dir, lambda s: s["samples_done"] > RECORDS / 5, 60, "a fifth is done")
        victims = [pid for pid, command in processes_of(str(self.dir)) if "loose.py" in command
                   and "python" in command.split(" ", 1)[0]]
        self.kill(min(victims))
        summary = self.finish(process, run_dir)
        self.assertEqual(summary["samples_trained"], RECORDS)
        self.assertEqual(set(self.seen()), set(range(RECORDS)))
        self.assert_nothing_left()

    def test_skipped_records_are_accounted_once_when_a_client_is_killed(self):
        process, run_dir = self.start_job(self.job_of(0.05, 7))
        self.await_status(run_dir, lambda s: s["samples_done"] > RECORDS / 5, 60, "a fifth is done")
        self.kill(min(pid for pid, command in processes_of(str(self.dir)) if "loose.py" in command
                      and "python" in command.split(" ", 1)[0]))
        summary = self.finish(process, run_dir)
        skipped = len(range(0, RECORDS, 7))
        self.assertEqual(summary["samples_trained"], RECORDS - skipped)
        self.assertEqual(summary["skipped_by_program"], [{"reason": "torn", "samples": skipped}])
        self.assertEqual((summary["samples_lost"], summary["samples_repeated"]), (0, 0))
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
