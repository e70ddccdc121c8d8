"""The job daemon has a connection to each host, so it raises its limit of open files. The user's program
keeps the limit with which antdt run was started."""

import pathlib
import resource
import subprocess
import unittest

import shared  # noqa: F401 (finds what follows)
from harness import ANTDT, EndToEnd, await_true

LOW = 300
JOB = """
schema = 1
[job]
name = "limited"
[roles.worker]
count = 1
protocol = "exec"
command = ["sh", "-c", "ulimit -n; while [ ! -e {go} ]; do sleep 0.05; done"]
"""


class OpenFiles(EndToEnd):
    def test_the_job_daemon_raises_its_limit_and_the_workers_keep_theirs(self):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        go, run_dir = self.dir / "go", self.dir / "run1"
        process = subprocess.Popen(
            [ANTDT, "run", str(self.write("job.toml", JOB.format(go=go))), "--run-dir", str(run_dir)],
            env=self.env, cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (LOW, most)))
        self.addCleanup(lambda: (process.poll() is None and process.kill(), process.communicate()))
        log = run_dir / "logs" / "w0.1.out"
        await_true(lambda: log.exists() and log.read_text().endswith("\n"), 60, "the worker runs")
        self.assertEqual(log.read_text(), f"{LOW}\n")
        daemon = (run_dir / "jobd.lock").read_text().split()[0]
        self.assertEqual(self.soft_limit(daemon), most)
        go.touch()
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, out + err)

    @staticmethod
    def soft_limit(pid):
        for line in pathlib.Path(f"/proc/{pid}/limits").read_text().splitlines():
            if line.startswith("Max open files"):
                return int(line.split()[3])
        raise AssertionError(f"process {pid} has no limit of open files")


if __name__ == "__main__":
    unittest.main()
