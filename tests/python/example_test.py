"""examples/python runs as it is, alone and in a job."""
import re
import shutil
import unittest

import python_jobs

EXAMPLE = python_jobs.SOURCE / "examples" / "python"
RECORDS, EPOCHS = 8000, 10


@python_jobs.needs_torch
class Example(python_jobs.PythonJobs):
    def assert_learnt(self, out):
        shares = [float(share) for share in re.findall(r"^epoch \d+: ([\d.]+) of", out, re.M)]
        self.assertEqual(len(shares), EPOCHS, out)
        self.assertGreater(shares[-1], 0.9, out)

    def test_it_learns_alone_and_with_four_workers(self):
        alone = self.run_alone(EXAMPLE / "train.py")
        self.assertEqual(alone.returncode, 0, alone.stderr)
        self.assert_learnt(alone.stdout)

        # The job.toml of the example, with the interpreter and the package of this build.
        shutil.copytree(EXAMPLE, self.dir / "example")
        path = self.dir / "example" / "job.toml"
        command = f'["/usr/bin/env", "ANTDT_LIBRARY={python_jobs.LIBRARY}", ' \
                  f'"{python_jobs.PYTHONS[0]}", "train.py"]'
        variables = ", ".join(f'{k} = "{v}"' for k, v in python_jobs.environment().items())
        text = path.read_text().replace('["python3", "train.py"]',
                                        f'{command}\nenv = {{ {variables} }}')
        path.write_text(text)
        run = self.run_job(path)
        self.assert_done(run)
        self.assert_once(run, EPOCHS, RECORDS)
        self.assert_learnt((run.dir / "logs" / "w0.1.out").read_text())
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
