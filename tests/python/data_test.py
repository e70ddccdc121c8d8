"""A job whose workers read the lines of packed files: each line is trained once an epoch, and one index beside the
data serves all of them."""
import array
import gzip
import random
import shutil
import subprocess
import unittest

import python_jobs

import antdt

EPOCHS, RECORDS = 2, 12000


@python_jobs.needs_torch
class PackedLines(python_jobs.PythonJobs):
    def write_lines(self):
        """Several MiB of lines in three files: packed by gzip, plain, and packed by zstd, where it is there."""
        random.seed(5)
        lines = [f"record {i} {random.getrandbits(2400):x}\n".encode() for i in range(RECORDS)]
        parts = [b"".join(lines[at:at + RECORDS // 3]) for at in range(0, RECORDS, RECORDS // 3)]
        paths = [self.dir / "a.gz", self.dir / "b.txt", self.dir / "c.zst"]
        paths[0].write_bytes(gzip.compress(parts[0]))
        paths[1].write_bytes(parts[1])
        if shutil.which("zstd"):
            subprocess.run(["zstd", "-q", "-o", paths[2]], input=parts[2], check=True)
        else:
            paths[2].write_bytes(parts[2])
        return paths

    def test_each_line_is_trained_once_an_epoch_by_one_index(self):
        paths = self.write_lines()
        run = self.run_job(self.toml("lines.py", EPOCHS, *paths, records=RECORDS, workers=2,
                                     epochs=EPOCHS, batch=256))
        self.assert_done(run)
        self.assert_once(run, EPOCHS, RECORDS)
        counts = array.array("f")
        counts.frombytes(antdt.Checkpoint(run.dir).read("model/counts"))
        self.assertEqual(set(counts), {float(EPOCHS)})
        self.assertEqual(len(counts), RECORDS)
        made = [path.suffix for path in (self.dir / ".antdt-index").iterdir()]
        self.assertEqual(made, [".idx"])
        self.assert_nothing_left()

    def test_the_job_shows_how_far_a_program_is_that_opens_data_by_itself(self):
        go = self.dir / "go"
        process, run_dir = self.start_job(self.toml("opens_data.py", go, records=64, workers=2, batch=32))
        both = self.await_status(
            run_dir, lambda s: len(s["workers"]) == 2 and all(w.get("io") for w in s["workers"]), 60,
            "both workers say what they open")
        for worker in both["workers"]:
            self.assertRegex(worker["io"]["text"], r"^opening the data: \d+\.0 of 9000\.0 GB")
            self.assertEqual(worker["io"]["path"], "/data/by-itself")
        go.touch()
        self.assertEqual(self.finish(process, run_dir)["samples_trained"], 2 * 64)

    def test_outside_a_job_the_program_runs_as_it_is(self):
        done = self.run_alone(python_jobs.PROGRAMS / "lines.py", 1, *self.write_lines())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.split(), ["1.0", "1.0"])


if __name__ == "__main__":
    unittest.main()
