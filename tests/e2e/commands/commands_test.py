"""An operator's orders to a job: each command, on real programs that train."""

import collections
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import unittest

import shared  # noqa: F401 (finds what follows)
from harness import ANTDT, BIN, EndToEnd, await_true, needs_trainer, processes_of

RECORDS = 6000

TALLY = """
schema = 1
[job]
name = "tally"
epochs = 2
[roles.worker]
count = {workers}
command = ["antdt-trainer"]
resources = {{ cpus = 0 }}
[data]
format = "index"
records = {records}
[batch]
global = 60
[checkpoint]
every = "500ms"
keep = 10
[trainer]
model = "tally"
sync = "allreduce"
{extra}
"""

# Its worker does not hear that it is to end.
DEAF = """
schema = 1
[job]
name = "deaf"
[roles.worker]
count = 1
protocol = "exec"
command = ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.2; done"]
"""

# Its workers run until they are ended.
TWO = """
schema = 1
[job]
name = "two"
[roles.worker]
count = 2
protocol = "exec"
command = ["sh", "-c", "echo on; exec sleep 1000"]
"""

# Slow enough that what the test does falls into training.
SLOW = '[[inject]]\nworkers = ["*"]\ndelay_per_sample = "1ms"\n'


class Commands(EndToEnd):
    def job(self, workers=2, records=RECORDS, extra=SLOW):
        return self.write("job.toml", TALLY.format(workers=workers, records=records, extra=extra))

    def spawn(self, *args):
        """antdt in the background."""
        process = subprocess.Popen([ANTDT, *map(str, args)], env=self.env, cwd=self.dir,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.poll() is None and process.kill(),
                                 process.communicate()))
        return process

    def status(self, run):
        answer = self.antdt("status", run, "--json")
        return json.loads(answer.stdout) if answer.returncode == 0 else {}

    def start_training(self, **job):
        """A job that trains: (process, run directory)."""
        process, run_dir = self.start_job(self.job(**job))
        self.await_training(process, run_dir)
        return process, run_dir

    def await_training(self, process, run_dir, more_than=0):
        def trains():
            self.assertIsNone(process.poll(), "the job ended too early")
            return self.status(run_dir).get("samples_done", 0) > more_than
        await_true(trains, 60, "training")

    def await_checkpoint(self, run_dir):
        await_true(lambda: any((run_dir / "checkpoints").glob("s*/MANIFEST.json")), 60,
                   "a checkpoint")

    def end_of(self, process, code, timeout=120):
        out, err = process.communicate(timeout=timeout)
        self.assertEqual(process.returncode, code, out[-3000:] + err[-3000:])
        return out, err

    def events(self, run_dir):
        return [json.loads(line) for line in (run_dir / "events.jsonl").read_text().splitlines()]

    def asked(self, run_dir):
        """The operators' requests from the events; the journal must have the same text."""
        events = [e["text"] for e in self.events(run_dir) if e["kind"] == "operator"]
        actions = json.loads((run_dir / "summary.json").read_text())["actions"]
        self.assertEqual([f"{a['kind']}: {a['reason']}" for a in actions
                          if a["outcome"] == "asked"], events)
        return events

    def counts(self, run_dir):
        """{how often a record is in the model: how many records are}."""
        newest = max(run_dir.glob("checkpoints/s*"), key=self.age)
        found = (newest / "tally.f32").read_bytes()
        return dict(collections.Counter(struct.unpack(f"<{len(found) // 4}f", found)))

    def age(self, checkpoint):
        manifest = json.loads((checkpoint / "MANIFEST.json").read_text())
        return (manifest["lineage"], manifest["step"])

    def assert_trained_once(self, run_dir, epochs=2, records=RECORDS):
        """The model has each record once for each epoch, and the audit agrees."""
        self.assertEqual(self.counts(run_dir), {float(epochs): records})
        audit = self.antdt("data", "audit", run_dir, "--json")
        self.assertEqual(audit.returncode, 0, audit.stdout + audit.stderr)
        for epoch in json.loads(audit.stdout)["epochs"]:
            self.assertEqual(epoch["once"], records, epoch)


@needs_trainer
class Resume(Commands):
    def test_a_stopped_run_goes_on_and_a_done_one_cannot(self):
        process, run_dir = self.start_training()
        process.send_signal(signal.SIGINT)
        out, err = self.end_of(process, 75)
        self.assertIn(f"antdt run --resume {run_dir}", err)
        before = json.loads((run_dir / "summary.json").read_text())
        self.assertTrue(before["exit"]["resumable"])
        self.assertRegex(self.asked(run_dir)[0],
                         r"stop: interrupted \(SIGINT\), asked by \S+@\S+$")

        resumed = self.antdt("run", "--resume", run_dir)
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)
        self.assert_trained_once(run_dir)
        self.assertEqual(json.loads((run_dir / "summary.1.json").read_text()), before)
        self.assertFalse((run_dir / "resume.request").exists())

        again = self.antdt("run", "--resume", run_dir)
        self.assertEqual(again.returncode, 2)
        self.assertIn("is done", again.stderr)
        self.assert_nothing_left()

    def test_a_run_goes_on_with_more_patience_and_without_another_batch(self):
        process, run_dir = self.start_training()
        process.send_signal(signal.SIGINT)
        self.end_of(process, 75)
        before = (run_dir / "job.json").read_text()
        refused = self.antdt("run", "--resume", run_dir, "--set", "batch.global=30")
        self.assertEqual(refused.returncode, 2, refused.stdout)
        self.assertIn("batch.global", refused.stderr)
        self.assertIn("plan in the journal", refused.stderr)
        self.assertEqual((run_dir / "job.json").read_text(), before)

        resumed = self.antdt("run", "--resume", run_dir, "--set", "failure.hang_after=77s",
                             "--set", "checkpoint.keep=3")
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)
        self.assert_trained_once(run_dir)
        self.assertEqual((run_dir / "job.1.json").read_text(), before)
        config = json.loads((run_dir / "job.json").read_text())
        self.assertEqual(config["failure"]["hang_after_ms"], 77000)
        self.assertIn('keep = 3', (run_dir / "effective.toml").read_text())
        self.assertLessEqual(len(list(run_dir.glob("checkpoints/s*"))), 3, "the job goes by it")
        self.assertRegex(self.asked(run_dir)[-1],
                         r'resume: asked by \S+@\S+; changed checkpoint.keep from 10 to 3, '
                         r'failure.hang_after from "2m" to "77s"$')
        self.assert_nothing_left()

    def test_a_run_whose_processes_were_all_killed_goes_on_from_its_last_checkpoint(self):
        process, run_dir = self.start_training()
        self.await_checkpoint(run_dir)
        running = self.antdt("run", "--resume", run_dir)
        self.assertEqual(running.returncode, 2)
        self.assertIn("still runs", running.stderr)

        self.kill_all()
        process.communicate(timeout=30)
        attached = self.antdt("attach", run_dir)
        self.assertEqual(attached.returncode, 3)
        self.assertIn("run --resume", attached.stderr)
        resumed = self.antdt("run", "--resume", run_dir)
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)
        self.assert_trained_once(run_dir)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertEqual(summary["lineages"], 2)
        self.assert_nothing_left()

    def test_other_data_and_a_damaged_journal_are_refused_before_anything_starts(self):
        process, run_dir = self.start_training()
        process.send_signal(signal.SIGINT)
        self.end_of(process, 75)
        summary = (run_dir / "summary.json").read_text()

        found = json.loads((run_dir / "data.json").read_text())
        (run_dir / "data.json").write_text(json.dumps(dict(found, fingerprint="other")))
        other = self.antdt("run", "--resume", run_dir)
        self.assertEqual(other.returncode, 2, other.stdout)
        self.assertIn("the data is not what the run", other.stderr)
        (run_dir / "data.json").write_text(json.dumps(found))

        journal = run_dir / "state.db"
        for file in run_dir.glob("state.db-*"):
            file.unlink()
        journal.write_bytes(b"\0" * 8192 + journal.read_bytes()[8192:])
        damaged = self.antdt("run", "--resume", run_dir)
        self.assertNotEqual(damaged.returncode, 0)
        self.assertIn("journal cannot be read", damaged.stderr)
        self.assertEqual((run_dir / "summary.json").read_text(), summary)
        self.assertFalse((run_dir / "resume.request").exists())
        self.assert_nothing_left()


@needs_trainer
class Attach(Commands):
    def test_a_job_whose_launcher_was_killed_is_watched_to_its_end(self):
        process, run_dir = self.start_training()
        process.kill()
        process.communicate(timeout=30)
        watched = self.antdt("attach", cwd=self.dir / "tmp")  # the newest running one
        self.assertEqual(watched.returncode, 0, watched.stdout + watched.stderr)
        self.assertIn(": done in", watched.stdout)
        self.assert_trained_once(run_dir)
        ended = self.antdt("attach", run_dir)
        self.assertEqual(ended.returncode, 0, "an ended run shows its end")
        self.assertIn(": done in", ended.stdout)
        self.assert_nothing_left()

    def test_an_interrupt_ends_the_watching_only(self):
        process, run_dir = self.start_training()
        watcher = self.spawn("attach", run_dir)
        await_true(lambda: "Ctrl-C" in watcher.stdout.readline(), 30, "the watcher says how")
        watcher.send_signal(signal.SIGINT)
        out, err = watcher.communicate(timeout=30)
        self.assertEqual(watcher.returncode, 128 + signal.SIGINT, out + err)
        self.assertIn("the job goes on", out)
        self.end_of(process, 0)
        self.assert_trained_once(run_dir)
        self.assert_nothing_left()


@needs_trainer
class Operators(Commands):
    def test_a_worker_is_evicted_and_the_others_train_all_records_once(self):
        process, run_dir = self.start_training(workers=3)
        pids = {w["id"]: w["pid"] for w in self.status(run_dir)["workers"]}
        done = self.antdt("evict", run_dir, "w1", "--reason", "its fan is loud")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("w1 has left", done.stdout)
        now = {w["id"]: w for w in self.status(run_dir)["workers"] if w["state"] == "joined"}
        self.assertEqual(set(now), {"w0", "w2"})
        self.assertEqual({i: w["pid"] for i, w in now.items()}, {i: pids[i] for i in now})

        nobody = self.antdt("evict", run_dir, "w9")
        self.assertNotEqual(nobody.returncode, 0)
        self.assertIn("'w9' is neither a worker nor a host", nobody.stderr)
        self.end_of(process, 0)
        self.assert_trained_once(run_dir)
        asked = self.asked(run_dir)
        self.assertEqual(len(asked), 1)
        self.assertRegex(asked[0], r"evict: w1, asked by \S+@\S+: its fan is loud")
        actions = json.loads((run_dir / "summary.json").read_text())["actions"]
        self.assertIn("evict", [a["kind"] for a in actions])
        self.assert_nothing_left()

    def test_a_job_gets_fewer_and_more_workers_while_it_trains(self):
        process, run_dir = self.start_training(workers=3, records=2 * RECORDS)
        for count in (2, 4):
            done = self.antdt("resize", run_dir, count)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn(f"{count} workers train", done.stdout)
            workers = [w for w in self.status(run_dir)["workers"] if w["rank"] is not None]
            self.assertEqual(len(workers), count)
        self.assertNotEqual(self.antdt("resize", run_dir, 0).returncode, 0)
        self.end_of(process, 0)
        self.assert_trained_once(run_dir, records=2 * RECORDS)
        self.assert_nothing_left()

    def test_orders_wait_for_a_job_daemon_that_stands_still(self):
        process, run_dir = self.start_training(workers=3)
        for command, done in [(("evict", run_dir, "w1"), "w1 has left"),
                              (("stop", run_dir), "stopped: ")]:
            jobd = int((run_dir / "jobd.lock").read_text())
            os.kill(jobd, signal.SIGSTOP)
            try:
                order = subprocess.Popen([ANTDT, *map(str, command)], env=self.env,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                said = order.stderr.readline()
            finally:
                os.kill(jobd, signal.SIGCONT)
            out, err = order.communicate(timeout=60)
            self.assertIn("waiting for the job daemon", said)
            self.assertEqual(order.returncode, 0, said + err)
            self.assertIn(done, out)
        self.end_of(process, 75)
        self.assert_nothing_left()

    def test_a_job_is_stopped_with_a_reason_and_says_how_to_go_on(self):
        process, run_dir = self.start_training()
        done = self.antdt("stop", run_dir, "--reason", "the machine is needed")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("stopped: ", done.stdout)
        self.assertIn(f"antdt run --resume {run_dir}", done.stdout)
        _, err = self.end_of(process, 75)
        self.assertRegex(err.splitlines()[-1],
                         r"first cause: antdt stop, asked by \S+@\S+: the machine is needed")
        self.assertRegex(self.asked(run_dir)[0],
                         r"stop: antdt stop, asked by \S+@\S+: the machine is needed")
        for command in (["stop"], ["evict"], ["resize"]):
            args = {"evict": ["w0"], "resize": [1]}.get(command[0], [])
            late = self.antdt(*command, run_dir, *args)
            self.assertEqual(late.returncode, 2, late.stdout)
            self.assertIn("has ended: antdt status", late.stderr)
        self.assert_nothing_left()


class BrokenOff(Commands):
    def test_a_job_whose_processes_are_killed_while_it_is_stopped_is_told_as_broken_off(self):
        job = self.write("job.toml", DEAF)
        process, run_dir = self.start_job(job)
        await_true(lambda: (run_dir / "logs" / "w0.1.out").exists(), 60, "the worker runs")
        stop = self.spawn("stop", run_dir, "--grace", "10m")
        await_true(lambda: self.status(run_dir).get("state") == "stopping", 60, "it is being stopped")

        def all_others_killed():
            others = [pid for pid, _ in processes_of(str(self.dir)) if pid != stop.pid]
            for pid in others:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            return not others
        await_true(all_others_killed, 30, "everything else is killed")
        process.communicate(timeout=60)
        out, err = stop.communicate(timeout=60)
        self.assertEqual(stop.returncode, 3, out + err)
        self.assertIn(f"the run in {run_dir} was broken off", err)
        self.assertIn(f"antdt run --resume {run_dir}", err)
        explained = self.antdt("explain", run_dir)
        self.assertIn(f"There is no complete checkpoint in {run_dir}/checkpoints", explained.stdout)

    def test_a_run_that_another_machine_started_is_neither_taken_for_broken_off_nor_started_twice(self):
        process, run_dir = self.start_job(self.write("job.toml", TWO))
        await_true(lambda: (run_dir / "logs" / "w1.1.out").exists(), 60, "the workers run")
        path = run_dir / "control.json"
        control = json.loads(path.read_text())
        self.assertEqual(control["host"], socket.gethostname())
        path.write_text(json.dumps(dict(control, host="login2", boot="of another machine")))
        for command in ("status", "attach", "explain", "stop"):
            told = self.antdt(command, run_dir)
            self.assertEqual(told.returncode, 3, told.stdout + told.stderr)
            self.assertIn(f"the run in {run_dir} was started on login2", told.stderr)
            self.assertIn(f"antdt status {control['job']} --agent", told.stderr)
        self.assertIn("ask on login2", self.antdt("jobs").stdout)
        skip = self.antdt("data", "skip", run_dir, "5:6", "--epoch", "1", "--reason", "x")
        self.assertEqual(skip.returncode, 3, skip.stdout + skip.stderr)
        self.assertFalse((run_dir / "skips.json").exists())
        lost = ["--lost-host", "login2"]
        running = self.antdt("run", "--resume", run_dir, *lost)
        self.assertEqual(running.returncode, 3, running.stdout + running.stderr)
        self.assertIn("still runs on login2", running.stderr)
        self.kill_all()
        process.communicate(timeout=60)
        for said in ([], ["--lost-host", "login3"]):
            refused = self.antdt("run", "--resume", run_dir, *said)
            self.assertEqual(refused.returncode, 3, refused.stdout + refused.stderr)
            self.assertIn(f"antdt run --resume {run_dir} --lost-host login2", refused.stderr)
        resumed = self.antdt("run", "--resume", run_dir, *lost, "--detach")
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)
        self.assertEqual(self.antdt("status", run_dir).returncode, 0)
        stopped = self.antdt("stop", run_dir)
        self.assertEqual(stopped.returncode, 0, stopped.stdout + stopped.stderr)
        self.assert_nothing_left()

    def test_every_command_says_why_the_agent_gave_a_job_up(self):
        programs = self.dir / "bin"  # with a job daemon that can be removed
        programs.mkdir()
        for program in BIN.iterdir():
            if program.name != "antdt":
                (programs / program.name).symlink_to(program)
        shutil.copy(BIN / "antdt", programs / "antdt")
        run_dir = self.dir / "run"
        process = subprocess.Popen(
            [str(programs / "antdt"), "run", str(self.write("job.toml", TWO)), "--run-dir", str(run_dir)],
            env=self.env, cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.poll() is None and process.kill(), process.communicate()))
        for worker in ("w0", "w1"):
            await_true(lambda: (run_dir / "logs" / f"{worker}.1.out").exists(), 60, f"{worker} runs")
        (programs / "antdt-jobd").unlink()
        os.kill(int((run_dir / "jobd.lock").read_text()), signal.SIGKILL)
        why = f"cannot be started: cannot execute {programs}/antdt-jobd: No such file or directory"
        _, err = self.end_of(process, 3)
        self.assertIn(why, err)
        for command, code in (("status", 3), ("attach", 3), ("explain", 0)):
            told = self.antdt(command, run_dir)
            self.assertEqual(told.returncode, code, told.stdout + told.stderr)
            self.assertIn(why, told.stdout + told.stderr)
            self.assertIn(f"antdt run --resume {run_dir}", told.stdout + told.stderr)
        self.assert_nothing_left()


@needs_trainer
class Skipping(Commands):
    def skipped(self, run_dir):
        """The number of skipped records of each epoch according to the audit."""
        audit = self.antdt("data", "audit", run_dir, "--json")
        self.assertEqual(audit.returncode, 0, audit.stdout + audit.stderr)
        return [epoch["skipped"] for epoch in json.loads(audit.stdout)["epochs"]]

    def test_a_running_job_goes_on_without_records_that_are_not_trained_yet(self):
        process, run_dir = self.start_training(records=4 * RECORDS)
        last = 4 * RECORDS
        done = self.antdt("data", "skip", run_dir, f"{last - 30}:{last}", "--reason", "unreadable")
        self.assertEqual(done.returncode, 0, done.stderr)
        wrong = self.antdt("data", "skip", run_dir, f"5:{last + 1}", "--reason", "too many")
        self.assertNotEqual(wrong.returncode, 0)
        self.assertIn("not in the stream", wrong.stderr)
        # Epochs are numbered as the status shows them.
        shown = self.antdt("status", run_dir).stdout
        self.assertIn("epoch 1/2", shown)
        for epoch, why in ((2, "the job is in epoch 1"), (3, "the job has no epoch 3")):
            other = self.antdt("data", "skip", run_dir, "5:6", "--epoch", epoch, "--reason", "x")
            self.assertEqual(other.returncode, 2, other.stdout)
            self.assertIn(why, other.stderr)
        self.end_of(process, 0)
        self.assertEqual(self.skipped(run_dir), [30, 0])
        self.assertEqual(self.counts(run_dir), {1.0: 30, 2.0: last - 30})
        self.assert_nothing_left()

    def test_an_ended_run_skips_when_it_is_resumed_also_in_a_later_epoch(self):
        process, run_dir = self.start_training()
        self.antdt("stop", run_dir)
        self.end_of(process, 75)
        for epoch in (0, 3):
            none = self.antdt("data", "skip", run_dir, "10:20", "--epoch", epoch, "--reason", "x")
            self.assertEqual(none.returncode, 2, none.stdout)
            self.assertIn(f"the job has no epoch {epoch}: it has 2", none.stderr)
        for args in (["100:110", "--epoch", 2], [f"{RECORDS - 10}:{RECORDS}"]):
            done = self.antdt("data", "skip", run_dir, *args, "--reason", "unreadable")
            self.assertEqual(done.returncode, 0, done.stderr)
        resumed = self.antdt("run", "--resume", run_dir)
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)
        self.assertEqual(self.skipped(run_dir)[0], 10)
        self.assertEqual(self.skipped(run_dir)[1], 10)
        kept = json.loads((run_dir / "skips.json").read_text())
        self.assertEqual([s["lineage"] for s in kept], [2, 2])
        counts = self.counts(run_dir)
        self.assertEqual(counts.get(0.0, 0) * 2 + counts.get(1.0, 0), 20, counts)
        self.assert_nothing_left()


class Logs(Commands):
    JOB = """
schema = 1
[job]
name = "talk"
[roles.worker]
count = 2
protocol = "exec"
restart = "gang"
resources = {{ cpus = 0 }}
command = ["/bin/sh", "-c", '{script}']
[data]
format = "none"
"""

    def start_talking(self, script):
        job = self.write("job.toml", self.JOB.format(script=script))
        process, run_dir = self.start_job(job)
        await_true(lambda: len(list(run_dir.glob("logs/w?.1.out"))) == 2, 60, "both run")
        return process, run_dir

    def test_lines_of_all_workers_or_one_are_shown_also_while_they_come(self):
        go = self.dir / "go"
        process, run_dir = self.start_talking(
            f"echo hello; echo oh no >&2; while ! test -e {go}; do sleep 0.1; done; echo bye")
        follower = self.spawn("logs", run_dir, "-f", "--worker", "w1", "--out")
        self.assertEqual(follower.stdout.readline(), "hello\n")
        go.touch()
        self.assertEqual(follower.communicate(timeout=60)[0], "bye\n")
        self.end_of(process, 0)
        self.assertEqual(follower.returncode, 0)
        self.assertEqual(self.antdt("logs", run_dir).stdout.splitlines(),
                         ["w0: hello", "w0: bye", "w0: oh no", "w1: hello", "w1: bye", "w1: oh no"])
        self.assertEqual(self.antdt("logs", run_dir, "--worker", "w0", "--err").stdout, "oh no\n")
        self.assertEqual(self.antdt("logs", run_dir, "--worker", "w0", "--out", "--lines",
                                    1).stdout, "bye\n")
        none = self.antdt("logs", run_dir, "--attempt", 7)
        self.assertEqual(none.returncode, 2)
        self.assertIn("there is that of w0.1, w1.1", none.stderr)
        nobody = self.antdt("logs", run_dir, "--worker", "w77")
        self.assertEqual(nobody.returncode, 2)
        self.assertIn("no worker or server w77; it has w0, w1", nobody.stderr)
        self.assert_nothing_left()

    def test_a_worker_that_writes_nothing_is_no_error(self):
        script = "test $ANTDT_WORKER_ID = w1 || echo hello"
        run = self.run_job(self.write("job.toml", self.JOB.format(script=script)))
        self.assert_done(run)
        shown = self.antdt("logs", run.dir)
        self.assertEqual((shown.returncode, shown.stdout, shown.stderr),
                         (0, "w0: hello\n", "nothing was written by w1.1 (WORKER.ATTEMPT)\n"))
        silent = self.antdt("logs", run.dir, "--worker", "w1")
        self.assertEqual((silent.returncode, silent.stdout), (0, ""))
        self.assertEqual(self.antdt("logs", run.dir, "--worker", "w0").stdout, "hello\n")

    def test_output_that_cannot_be_written_is_an_error(self):
        run = self.run_job(self.write("job.toml", self.JOB.format(script="true")))
        self.assert_done(run)
        for command in (["status", run.dir], ["explain", run.dir], ["run", "job.toml", "--json"],
                        ["--help"]):
            with open("/dev/full", "w") as full:
                ended = subprocess.run([ANTDT, *map(str, command)], env=self.env, cwd=self.dir,
                                       stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
            self.assertEqual(ended.returncode, 1, (command, ended.stderr))
            self.assertIn("not all output could be written", ended.stderr)
        # A reader that has seen enough is none.
        seen = subprocess.run(["/bin/sh", "-c", f"{ANTDT} status {run.dir}; echo $? >&2"],
                              env=self.env, stdout=self.closed_pipe(), stderr=subprocess.PIPE, text=True)
        self.assertEqual(seen.stderr, "0\n")

    def closed_pipe(self):
        reading, writing = os.pipe()
        os.close(reading)
        self.addCleanup(os.close, writing)
        return writing


@needs_trainer
class Looking(Commands):
    def test_status_shows_failures_and_the_last_event_of_each_worker(self):
        process, run_dir = self.start_training()
        worker = self.status(run_dir)["workers"][1]
        os.kill(worker["pid"], signal.SIGKILL)
        await_true(lambda: self.failed_and_back(run_dir), 60, "w1 is back")
        status = self.status(run_dir)
        failure = status["failures"][0]
        self.assertEqual((failure["worker"], failure["class"], failure["first"]),
                         ("w1", "signal", True))
        self.assertIn("w1", status["workers"][1]["last_event"]["text"])
        why = self.antdt("explain", run_dir)
        self.assertEqual(why.returncode, 0, why.stderr)
        self.assertIn("The job trains epoch", why.stdout)
        self.assertIn("w1 on", why.stdout)
        self.assertIn("failed (class signal)", why.stdout)
        self.assertRegex(why.stdout, "Failures that the job still tolerates: .*signal 9[,;]")
        worker = json.loads(self.antdt("explain", run_dir, "w1", "--json").stdout)
        self.assertIn("attempt 2", worker["why"][0])
        self.assertEqual(self.antdt("explain", run_dir, "w9").returncode, 2)
        table = self.antdt("status", cwd=self.temporary).stdout  # the newest running
        self.assertIn("failures: 1", table)
        self.assertIn("last event", table)
        self.end_of(process, 0)
        self.assertIn("failures: 1", self.antdt("status", run_dir).stdout)
        self.assertIn("The job is done.", self.antdt("explain", run_dir).stdout)
        self.assert_trained_once(run_dir)

    def failed_and_back(self, run_dir):
        status = self.status(run_dir)
        return status.get("failures") and all(w["rank"] is not None for w in status["workers"])

    def test_watching_a_status_ends_with_the_run(self):
        process, run_dir = self.start_training(records=RECORDS // 4)
        watched = self.antdt("status", run_dir, "--watch", "--json")
        self.assertEqual(watched.returncode, 0, watched.stderr)
        first = json.loads(watched.stdout.splitlines()[0])
        self.assertEqual(first["state"], "training")
        self.assertIn('"state": "done"', watched.stdout)
        self.end_of(process, 0)

    def test_jobs_are_listed_and_named_by_the_beginning_of_their_ids(self):
        job = self.job(records=RECORDS)
        home = self.dir / "home"
        home.mkdir()
        self.assertIn("no runs", self.antdt("status", cwd=home).stdout)
        started = self.antdt("run", job, "--detach", "--json", cwd=home)
        self.assertEqual(started.returncode, 0, started.stderr)
        job_id = json.loads(started.stdout)["job"]
        listed = json.loads(self.antdt("jobs", "--json", cwd=self.temporary).stdout)
        self.assertEqual([(j["job"], j["running"]) for j in listed], [(job_id, True)])
        self.assertIn(job_id, self.antdt("jobs", cwd=home).stdout)

        unknown = self.antdt("status", "nothing", cwd=home)
        self.assertEqual(unknown.returncode, 2)
        self.assertIn(job_id, unknown.stderr, "what there is")
        self.assertEqual(self.antdt("stop", job_id[:9], cwd=home).returncode, 0)
        listed = json.loads(self.antdt("jobs", "--json", cwd=home).stdout)
        self.assertEqual([(j["job"], j["state"]) for j in listed], [(job_id, "stopped")])
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
