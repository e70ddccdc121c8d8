"""The Debian packages in a small Debian under a real systemd: what becomes of a job and of files when
they are installed, upgraded, removed and purged."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import shared  # noqa: F401 (finds what follows)
import debs
import tally
from harness import SOURCE, EndToEnd, await_true, needs_trainer
from real_systemd import Machine, UserJob, await_agent, enable_agent, why_not

ALICE = "alice"
RECORDS, EPOCHS = 60000, 2
NAMES = ("antdt", "antdt-trainer", "libantdt1", "python3-antdt")
HIGHER = "0.9.9"
# Where nothing is to be left; elsewhere packages leave caches of what they ran.
PLACES = ("usr", "etc", "var/lib/antdt", "run/antdtd", "var/lib/systemd/deb-systemd-helper-enabled",
          "var/lib/systemd/deb-systemd-helper-masked")
OF_OTHERS = re.compile(r"^etc/(passwd|group|shadow|gshadow|subuid|subgid)-?$|^etc/ld\.so\.cache$|"
                       r"^etc/systemd/system(/multi-user\.target\.wants)?$|__pycache__")


@needs_trainer
class Packages(EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if (reason := why_not()) is None and shutil.which("cpack") is None:
            reason = "cpack is not installed"
        if reason is not None:
            raise unittest.SkipTest(reason)
        cls.scratch = tempfile.TemporaryDirectory(prefix="antdt-debs-")
        cls.addClassCleanup(cls.scratch.cleanup)
        out = pathlib.Path(cls.scratch.name)
        cls.debs = debs.build(out / "made")
        wanted = debs.dependencies({name: cls.debs[name] for name in NAMES})
        (cls.root, reason) = debs.chroot(*wanted)
        if reason is not None:
            raise unittest.SkipTest(reason)

    def start_machine(self, install=NAMES, also=""):
        self.machine = Machine(self, lower=self.root, also=also)
        self.bring({name: self.debs[name] for name in install}, "debs")
        return self.machine

    def bring(self, files, where):
        """Installs packages as an administrator does, without a network."""
        place = self.machine.root / "root" / where
        place.mkdir()
        for path in files.values():
            shutil.copy(path, place)
        return self.apt("install", *(f"./{where}/{path.name}" for path in files.values()))

    def apt(self, *words):
        return self.machine.run("sh", "-c", "cd /root && DEBIAN_FRONTEND=noninteractive apt-get -y -q "
                                "--no-install-recommends \"$@\" 2>&1", "apt", *words)

    def files(self):
        found = set()
        for place in PLACES:
            base = self.machine.root / place
            found.update(str(p.relative_to(self.machine.root)) for p in [base, *base.rglob("*")]
                         if p.exists() or p.is_symlink())
        return {f for f in found if not OF_OTHERS.search(f)}

    def needrestart(self, *flags):
        return self.machine.run("needrestart", "-b", "-r", "l", *flags)

    def test_a_job_goes_on_through_an_upgrade_and_nothing_is_left_after_a_purge(self):
        self.machine = machine = Machine(self, lower=self.root)
        before = self.files()
        self.bring({name: self.debs[name] for name in NAMES}, "debs")
        self.assertEqual(machine.of_unit("UnitFileState"), "disabled", "it has no keys")
        self.assertEqual(machine.run("python3", "-c", "import antdt; print(antdt.__version__)"),
                         debs.field(self.debs["antdt"], "Version"))
        enable_agent(machine, ALICE)
        old = await_agent(machine)
        job = UserJob(self, machine, ALICE, tally.job(
            workers=2, records=RECORDS, epochs=EPOCHS, delay="20ms",
            extra='[cluster]\nhosts = ["127.0.0.1:7700"]\n'))
        job.await_more(1)
        workers, daemons = machine.named("antdt-instrument"), machine.named("antdt-jobd")
        self.assertEqual((len(workers), len(daemons)), (2, 1))

        out = pathlib.Path(self.scratch.name)
        said = self.bring({name: debs.raised(self.debs[name], HIGHER, out) for name in NAMES}, "higher")
        new = await_agent(machine, other_than=old)
        self.assertEqual(machine.run("dpkg-query", "-W", "-f", "${Version}", "antdt"), HIGHER, said)
        self.assertNotIn("(deleted)", pathlib.Path(f"/proc/{new}/exe").readlink().as_posix())
        job.await_more(1000)
        self.assertEqual(machine.named("antdt-instrument"), workers, "the same processes go on")
        self.assertEqual(machine.named("antdt-jobd"), daemons)
        for worker in workers:
            self.assertIn("(deleted)", pathlib.Path(f"/proc/{worker}/exe").readlink().as_posix())
        self.check_needrestart()

        summary = job.finish()
        self.assertEqual((summary["state"], summary["failures"]), ("done", []))
        self.assertEqual(set(tally.counts(job.run_dir)), {float(EPOCHS)})
        self.assertIn("kept", job.command("antdt data audit run"))

        self.apt("remove", *NAMES)
        self.assertEqual(machine.of_unit("ActiveState"), "inactive")
        self.assertEqual(machine.named("antdtd"), set())
        self.assertTrue((machine.root / "var/lib/antdt").exists(), "a removal keeps the state")
        said = machine.run("sh", "-c", "dpkg --purge \"$@\" 2>&1", "purge", *NAMES)
        self.assertIn("/etc/antdt is kept", said)
        left = {f for f in self.files() - before if not f.startswith("etc/antdt")}
        self.assertEqual(left, set())
        self.assertTrue((machine.root / "etc/antdt/keys/agent.key").exists())

    def check_needrestart(self):
        """It would restart the agent because of its workers, which use replaced files, but for the
        setting of the package."""
        machine = self.machine
        left_alone = re.search(r"qr\((.*)\);", (SOURCE / "packaging/needrestart/antdt.conf").read_text()).group(1)
        for name in ("shim", "jobd", "server", "trainer", "instrument"):
            self.assertTrue((machine.root / f"usr/bin/antdt-{name}").exists())
            self.assertRegex(f"/usr/bin/antdt-{name}", left_alone)
        self.assertNotIn("antdtd", self.needrestart())
        setting = machine.root / "etc/needrestart/conf.d/antdt.conf"
        text = setting.read_text()
        setting.write_text("")
        self.assertIn("NEEDRESTART-SVC: antdtd.service", self.needrestart())
        setting.write_text(text)

    def test_processes_of_jobs_end_by_themselves_where_the_package_is_removed(self):
        machine = self.start_machine()
        enable_agent(machine, ALICE)
        await_agent(machine)
        job = UserJob(self, machine, ALICE, tally.job(
            workers=2, records=10 * RECORDS, epochs=EPOCHS, delay="20ms",
            extra='[cluster]\nhosts = ["127.0.0.1:7700"]\n[failure]\norphan_timeout = "20s"\n'
                  'host_lost_after = "5s"\n'))
        job.await_more(1)
        said = self.apt("remove", "antdt", "antdt-trainer")
        self.assertIn("processes of jobs run on this host", said)
        workers = machine.named("antdt-instrument")
        self.assertEqual(len(workers), 2, "a removal ends none")
        await_true(lambda: not machine.named("antdt-instrument"), 60, "the orphan timeout is over")

    def test_a_detached_job_outlives_its_session_where_lingering_is_on(self):
        # The processes of a job start one another again until they are killed, so the time until
        # systemd does that is shortened.
        machine = self.start_machine(also=(
            "mkdir -p etc/systemd/logind.conf.d etc/systemd/system.conf.d\n"
            "printf '[Login]\\nKillUserProcesses=yes\\n' > etc/systemd/logind.conf.d/kill.conf\n"
            "printf '[Manager]\\nDefaultTimeoutStopSec=3s\\n' > etc/systemd/system.conf.d/short.conf\n"))
        machine.run("useradd", "--create-home", "--shell", "/bin/sh", ALICE)
        home = machine.root / f"home/{ALICE}"
        (home / "job.toml").write_text(tally.job(workers=2, records=RECORDS, epochs=1, delay="20ms"))

        def detach(run):
            return machine.run("sh", "-c", f"runuser -l {ALICE} -c 'antdt run job.toml --detach --run-dir "
                               f"{run}' 2>&1")
        said = detach("in-session")
        self.assertIn(f"loginctl enable-linger {ALICE}", said)
        self.await_no_session()
        for name in ("antdt-instrument", "antdt-shim", "antdt-jobd", "antdtd"):
            self.assertEqual(machine.named(name), set(), "the session ended its processes")
        summary = home / "in-session/summary.json"  # its job daemon may have had the time to write it
        self.assertNotEqual(summary.exists() and json.loads(summary.read_text())["state"], "done")

        machine.run("loginctl", "enable-linger", ALICE)
        said = detach("lingering")
        unit = re.search(r"systemctl --user status (antdt-\S+\.scope)", said)
        self.assertTrue(unit, said)
        workers = await_true(lambda: machine.named("antdt-instrument"), 30, "it trains")
        for pid in [*workers, *machine.named("antdt-jobd"), *machine.named("antdtd")]:
            self.assertIn(unit.group(1), pathlib.Path(f"/proc/{pid}/cgroup").read_text())
        self.await_no_session()
        self.assertFalse((home / "lingering/summary.json").exists(), "the job goes on after that")
        await_true(lambda: (home / "lingering/summary.json").exists(), 120, "the job is done")
        self.assertEqual(json.loads((home / "lingering/summary.json").read_text())["state"], "done")
        self.assertEqual(set(tally.counts(home / "lingering")), {1.0})


    def await_no_session(self):
        await_true(lambda: self.machine.run("loginctl", "list-sessions", "--no-legend") == "", 30,
                   "the session has ended")


class Lintian(EndToEnd):
    def test_it_finds_no_error_in_any_package(self):
        for program in ("lintian", "cpack"):
            if shutil.which(program) is None:
                self.skipTest(f"{program} is not installed")
        with tempfile.TemporaryDirectory() as scratch:
            made = debs.build(pathlib.Path(scratch))
            done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", "--tag-display-limit", "0",
                                   *made.values()], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
