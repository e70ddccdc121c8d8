"""A job whose journal is in a real etcd of three members."""

import json
import os
import time
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from etcd import Certificates, Etcd, keys_of, needs_etcd
from harness import await_true, is_built_in, needs_trainer, processes_of
from kills import DELAY, Kills

RECORDS, EPOCHS = 40000, 2


@needs_etcd
@needs_trainer
class JournalInEtcd(tally.TallyTest):
    def cluster_of(self, **more):
        etcd = Etcd(self.dir / "etcd", **more)
        self.addCleanup(etcd.stop)
        return etcd

    def job(self, etcd, records=RECORDS, delay="10ms", cluster="", extra=""):
        return self.write("job.toml", tally.job(
            workers=2, records=records, epochs=EPOCHS, delay=delay,
            extra=f'[cluster]\nstore = "{etcd.url}"\n{cluster}{extra}'))

    def test_an_etcd_that_stands_still_is_named_and_harms_nobody(self):
        etcd = self.cluster_of(members=1)
        process, run_dir = self.start_job(self.job(etcd))
        self.await_training(run_dir, samples=2000)
        etcd.stand_still()
        said = self.await_status(run_dir, lambda s: s.get("disk_trouble"), 30, "etcd is named")
        self.assertIn(f"etcd ({etcd.clients[0]}) has not answered for", said["disk_trouble"])
        time.sleep(4)  # the standstill, longer than one request may take
        etcd.go_on()
        summary = self.finish(process, run_dir)
        self.assert_exact(summary, run_dir, RECORDS, EPOCHS)
        self.assertEqual((summary["generations"], summary["incarnations"]), (1, 1))
        self.assertEqual(summary["failures"], [])
        events = (run_dir / "events.jsonl").read_text()
        self.assertIn(f"etcd ({etcd.clients[0]}) answers again", events)

    def test_a_job_daemon_that_stood_still_takes_its_lease_again(self):
        etcd = self.cluster_of(members=1)
        process, run_dir = self.start_job(self.job(etcd, cluster='store_lease = "2s"\n'))
        self.await_training(run_dir, samples=2000)
        pid = self.jobd_pid(run_dir)
        os.kill(pid, 19)
        await_true(lambda: not any(k.endswith("/lock") for k in keys_of(etcd)), 30, "the lease ends")
        os.kill(pid, 18)
        summary = self.finish(process, run_dir)
        self.assert_exact(summary, run_dir, RECORDS, EPOCHS)
        self.assertEqual(summary["incarnations"], 1)
        self.assertIn("the lease had ended and nobody had taken the job over: taken again",
                      (run_dir / "jobd.log").read_text())

    def test_a_broken_off_run_is_resumed_from_etcd_and_without_its_journal_from_a_checkpoint(self):
        etcd = self.cluster_of(members=1)
        job = self.job(etcd, extra='[checkpoint]\nevery = "1s"\n')
        process, run_dir = self.start_job(job)
        await_true(lambda: list((run_dir / "checkpoints").glob("s*-w*")), 60, "a checkpoint")
        self.kill_job(process)
        done = self.antdt("data", "audit", run_dir)
        self.assertEqual(done.returncode, 5, done.stdout + done.stderr)
        self.assertIn("not finished", done.stdout)
        diagnosed = self.antdt("diagnose", run_dir, "--out", self.dir / "report.tar.gz")
        self.assertEqual(diagnosed.returncode, 0, diagnosed.stdout + diagnosed.stderr)
        etcd.ctl("del", "--prefix", "/antdt/")
        refused = self.antdt("run", "--resume", run_dir)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("etcd has no journal of job tally-", refused.stderr)
        self.assertIn("--from-checkpoint", refused.stderr)
        resumed = self.antdt("run", "--resume", run_dir, "--from-checkpoint")
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assert_exact(summary, run_dir, RECORDS, EPOCHS)
        self.assertTrue(any("-2/" in key for key in keys_of(etcd)), keys_of(etcd))

    def kill_job(self, process):
        """Everything of the job, as a power failure does it; etcd goes on."""
        def none_left():
            found = [p for p in processes_of(str(self.dir)) if "etcd" not in p[1].split(" ", 1)[0]]
            for pid, _ in found:
                self.kill(pid)
            return not found
        await_true(none_left, 30, "the job's processes are killed")
        process.wait(10)

    def test_tls_and_a_user_and_what_is_said_if_they_are_wrong(self):
        certificates = Certificates(self.dir / "certificates")
        etcd = self.cluster_of(members=1, certificates=certificates)
        password = self.write("password", "geheim\n")
        password.chmod(0o600)
        for command in (("user", "add", "root:root"), ("user", "add", "trainer:geheim"),
                        ("role", "add", "jobs"), ("role", "grant-permission", "jobs", "--prefix=true",
                                                 "readwrite", "/antdt/trainer/"),
                        ("user", "grant-role", "root", "root"),
                        ("user", "grant-role", "trainer", "jobs"), ("auth", "enable")):
            etcd.ctl(*command)
        good = (f'store_ca = "{certificates.ca}"\nstore_cert = "{etcd.client_certificate}"\n'
                f'store_key = "{etcd.client_key}"\nstore_user = "trainer"\n'
                f'store_password_file = "{password}"\nstore_prefix = "/antdt/trainer/"\n')
        run = self.run_job(self.job(etcd, records=2000, delay="", cluster=good))
        self.assert_done(run)
        self.assert_exact(run.summary, run.dir, 2000, EPOCHS)

        wrong = self.write("wrong", "falsch\n")
        for cluster, words in (
                (good.replace(str(password), str(wrong)), "user trainer cannot log in"),
                (good.replace("trainer", "nobody"), "user nobody cannot log in"),
                (good.replace(str(certificates.ca), str(etcd.client_certificate)), "certificate"),
                (good.replace("/antdt/trainer/", "/antdt/"), "permission denied"),
                ("", "store_ca")):
            job = self.job(etcd, records=2000, delay="", cluster=cluster)
            if not cluster:  # etcd elsewhere, without TLS
                job.write_text(job.read_text().replace("127.0.0.1", "192.0.2.1"))
            refused = self.run_job(job)
            self.assertIn(refused.code, (2, 3), refused.explain())
            self.assertIn(words, refused.err)
            self.assertFalse(refused.dir.exists(), "nothing was started")

    def test_the_doctor_names_a_member_that_is_lost(self):
        etcd = self.cluster_of(members=3)
        job = self.job(etcd)

        def findings():
            done = self.antdt("doctor", job, "--json")
            found = [f for f in json.loads(done.stdout)["findings"] if f["check"] == "store"]
            return [(f["level"], f["looked_at"].rsplit(" ", 1)[1]) for f in found
                    if f["level"] != "ok"], found
        self.assertEqual(findings()[0], [], "three members are well")
        etcd.kill(1)
        await_true(lambda: findings()[0] == [("warning", etcd.clients[1])], 20, findings)
        etcd.kill(2)  # no majority is left
        bad, found = findings()
        self.assertEqual({level for level, _ in bad}, {"error"}, found)
        self.assertEqual(len(bad), 3)

    def test_an_etcd_that_does_not_answer_is_named_before_anything_starts(self):
        etcd = self.cluster_of(members=1)
        etcd.stop()
        refused = self.run_job(self.job(etcd))
        self.assertEqual(refused.code, 3, refused.explain())
        self.assertIn(f"cluster.store: etcd ({etcd.clients[0]}) cannot be used", refused.err)
        self.assertFalse(refused.dir.exists())


@needs_etcd
@needs_trainer
class KillsWithEtcd(Kills):
    """Processes of all kinds are killed at random, members of etcd among them; of these, one is always
    down."""
    kills = int(os.environ.get("ANTDT_ETCD_KILLS", "12"))
    records = 60000
    weights = {"worker": 8, "stop": 1, "jobd": 4, "agent": 2, "private-agent": 1, "standby": 2, "etcd": 6}

    def job_with(self, extra):
        self.etcd = Etcd(self.dir / "etcd")
        self.addCleanup(self.etcd.stop)
        self.down = []
        return self.write("job.toml", tally.job(
            records=self.records, epochs=EPOCHS, batch=256, delay=DELAY,
            extra=f'{extra}store = "{self.etcd.url}"\nstore_prefix = "/antdt/team-7/"\n'))

    is_worker = staticmethod(is_built_in)

    def strike(self, kind, run_dir):
        if kind == "etcd":
            while self.down:
                self.etcd.start(self.down.pop())
            self.etcd.await_healthy()
            self.down.append(self.random.randrange(3))
            self.etcd.kill(self.down[0])
            return True
        if kind == "standby":
            found = [pid for pid, command in processes_of(str(self.dir)) if " --standby " in command
                     and command.split(" ", 1)[0].endswith("antdt-jobd")]
            return bool(found) and self.kill(self.random.choice(found))
        return super().strike(kind, run_dir)

    def assert_nothing_left(self):
        self.etcd.stop()
        super().assert_nothing_left()

    def test_random_kills_of_everything_lose_nothing(self):
        self.check_random_kills()


if __name__ == "__main__":
    unittest.main()
