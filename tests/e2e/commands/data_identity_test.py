"""A host with other files than those that the run began with trains nothing."""

import json
import os
import subprocess
import unittest

import shared  # noqa: F401 (finds what follows)
import jobs
from harness import await_true, needs_trainer
from hosts import Hosts

ROWS = 2000


def may_mount():
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"],
                                                capture_output=True).returncode == 0


@needs_trainer
@unittest.skipUnless(may_mount(), "only root gives a host files of its own (mount namespaces)")
class OtherData(Hosts):
    def setUp(self):
        super().setUp()
        self.train, self.eval = self.made("data", ROWS)
        self.directory_keys = self.keys("keys")

    def made(self, name, rows):
        done = self.antdt("data", "synth", "criteo", "--rows", rows, "--seed", 5, "--out",
                          self.dir / name)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.dir / name / "train.tsv", self.dir / name / "eval.tsv"

    def with_a_row_changed(self, path):
        """A copy of the file with one row changed, of the same size and time."""
        other = path.with_name("other-" + path.name)
        text = path.read_text().splitlines(keepends=True)
        text[-7] = ("1" if text[-7][0] == "0" else "0") + text[-7][1:]
        other.write_text("".join(text))
        os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
        return other

    def job(self, hosts, sync="allreduce", epochs=1):
        servers = '[roles.server]\ncount = 1\n' if sync != "allreduce" else ""
        text = jobs.ctr(self.train, self.eval, model="lr", epochs=epochs,
                        extra=servers + self.cluster(hosts, self.directory_keys))
        return self.write("job.toml", text.replace('"allreduce"', f'"{sync}"'))

    def assert_refused(self, run_dir, code, err, path, *values):
        """Nothing was trained, and the first cause names host, file and both values."""
        self.assertEqual(code, 2, err)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertEqual(summary["samples_trained"], 0)
        cause = summary["exit"]["first_cause"]
        for part in (str(path), *values, "antdt run --resume"):
            self.assertIn(part, cause)
        self.assertIn(str(path), err)

    def test_one_hosts_file_differs_around_servers(self):
        other = self.with_a_row_changed(self.train)
        hosts = [self.agent("hosta", self.directory_keys),
                 self.agent("hostb", self.directory_keys, instead={self.train: other})]
        run = self.run_job(self.job(hosts, sync="ps-bsp"), timeout=60)
        self.assert_refused(run.dir, run.code, run.out + run.err, self.train, "on hostb",
                            f"{ROWS} records")

    def test_all_workers_have_more_rows_than_the_launcher(self):
        more, _ = self.made("more", 2 * ROWS)
        hosts = [self.agent(name, self.directory_keys, instead={self.train: more})
                 for name in ("hosta", "hostb")]
        run = self.run_job(self.job(hosts), timeout=60)
        self.assert_refused(run.dir, run.code, run.out + run.err, self.train, "on host",
                            f"{ROWS} records", f"{2 * ROWS} records")

    def test_after_a_resume_only_an_evaluation_file_differs(self):
        other = self.with_a_row_changed(self.eval)
        host = self.agent("hosta", self.directory_keys, instead={self.eval: self.eval})
        process, run_dir = self.start_job(self.slow(self.job([host], epochs=50)))
        await_true(lambda: list((run_dir / "checkpoints").glob("s*-*")), 60, "a checkpoint")
        self.assertEqual(self.antdt("stop", run_dir).returncode, 0)
        process.communicate(timeout=60)
        before = json.loads((run_dir / "summary.json").read_text())["samples_trained"]
        subprocess.run(["nsenter", f"--mount=/proc/{self.agent_pids['hosta']}/ns/mnt", "mount",
                        "--bind", str(other), str(self.eval)], check=True)

        resumed = self.antdt("run", "--resume", run_dir, timeout=60)
        self.assertEqual(resumed.returncode, 2, resumed.stdout + resumed.stderr)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertEqual(summary["state"], "failed")
        self.assertLessEqual(summary["samples_trained"], before)
        for part in ("on hosta", str(self.eval), "xxh3"):
            self.assertIn(part, summary["exit"]["first_cause"])

    def slow(self, path):
        """A job with checkpoints that is slow enough to be training when the test acts."""
        text = path.read_text() + """
[checkpoint]
every = "300ms"
[[inject]]
workers = ["*"]
delay = "50ms"
"""
        return self.write(path.name, text)


if __name__ == "__main__":
    unittest.main()
