"""The job daemon and the private agent of a job on other hosts: which of them starts which
again."""

import fcntl
import os
import signal
import threading
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import await_true, needs_trainer, stat_of
from hosts import Hosts

ORPHANS = 30  # seconds; the job daemon is missed after half of it, its agent after a quarter


class Watchers(Hosts, tally.TallyTest):
    def start(self, orphans=ORPHANS, samples=500):
        """A job that trains under one agent: (process, run directory, status)."""
        self.all_keys = self.keys("keys")
        host = self.agent("hosta", self.all_keys)
        extra = (self.cluster([host], self.all_keys) +
                 f'[failure]\norphan_timeout = "{orphans}s"\n')
        job = self.write("job.toml", tally.job(workers=2, records=40000, epochs=1, delay="30ms",
                                               extra=extra))
        process, run_dir = self.start_job(job)
        return process, run_dir, self.await_training(run_dir, samples=samples)

    @staticmethod
    def holder(path):
        """The process that holds the lock of that file; 0: none."""
        try:
            with open(path, "rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    return 0
                except BlockingIOError:
                    return int(file.read().split()[0])
        except (OSError, IndexError, ValueError):
            return 0

    def stop_in_time(self, pid):
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(self.go_on, pid)

    @staticmethod
    def go_on(pid):
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass

    def end(self, process, run_dir):
        stopped = self.antdt("stop", run_dir, timeout=60)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, out + err + stopped.stdout + stopped.stderr)
        self.assert_nothing_left_of(run_dir)

    def assert_nothing_left_of(self, run_dir):
        await_true(lambda: not self.holder(run_dir / "jobd.lock"), 10, "the job daemon has ended")

    @staticmethod
    def workers(status):
        return {w["id"]: (w["attempt"], w["pid"]) for w in status["workers"]}

    def await_successor(self, run_dir, before, seconds):
        """The status of a later job daemon, under which the same workers train on."""
        try:
            found = self.await_status(
                run_dir, lambda s: s["incarnation"] > before["incarnation"] and
                s["state"] == "training" and s["samples_done"] > before["samples_done"], seconds,
                "a later job daemon trains on with the workers")
        except AssertionError as error:
            agents = "".join(path.read_text() for path in run_dir.glob("agent.log*"))
            raise AssertionError(f"{error}\n--- status\n{self.status(run_dir)}\n--- agent.log\n"
                                 f"{agents}{self.why('', '', run_dir)}") from error
        self.assertEqual(self.workers(found), self.workers(before), "workers are the same")
        return found

    @needs_trainer
    def test_a_job_daemon_that_is_stopped_is_replaced_before_its_workers_give_it_up(self):
        process, run_dir, status = self.start()
        self.stop_in_time(self.holder(run_dir / "jobd.lock"))
        status = self.await_successor(run_dir, status, ORPHANS)
        # The job daemon's shim also starts the agent again.
        lock = next(self.runtime.glob("antdt/*/state/lock"))
        agent = self.holder(lock)
        self.assertTrue(agent)
        self.stop_in_time(agent)
        await_true(lambda: self.holder(lock) not in (0, agent), ORPHANS, "another private agent")
        status = self.await_training(run_dir, samples=status["samples_done"] + 200)
        self.end(process, run_dir)

    @needs_trainer
    def test_a_job_daemon_that_dies_under_a_stopped_shim_is_replaced(self):
        process, run_dir, status = self.start(samples=1)  # it may not have sent a heartbeat yet
        job_daemon = self.holder(run_dir / "jobd.lock")
        self.stop_in_time(int(stat_of(job_daemon)[1]))  # its shim, so that nobody reports its end
        os.kill(job_daemon, signal.SIGKILL)
        self.await_successor(run_dir, status, 2 * ORPHANS)
        self.end(process, run_dir)

    @needs_trainer
    def test_workers_that_end_as_orphans_are_started_again(self):
        process, run_dir, status = self.start(orphans=2)
        before = self.workers(status)
        job_daemon = self.holder(run_dir / "jobd.lock")
        self.stop_in_time(job_daemon)
        await_true(lambda: not any(stat_of(pid) for _, pid in before.values()), 30,
                   "the host has ended its workers")
        self.go_on(job_daemon)
        found = self.await_status(
            run_dir, lambda s: s["state"] == "training" and all(
                attempt > before[id][0] for id, (attempt, _) in self.workers(s).items()) and
            s["samples_done"] >= 200, 40, "later attempts of the workers train on")
        self.assertEqual({f["class"] for f in found["failures"]}, {"orphaned"}, found["failures"])
        used = {cls: b for cls, b in found["budgets"].items() if b["left"] != b["limit"]}
        self.assertEqual(used, {}, "what costs a budget")
        self.end(process, run_dir)

    @needs_trainer
    def test_a_temporary_failure_of_a_restart_does_not_end_the_job(self):
        process, run_dir, status = self.start()
        # Its predecessor's lock is not free at once.
        gate = threading.Event()
        held = threading.Event()

        def hold():
            with open(run_dir / "jobd.lock", "r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)  # as soon as it dies
                held.set()
                gate.wait(30)

        thread = threading.Thread(target=hold)
        thread.start()
        log = run_dir / "agent.log"
        try:
            os.kill(self.holder(run_dir / "jobd.lock"), signal.SIGKILL)
            self.assertTrue(held.wait(20))
            self.await_words(process, log, "exit code 5", 2)
        finally:
            gate.set()
            thread.join(40)
        status = self.await_successor(run_dir, status, ORPHANS)
        # Its keys are also missing for a while.
        key = self.all_keys / "job.key"
        aside = self.all_keys / "job.key.aside"
        seen = log.read_text().count("exit code 5")
        key.rename(aside)
        os.kill(self.holder(run_dir / "jobd.lock"), signal.SIGKILL)
        self.await_words(process, log, "exit code 5", seen + 2)
        aside.rename(key)
        self.await_successor(run_dir, status, ORPHANS)
        self.end(process, run_dir)

    def await_words(self, process, log, words, times):
        def said():
            self.assertIsNone(process.poll(), "the job has ended")
            return log.exists() and log.read_text().count(words) >= times
        try:
            await_true(said, 20, f"{words}, {times} times")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{log.read_text()}") from error


if __name__ == "__main__":
    unittest.main()
