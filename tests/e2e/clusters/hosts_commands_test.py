"""Commands on the launching host for a run whose files are on hosts that share nothing: logs,
resume, export, audit. See separate_hosts.py."""

import json
import os
import shutil
import subprocess
import unittest

import shared  # noqa: F401 (finds what follows)
import npy
import tally
from harness import ANTDT, await_true, needs_trainer
from separate_hosts import INSIDE, SeparateHosts, run_inside

RECORDS = 12000


@unittest.skipUnless(INSIDE in os.environ, "runs in namespaces of its own only")
class Logs(SeparateHosts):
    """Workers that print their identity, and wait until the test lets them end."""

    def job(self, hosts, script):
        return self.write("job.toml", f"""
schema = 1
[job]
name = "talk"
[roles.worker]
count = 2
protocol = "exec"
restart = "gang"
resources = {{ cpus = 1 }}
command = ["/bin/sh", "-c", '{script}']
[data]
format = "none"
[logs]
max = "1MiB"
{self.cluster(*hosts)}""")

    def spawn(self, *args):
        process = subprocess.Popen([ANTDT, *map(str, args)], env=self.env, cwd=self.dir, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def start(self, script):
        """The file `go` on the launching host lets the workers end, because all hosts see
        self.dir."""
        hosts = [self.add_host("hostb", cpus=1), self.add_host("hostc", cpus=1)]
        process, run_dir = self.launch(self.job(hosts, script))
        await_true(lambda: all(list(h.path(run_dir).glob("logs/w?.1.out")) for h in hosts), 60,
                   "a worker on each host")
        return process, run_dir, hosts

    def test_output_of_other_hosts_is_shown_while_it_comes_and_afterwards(self):
        go = self.dir / "go"
        process, run_dir, _ = self.start(
            f"echo hello; echo oh no >&2; while ! test -e {go}; do sleep 0.1; done; echo bye")
        follower = self.spawn("logs", run_dir, "-f", "--worker", "w1", "--out")
        self.assertEqual(follower.stdout.readline(), "hello\n")
        self.assertFalse((run_dir / "logs" / "w1.1.out").exists(), "it is elsewhere")
        go.touch()
        self.assertEqual(follower.communicate(timeout=60)[0], "bye\n")
        self.assertEqual(follower.returncode, 0)
        self.assertEqual(process.wait(60), 0)
        shown = self.antdt("logs", run_dir)
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertEqual(shown.stdout.splitlines(),
                         ["w0: hello", "w0: bye", "w0: oh no", "w1: hello", "w1: bye", "w1: oh no"])
        self.assertEqual(self.antdt("logs", run_dir, "--worker", "w1", "--out", "--lines",
                                    1).stdout, "bye\n")
        none = self.antdt("logs", run_dir, "--attempt", 7)
        self.assertEqual(none.returncode, 2)
        self.assertIn("there is that of w0.1, w1.1", none.stderr)

    def test_more_than_a_file_takes_is_shown_whole(self):
        # In two halves, each less than the shim keeps in memory, so that it drops none however busy
        # the machine is.
        half, last = 150000, 290000
        go = self.dir / "go"
        process, run_dir, hosts = self.start(
            f"seq 1 {half}; while ! test -e {go}; do sleep 0.1; done; seq {half + 1} {last}")

        def first_half_is_written():
            logs = [log for h in hosts for log in h.path(run_dir).glob("logs/w?.1.out")]
            return len(logs) == 2 and all(log.read_text().endswith(f"{half}\n") for log in logs)
        await_true(first_half_is_written, 60, "the first half")
        go.touch()
        self.assertEqual(process.wait(120), 0)
        numbers = [f"{n}\n" for n in range(1, last + 1)]
        self.assertTrue(list(hosts[0].path(run_dir).glob("logs/w?.1.out.1")), "it was rotated")
        shown = self.antdt("logs", run_dir, "--worker", "w1", "--out").stdout
        self.assertEqual(shown, "".join(numbers[-shown.count("\n"):]), "not in order, or not all")
        self.assertGreater(len(shown), 1 << 19, "what two files hold")
        self.assertEqual(self.antdt("logs", run_dir, "--worker", "w0", "--out", "--lines", 2).stdout,
                         "289999\n290000\n")

    def test_a_worker_that_writes_nothing_on_another_host_is_no_error(self):
        hosts = [self.add_host("hostb", cpus=1), self.add_host("hostc", cpus=1)]
        process, run_dir = self.launch(self.job(hosts, "test $ANTDT_WORKER_ID = w1 || echo hello"))
        self.assertEqual(process.wait(60), 0)
        shown = self.antdt("logs", run_dir)
        self.assertEqual((shown.returncode, shown.stdout, shown.stderr),
                         (0, "w0: hello\n", "nothing was written by w1.1 (WORKER.ATTEMPT)\n"))

    def test_a_host_that_cannot_be_reached_is_named_with_the_path(self):
        process, run_dir, hosts = self.start("echo hello")
        self.assertEqual(process.wait(60), 0)
        (lost,) = [h for h in hosts if list(h.path(run_dir).glob("logs/w1.*"))]
        lost.die()
        shown = self.antdt("logs", run_dir)
        self.assertEqual(shown.returncode, 3)
        self.assertEqual(shown.stdout, "w0: hello\n")
        self.assertIn(f"the output of w1 is on {lost.name}: {run_dir}/logs/w1.1.out", shown.stderr)
        self.assertIn(f"{run_dir}/logs on {lost.endpoint} cannot be read: no agent can be reached",
                      shown.stderr)
        self.assertIn("start antdtd there", shown.stderr)
        # The files of the other host are all known.
        self.assertEqual(self.antdt("logs", run_dir, "--worker", "w0").returncode, 0)


@needs_trainer
@unittest.skipUnless(INSIDE in os.environ, "runs in namespaces of its own only")
class Resume(SeparateHosts):
    def stopped(self):
        """A run that was stopped with checkpoints here and on both hosts."""
        hosts = [self.add_host("hostb"), self.add_host("hostc")]
        text = tally.job(workers=2, records=RECORDS, delay="10ms", extra=self.cluster(*hosts))
        text = text.replace('command = ["antdt-trainer"]',
                            'command = ["antdt-trainer"]\nresources = { cpus = 1 }')
        job = self.write("job.toml", text + '[checkpoint]\nevery = "1s"\ncopies = 3\n')
        process, run_dir = self.launch(job)
        self.await_training(run_dir, samples=3000)
        await_true(lambda: all(self.checkpoints_on(h, run_dir)[0] for h in hosts), 60, "copies")
        stopped = self.antdt("stop", run_dir)
        self.assertEqual(stopped.returncode, 0, stopped.stderr)
        process.communicate(timeout=60)
        return run_dir, hosts

    def resume(self, run_dir, *args):
        return self.antdt("run", "--resume", run_dir, *args)

    def assert_ended_exactly(self, resumed, run_dir):
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assert_exact(summary, run_dir, RECORDS, 2)
        done = self.antdt("model", "export", run_dir, "--out", self.dir / "model")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(set(npy.Model(self.dir / "model").parameters["tally"][1]), {2.0})
        self.assert_hosts_have_nothing_left(run_dir)

    def test_a_run_whose_own_checkpoints_are_gone_goes_on_from_those_of_other_hosts(self):
        run_dir, hosts = self.stopped()
        last = max(self.checkpoints_on(hosts[0], run_dir)[0])
        shutil.rmtree(run_dir / "checkpoints")
        resumed = self.resume(run_dir)
        self.assertIn(f"training goes on from {run_dir}/checkpoints/{last}", resumed.stdout)
        self.assertNotIn("training begins again", resumed.stdout)
        self.assert_ended_exactly(resumed, run_dir)

    def test_without_a_journal_the_checkpoint_of_another_host_is_enough(self):
        run_dir, _ = self.stopped()
        shutil.rmtree(run_dir / "checkpoints")
        (run_dir / "state.db").unlink()
        self.assert_ended_exactly(self.resume(run_dir, "--from-checkpoint"), run_dir)

    def test_a_damaged_newest_checkpoint_is_fetched_whole(self):
        run_dir, _ = self.stopped()
        newest = tally.newest(run_dir)
        content = bytearray((newest / "tally.f32").read_bytes())
        content[100] ^= 1
        (newest / "tally.f32").write_bytes(content)
        resumed = self.resume(run_dir)
        self.assertIn("tally.f32 does not have the checksum", resumed.stderr)
        self.assertRegex(resumed.stdout, f"{newest.name} is not whole here and is fetched from")
        self.assertIn(f"training goes on from {newest} ", resumed.stdout)
        self.assert_ended_exactly(resumed, run_dir)

    def test_nothing_begins_again_while_a_host_that_may_have_a_checkpoint_is_away(self):
        run_dir, (b, c) = self.stopped()
        shutil.rmtree(run_dir / "checkpoints")
        shutil.rmtree(b.path(run_dir / "checkpoints"))
        c.link("down")
        refused = self.resume(run_dir)
        self.assertEqual(refused.returncode, 3, refused.stdout + refused.stderr)
        self.assertIn(c.endpoint, refused.stderr)
        self.assertNotIn(b.endpoint, refused.stderr)
        self.assertIn("Bring these hosts back", refused.stderr)
        self.assertTrue((run_dir / "summary.json").exists(), "nothing was begun")
        c.link("up")
        self.assert_ended_exactly(self.resume(run_dir), run_dir)


class InNamespacesOfTheirOwn(unittest.TestCase):
    def test_logs(self):
        run_inside(self, __file__, "Logs")

    def test_resume(self):
        run_inside(self, __file__, "Resume")


if __name__ == "__main__":
    unittest.main()
