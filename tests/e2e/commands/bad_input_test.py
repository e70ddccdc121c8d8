"""Bad input causes a clear error, with the way to mend it, before anything starts."""

import json
import os
import pathlib
import subprocess
import unittest

import shared  # noqa: F401 (finds what follows)
import jobs
from harness import ANTDT, EndToEnd, needs_trainer

ROW = "1\t" + "\t".join(str(i) for i in range(13)) + "\t" + "\t".join(["68fd1e64"] * 26) + "\n"


class BadInput(EndToEnd):
    def setUp(self):
        super().setUp()
        self.data = self.write("data.tsv", ROW * 100)

    def refused(self, text, code, *mentions, args=()):
        run = self.run_job(self.write("job.toml", text), *args, timeout=60)
        self.assertEqual(run.code, code, run.explain())
        for mention in mentions:
            self.assertIn(mention, run.out + run.err)
        self.assert_nothing_left()
        return run

    def job(self, **options):
        return jobs.ctr(self.data, self.data, **options)

    def test_an_unknown_key_is_named_with_file_line_and_a_suggestion(self):
        self.refused(self.job(extra="[checkpoint]\nevry = \"10s\"\n"), 2, "job.toml:", "evry",
                     "every")

    def test_a_command_line_that_cannot_be_read_says_where_to_look(self):
        for arguments, said in (
                (["frobnicate"], "antdt: there is no command 'frobnicate' (see antdt --help)"),
                (["stauts", "x"], "antdt: there is no command 'stauts': did you mean 'status'?"),
                (["data", "adit"], "antdt data: there is no command 'adit': did you mean 'audit'?"),
                (["resize"], "antdt resize: RUN is required (see antdt resize --help)"),
                (["resize", "x", "0"], "antdt resize: N: '0' is no whole number of at least 1")):
            done = self.antdt(*arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)

    def test_a_wrong_type_is_named(self):
        self.refused(self.job().replace("epochs = 2", 'epochs = "two"'), 2, "job.toml:", "epochs")

    def test_a_missing_file_is_named(self):
        self.refused(self.job().replace("data.tsv", "nothing.tsv"), 2, "nothing.tsv")

    def test_delivery_other_than_exactly_once_is_refused_under_allreduce(self):
        text = self.job().replace('format = "criteo"', 'format = "criteo"\ndelivery = "at-least-once"')
        self.refused(text, 2, "delivery", "exactly-once")

    def test_steps_that_cannot_be_shared_are_refused_with_what_to_change(self):
        share = ("--set", "control.share_steps=true")
        for settings, said in (
                (("trainer.sync=ps-bsp", "roles.server.count=1"),
                 'is for sync = "allreduce": under "ps-bsp" no step waits in the same way; remove it'),
                (("batch.adjust=accumulation",), 'write adjust = "both", or remove it'),
                (("batch.adjust=size",), 'write adjust = "both", or remove it'),
                (("roles.worker.protocol=torchrun",), "is for antdt-trainer"),
                (('roles.worker.command=["python3", "own.py"]',), "is for antdt-trainer"),
                (('roles.worker.command=["/bin/true"]',), "is for antdt-trainer")):
            with self.subTest(settings=settings):
                more = [word for setting in settings for word in ("--set", setting)]
                self.refused(self.job(), 2, "control.share_steps", said, args=(*share, *more))

    def test_nccl_without_a_device_is_refused_or_says_what_to_do(self):
        self.refused(self.job(), 2, "trainer.collective", "remove one of the two",
                     args=("--set", "trainer.collective=nccl", "--set", "trainer.device=cpu"))
        self.refused(self.job(), 2, "computes on a processor", 'use "auto"',
                     args=("--set", "trainer.collective=nccl"))

    def test_a_malformed_row_is_named_with_file_and_line(self):
        self.data.write_text(ROW * 10 + "1\tgarbage\n" + ROW)
        self.refused(self.job(), 2, f"{self.data}:11", "quarantine")

    def test_more_quarantined_rows_than_allowed_are_an_error(self):
        self.data.write_text(ROW * 10 + "x\n" * 3 + ROW)
        text = self.job().replace(
            'format = "criteo"',
            'format = "criteo"\non_bad_record = { action = "quarantine", max = 2 }')
        self.refused(text, 2, f"{self.data}:11", "on_bad_record.max")

    @needs_trainer
    def test_quarantined_rows_are_kept_aside_and_the_rest_is_trained(self):
        self.data.write_text(ROW * 100 + "x\n" * 2 + ROW * 100)
        text = self.job().replace(
            'format = "criteo"',
            'format = "criteo"\non_bad_record = { action = "quarantine", max = 2 }')
        run = self.run_job(self.write("job.toml", text))
        self.assert_done(run)
        self.assert_once(run, 2, 200)
        # Two of the training file and two of the evaluation file, which is the same one.
        self.assertEqual(run.summary["rows_put_aside"], 4)
        self.assertIn("4 malformed rows of the data were put aside", run.out)
        audit = self.antdt("data", "audit", run.dir)
        self.assertIn("malformed rows of the data, which are no records: 4", audit.stdout)

    def test_more_workers_than_the_host_can_take(self):
        text = self.job().replace('command = ["antdt-trainer"]',
                                  'command = ["antdt-trainer"]\nresources = { cpus = 4096 }')
        self.refused(text, 3, "cpus")

    def test_a_worker_program_that_does_not_exist(self):
        self.refused(self.job().replace("antdt-trainer", "no-such-trainer"), 2, "no-such-trainer")

    def test_a_run_directory_that_is_in_use(self):
        (self.dir / "run1").mkdir()
        (self.dir / "run1" / "job.toml").write_text("someone's")
        run = self.refused(self.job(), 2, "run1")
        self.assertEqual(pathlib.Path(run.dir / "job.toml").read_text(), "someone's")

    def test_a_run_directory_that_may_not_be_looked_into_is_not_taken_for_a_typing_error(self):
        run_dir = self.dir / "run1"
        run_dir.mkdir()
        (run_dir / "job.json").write_text("{}")
        nobody, own = 65534, os.geteuid() != 0
        run_dir.chmod(0 if own else 0o700)
        self.dir.chmod(0o755)
        self.addCleanup(run_dir.chmod, 0o700)
        for command in ("status", "stop", "logs", "explain"):
            done = subprocess.run([ANTDT, command, run_dir], env=self.env, cwd="/", text=True,
                                  capture_output=True, timeout=60, user=None if own else nobody)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f"whether {run_dir} holds a run cannot be seen: Permission denied",
                          done.stderr)
            self.assertIn(f"{run_dir} belongs to you: chmod u+rx {run_dir}" if own else
                          f"{run_dir} belongs to root: run the command as root", done.stderr)
            self.assertNotIn("neither a run directory", done.stderr)

    def test_a_dry_run_checks_and_starts_nothing(self):
        result = self.antdt("run", self.write("job.toml", self.job()), "--dry-run")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("w0", result.stdout)
        self.assertEqual(list(self.dir.glob("runs/*")), [])

    def on_servers(self, program, *more):
        """A dry run of this job on two parameter servers, which are this program."""
        return self.antdt("run", self.write("job.toml", self.job()), "--dry-run",
                          "--set", 'roles.worker.command=["true"]', "--set", "trainer.sync=ps-bsp",
                          "--set", "roles.server.count=2",
                          "--set", f'roles.server.command=["{program}"]', *more)

    def test_a_dry_run_says_where_servers_go(self):
        result = self.on_servers("true")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("\n# s0 .. s1 on ", result.stdout)
        placement = json.loads(self.on_servers("true", "--json").stdout)["placement"]
        self.assertEqual([p.get("server") for p in placement][-3:], [None, "s0", "s1"])

    def test_a_server_program_that_does_not_exist(self):
        result = self.on_servers("no-such-server")
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertIn("roles.server.command: the program 'no-such-server'", result.stderr)

    def test_an_override_that_is_wrong_names_the_flag(self):
        self.refused(self.job(), 2, "--set", "batch.global", args=["--set", "batch.global=many"])


if __name__ == "__main__":
    unittest.main()
