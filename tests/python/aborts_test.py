"""A survivor goes on in the same process each time a peer is killed in the middle of backward, and
its memory does not grow."""
import os
import unittest

import python_jobs

KILLS = int(os.environ.get("ANTDT_PYTHON_ABORTS", "4"))
RECORDS = 2000 + 2000 * KILLS
# Memory settles after the first few aborts; afterwards nothing of an aborted backward may be left.
# The least that could be left is the input of one layer (16 records of 256 numbers, 16 KiB). Its
# graph holds 8 of these, a bucket has 257 KiB, and all gradients 2 MiB.
SETTLED, MOST_GROWTH = 3, 16 << 10


@python_jobs.needs_torch
class Aborts(python_jobs.PythonJobs):
    def test_a_backward_that_is_broken_off_leaves_nothing_behind(self):
        # So many records that the last attempt finds some, although the survivor trains meanwhile.
        job = self.toml("aborts.py", self.dir, RECORDS, KILLS, workers=2, records=RECORDS, epochs=1,
                        batch=16, python=os.environ.get("ANTDT_KILLED_PYTHON"),
                        extra="[failure]\nbudgets = { signal = 1000, collective = 1000 }\n")
        run = self.run_job(job, timeout=1200)
        self.assert_done(run)
        self.assert_once(run, 1, RECORDS)
        notes = {path.name: path.read_text().split() for path in self.dir.glob("notes-w0-*")}
        self.assertEqual(len(notes), 1, "the survivor was started again")
        words = next(iter(notes.values()))
        memory = [int(m) for size, m in zip(words[::2], words[1::2]) if size == "2"]
        self.assertGreater(len(memory), KILLS)
        growth = (memory[-1] - memory[SETTLED]) / max(1, len(memory) - 1 - SETTLED)
        print(f"{len(memory) - 1} aborts, allocated in KiB: {[m >> 10 for m in memory]}", flush=True)
        self.assertLess(growth, MOST_GROWTH)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
