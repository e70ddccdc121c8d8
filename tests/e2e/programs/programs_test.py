"""Workers whose programs are not AntDT's."""

import json
import pathlib
import shutil
import subprocess
import unittest

import shared  # noqa: F401 (finds what follows)
from harness import BIN, SOURCE, EndToEnd

PLAIN = """
schema = 1
[job]
name = "plain"
[roles.worker]
count = 2
protocol = "{protocol}"
restart = "gang"
command = {command}
"""


DATA = """
[data]
format = "csv"
paths = ["data.csv"]
columns = [{ name = "y", kind = "label" }, { name = "x", kind = "numeric" }]
"""


def has_python_torch():
    return subprocess.run(["/usr/bin/python3", "-c", "import torch"],
                          capture_output=True).returncode == 0


class Programs(EndToEnd):
    def job(self, protocol, command):
        return self.write("job.toml", PLAIN.format(protocol=protocol, command=json.dumps(command)))

    def test_exec_runs_any_program_and_keeps_its_output(self):
        run = self.run_job(self.job("exec", ["/bin/sh", "-c", "echo I am $ANTDT_WORKER_ID"]))
        self.assert_done(run)
        for i in (0, 1):
            self.assertEqual((run.dir / "logs" / f"w{i}.1.out").read_text(), f"I am w{i}\n")
        self.assert_nothing_left()

    def test_the_records_of_a_program_without_the_ledger_are_unaccounted(self):
        self.write("data.csv", "1,2\n" * 100)
        job = self.write("job.toml", PLAIN.format(protocol="exec", command='["true"]') + DATA)
        run = self.run_job(job)
        self.assert_done(run)
        self.assertEqual(run.summary["samples_unaccounted"], 100)
        audit = self.antdt("data", "audit", run.dir, "--json")
        self.assertEqual(audit.returncode, 6, audit.stdout)
        self.assertEqual(json.loads(audit.stdout)["epochs"][0]["unaccounted"], 100)

    def test_a_program_that_fails_ends_the_job_with_its_own_words(self):
        run = self.run_job(self.job("exec", ["/bin/sh", "-c", "echo no such table >&2; exit 9"]))
        self.assertEqual(run.code, 1, run.explain())
        self.assertIn("exited with code 9", run.summary["exit"]["first_cause"])
        self.assertIn("no such table", run.out + run.err)
        self.assert_nothing_left()

    def test_a_program_that_does_not_speak_the_protocol_is_told_what_to_change(self):
        self.write("data.csv", "1,2\n" * 100)
        run = self.run_job(self.write("job.toml", PLAIN.format(
            protocol="antdt", command='["true"]').replace('restart = "gang"\n', "") + DATA +
            '[batch]\nglobal = 10\n[trainer]\nsync = "allreduce"\n'))
        self.assertEqual(run.code, 2, run.explain())
        cause = run.summary["exit"]["first_cause"]
        self.assertIn("without having joined the job", cause)
        self.assertIn('roles.worker.protocol to "torchrun" or "exec"', cause)
        self.assertNotIn("budget", cause)

    def test_torchrun_ends_with_1_whatever_the_script_ends_with(self):
        self.write("fail.sh", "exit 2\n")
        ended = self.antdt("torchrun", "--no-python", "sh", "fail.sh")
        self.assertEqual(ended.returncode, 1, ended.stdout + ended.stderr)
        self.assertIn("exited with code 2", ended.stdout + ended.stderr)

    def test_a_python_package_alone_finds_the_library_of_the_agent(self):
        package = self.dir / "package"
        shutil.copytree(SOURCE / "python" / "antdt", package / "antdt")
        job = PLAIN.format(protocol="exec", command=json.dumps(
            ["/usr/bin/python3", "-c", "from antdt import _abi; print(_abi.load()._name)"]))
        run = self.run_job(self.write("job.toml", job + f"env = {{ PYTHONPATH = '{package}' }}\n"))
        self.assert_done(run)
        self.assertEqual((run.dir / "logs" / "w0.1.out").read_text().strip(),
                         str((BIN.parent / "lib" / "libantdt.so.1").resolve()))
        mine = f"{package}/antdt/lib/libantdt.so.1"
        run = self.run_job(self.write("job.toml", job + f"env = {{ PYTHONPATH = '{package}', "
                                      f"ANTDT_LIBRARY = '{mine}' }}\n"))
        self.assertEqual(run.code, 1, "what the user chose is not there")
        self.assertIn(mine, run.out + run.err)

    def test_a_program_that_kills_itself_is_reported_with_the_signal(self):
        job = self.write("job.toml", PLAIN.format(
            protocol="exec", command=json.dumps(["/bin/sh", "-c", "kill -SEGV $$"])) +
            "[failure]\nbudgets = { signal = 0 }\n")
        run = self.run_job(job)
        self.assertEqual(run.code, 1, run.explain())
        self.assertIn("SIGSEGV", run.summary["exit"]["first_cause"])

    @unittest.skipUnless(has_python_torch(), "no python3-torch")
    def test_an_unmodified_ddp_script_trains_under_torchrun_protocol(self):
        script = next((SOURCE / "examples" / "torchrun").glob("*.py"))
        run = self.run_job(self.job("torchrun", ["/usr/bin/python3", str(script)]))
        self.assert_done(run)
        self.assertTrue(any(p.stat().st_size for p in pathlib.Path(run.dir / "logs").glob("*.out")),
                        run.explain())
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
