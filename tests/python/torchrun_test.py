"""Unmodified scripts that hang, and `antdt torchrun`."""
import json
import os
import signal
import unittest

import python_jobs
from harness import await_true
from plain_jobs import SCRIPT, PlainJobs


@python_jobs.needs_torch
class Torchrun(PlainJobs):
    def test_a_rank_that_skips_a_collective_is_named_with_every_stack(self):
        job = self.script(PLAIN_STEPS="11", PLAIN_SKIP="10", PLAIN_PAUSE="0.001",
                          extra='[failure]\nhang_after = "6s"\nbudgets = { hang = 0 }\n')
        run = self.run_job(job, timeout=180)
        self.assertEqual(run.code, 1, run.explain())
        hang = run.summary["hang"]
        self.assertRegex(hang["text"], r"w2 never entered all_reduce float32\[1\] #\d+ \(called "
                                       r"from plain_ddp.py:\d+ in main\): it called")
        self.assertEqual(hang["culprits"], ["w2"])
        self.assertEqual([s["worker"] for s in hang["stacks"]], ["w0", "w1", "w2"])
        for stack in hang["stacks"]:
            self.assertRegex(stack["stack"], r"plain_ddp.py\", line \d+, in main")
        self.assertIn("w2 never entered", run.summary["exit"]["first_cause"])
        told = self.antdt("explain", run.dir).stdout
        self.assertIn("w2 never entered", told)
        self.assertIn("plain_ddp.py\", line", told)
        self.assert_nothing_left()

    def test_where_pytorch_finds_a_mismatch_the_rank_that_called_something_else_is_named(self):
        self.fails_by_a_mismatch(r"it called broadcast float32\[1\] at plain_ddp.py", PLAIN_OTHER="10",
                                 TORCH_DISTRIBUTED_DEBUG="DETAIL")

    @unittest.skipUnless(len(python_jobs.PYTHONS) > 1, "no PyTorch 2 (scripts/install-torch2)")
    def test_where_a_collective_times_out_the_rank_that_called_something_else_is_named(self):
        self.fails_by_a_mismatch(r"it called \w+", python_jobs.PYTHONS[1], PLAIN_SKIP="10", PLAIN_TIMEOUT="3")

    @unittest.skipUnless(len(python_jobs.PYTHONS) > 1, "no PyTorch 2 (scripts/install-torch2)")
    def test_where_gloo_aborts_a_rank_the_one_that_skipped_a_collective_is_named(self):
        script = python_jobs.SOURCE / "bench" / "tracing" / "programs" / "ddp.py"
        job = self.script(python_jobs.PYTHONS[1], program=(script, "--step-ms", 1, "--skip-rank", 1, "--skip-at", 13),
                          extra='[failure]\nhang_after = "10m"\nbudgets = { program = 0, signal = 0 }\n')
        run = self.run_job(job, timeout=180)
        self.assertEqual(run.code, 1, run.explain())
        self.assertRegex(run.summary["exit"]["first_cause"], r"(?s)^w1 never entered .*; w[02] .*SIGABRT",
                         "the culprit, before the rank that was aborted")
        hang = run.summary.get("hang")
        self.assertIsNotNone(hang, run.explain())
        self.assertRegex(hang["text"], r"^w1 never entered all_reduce float32\[1\] #\d+ \(called from ddp.py:\d+ in "
                                       r"main\): it called DDP backward at ddp.py:\d+ in main in its place")
        self.assertEqual(hang["culprits"], ["w1"])
        self.assertEqual([s["worker"] for s in hang["stacks"]], ["w0", "w1", "w2"])
        for stack in hang["stacks"]:
            self.assertRegex(stack["stack"], r"ddp.py\", line \d+, in main")
        self.assert_nothing_left()

    def fails_by_a_mismatch(self, what, python=None, **settings):
        """The job ends with an exception of PyTorch, long before anything counts as a hang."""
        job = self.script(python, PLAIN_STEPS="11", PLAIN_PAUSE="0.001", **settings,
                          extra='[failure]\nhang_after = "10m"\nbudgets = { program = 0, signal = 0 }\n')
        run = self.run_job(job, timeout=180)
        self.assertEqual(run.code, 1, run.explain())
        hang = run.summary.get("hang")
        self.assertIsNotNone(hang, run.explain())
        self.assertRegex(hang["text"], r"^w2 never entered all_reduce float32\[1\] #\d+ \(called from "
                                       r"plain_ddp.py:\d+ in main\): " + what)
        self.assertEqual(hang["culprits"], ["w2"])
        self.assertEqual([s["worker"] for s in hang["stacks"]], ["w0", "w1", "w2"])
        self.assertIn("RuntimeError", run.summary["exit"]["first_cause"])
        self.assert_nothing_left()

    def test_a_rank_that_does_not_answer_is_named(self):
        job = self.script(PLAIN_STEPS="100000",
                          extra='[failure]\nhang_after = "6s"\nbudgets = { hang = 0 }\n')
        process, run_dir = self.start_job(job)
        await_true(lambda: self.status(run_dir).get("step", 0) > 10, 120, "steps")
        pid = next(w["pid"] for w in self.status(run_dir)["workers"] if w["id"] == "w1")
        os.kill(pid, signal.SIGSTOP)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1, out + err)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertIn("w1 never entered", summary["exit"]["first_cause"])
        self.assertIn("does not answer", summary["exit"]["first_cause"])
        self.assert_nothing_left()

    def test_torchruns_command_line_needs_no_job_file(self):
        env = dict(self.env, PYTHON_EXEC=python_jobs.PYTHONS[-1], PLAIN_STEPS="5")
        self.env.update(env)
        done = self.antdt("torchrun", "--nproc_per_node=2", "--rdzv-backend", "c10d", "--standalone",
                          SCRIPT, "--some_flag", timeout=180)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("--rdzv-backend is not needed", done.stderr)
        self.assertIn("\nw1: rank 1 made 5 steps\n", done.stdout, "what the ranks write is shown")
        run_dir, = (self.dir / "runs").glob("plain_ddp-*")
        logs = "".join(p.read_text() for p in (run_dir / "logs").glob("*.out"))
        self.assertIn("rank 1 made 5 steps", logs)
        toml = (run_dir / "job.toml").read_text()
        self.assertIn("--some_flag", toml)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertEqual(summary["steps"], 5)
        self.assert_nothing_left()

    def test_what_ranks_write_is_shown_unless_it_is_only_redirected(self):
        program = self.write("say.sh", "#!/bin/sh\necho rank $RANK says $1; printf unfinished >&2\n")
        program.chmod(0o755)
        for flags, shown in (([], True), (["-r", "3"], False), (["-r", "3", "-t", "3"], True)):
            with self.subTest(flags):
                done = self.antdt("torchrun", "--nproc-per-node", "2", *flags, "--no-python", "--",
                                  program, "-t")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                for line in ("w0: rank 0 says -t", "w1: rank 1 says -t", "w0: unfinished"):
                    self.assertEqual(line in done.stdout.splitlines(), shown, done.stdout)
        self.assert_nothing_left()

    def test_a_rank_that_fails_after_some_steps_is_started_again_however_soon(self):
        self.env["PYTHON_EXEC"] = python_jobs.PYTHONS[-1]
        script = self.write("fails_once.py", """
import os, sys, time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(60):
    net(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    time.sleep(0.05)
    if step == 40 and dist.get_rank() == 1 and not os.path.exists("failed"):
        open("failed", "w").close()
        sys.exit("once")
dist.destroy_process_group()
""")
        done = self.antdt("torchrun", "--nproc-per-node=2", "--max-restarts=1", script, timeout=180)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        run_dir, = (self.dir / "runs").glob("fails_once-*")
        failures = json.loads((run_dir / "summary.json").read_text())["failures"]
        self.assertEqual([f["class"] for f in failures if f["worker"] == "w1"], ["program"])

    def test_the_job_file_that_it_makes_matches_the_flags(self):
        done = self.antdt("torchrun", "--hosts", "h1,10.0.0.2:7800", "--nnodes=2", "--nproc_per_node", "4",
                          "--max_restarts=3", "--dry-run", "-m", "pkg.train", "--nproc_per_node", "9")
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in ('hosts = ["h1:7700", "10.0.0.2:7800"]', "count = 8", 'restart = "gang"',
                     "hang = 3", 'name = "pkg.train"',
                     '"-u", "-m", "pkg.train", "--nproc_per_node", "9"]'):
            self.assertIn(line, done.stdout)

    def test_torchruns_flags_that_mean_nothing_here_are_explained(self):
        for flags, word in ((["--node-rank", "1"], "run this command"),
                            (["--nnodes", "2"], "--hosts"),
                            (["--nproc-per-node", "gpu"], "write how many"),
                            (["--nproc_per_nod", "2"], "is no flag"), ([], "which script?"),
                            (["--dry-run", "nowhere.py"], "there is no script nowhere.py in")):
            with self.subTest(flags):
                script = [SCRIPT] if flags else []
                done = self.antdt("torchrun", *flags, *script)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertIn(word, done.stderr)


if __name__ == "__main__":
    unittest.main()
