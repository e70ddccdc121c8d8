"""The packaged unit under a real systemd (real_systemd.py). An agent of root with the unit's
capabilities runs a user's job. It is killed, restarted, stopped, and hangs, and the job loses nothing. An
agent that waits for a disk is left alone."""

import os
import pathlib
import re
import shutil
import signal
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import BIN, EndToEnd, await_true, needs_trainer
from real_systemd import (Machine, UserJob, await_agent, enable_agent, run_documented, set_up_host, status_of,
                          why_not)

ALICE = "antdt-alice"
RECORDS, EPOCHS = 40000, 2
# setuid, setgid, kill, chown: what packaging/antdtd.service.in leaves to the agent.
CAPABILITIES = sum(1 << n for n in (0, 5, 6, 7))
INSTALL = f"DESTDIR=. cmake --install {BIN.parent} --prefix /usr > /dev/null"
INSTALL_WITHOUT_PACKAGES = INSTALL.replace("--prefix /usr", "--prefix /usr/local")
SECONDS_OF_WATCHDOG = 3
KILLS = 6  # in fewer seconds than after which systemd usually gives up a unit for 5 of them
STATE = "/var/lib/antdt"


@needs_trainer
class Systemd(EndToEnd):
    def setUp(self):
        super().setUp()
        if (reason := why_not()) is not None:
            self.skipTest(reason)

    def start_job(self):
        text = tally.job(workers=2, records=RECORDS, epochs=EPOCHS, delay="20ms", extra=(
            '[cluster]\nhosts = ["127.0.0.1:7700"]\n[failure]\nhost_lost_after = "60s"\n'))
        return UserJob(self, self.machine, ALICE, text)

    def test_an_agent_that_is_killed_restarted_stopped_or_hangs_costs_a_users_job_nothing(self):
        machine = self.machine = Machine(self, also=INSTALL)
        enable_agent(machine, ALICE)
        agent = await_agent(machine)
        uid = int(machine.run("id", "-u", ALICE))
        job = self.start_job()
        job.await_more(1)
        workers = machine.named("antdt-instrument")
        self.assertEqual(len(workers), 2)
        self.assertEqual(int(status_of(agent)["CapEff"], 16), CAPABILITIES)
        self.assertEqual(status_of(agent)["NoNewPrivs"], "1")
        await_true(lambda: machine.of_unit("StatusText") == "1 jobs, 2 processes", 20, "its status")
        for worker in workers:
            status = status_of(worker)
            self.assertEqual(set(map(int, status["Uid"].split())), {uid})
            self.assertEqual((int(status["CapEff"], 16), int(status["CapBnd"], 16) & ~CAPABILITIES),
                             (0, 0))
            self.assertIn("antdtd.service/",
                          pathlib.Path(f"/proc/{worker}/cgroup").read_text())
            self.assertNotIn(b"NOTIFY_SOCKET", pathlib.Path(f"/proc/{worker}/environ").read_bytes())
        second = agent
        for times in range(1, KILLS + 1):
            os.kill(second, signal.SIGKILL)
            second = await_agent(machine, other_than=second)
            self.assertEqual(machine.of_unit("NRestarts"), str(times))
        job.await_more(1000)
        machine.systemctl("restart", "antdtd")
        third = await_agent(machine, other_than=second)
        job.await_more(1000)
        machine.systemctl("stop", "antdtd")
        self.assertEqual(machine.of_unit("ActiveState"), "inactive", machine.journal())
        self.assertEqual(machine.named("antdt-instrument"), workers, "they outlive their agent")
        self.shorten_the_watchdog()
        machine.systemctl("start", "antdtd")
        fourth = await_agent(machine, other_than=third)
        self.assertEqual(machine.of_unit("WatchdogUSec"), f"{SECONDS_OF_WATCHDOG}s")
        os.kill(fourth, signal.SIGSTOP)  # its loop stands still, and for no disk
        await_agent(machine, other_than=fourth)
        self.assertEqual(machine.of_unit("NRestarts"), "1", machine.journal())
        job.await_more(1000)
        self.assertEqual(machine.named("antdt-instrument"), workers, "nobody was started again")
        summary = job.finish()
        self.assertEqual((summary["state"], summary["failures"]), ("done", []))
        self.assertEqual(set(tally.counts(job.run_dir)), {float(EPOCHS)})
        self.assertIn("kept", job.command("antdt data audit run"))
        for path in job.run_dir.rglob("*"):
            self.assertEqual(path.lstat().st_uid, uid, path)
        machine.systemctl("stop", "antdtd")
        await_true(lambda: not any(machine.named(name) for name in (
            "antdtd", "antdt-shim", "antdt-jobd", "antdt-instrument")), 20, "nothing of it is left")

    def test_an_agent_that_waits_for_a_disk_is_not_killed(self):
        for program in ("mkfs.ext4", "fsfreeze", "losetup"):
            if shutil.which(program) is None:
                self.skipTest(f"{program} is not installed")
        if not pathlib.Path("/dev/loop-control").exists():
            self.skipTest("there are no loop devices here")
        machine = self.machine = Machine(self, also=INSTALL + f"""
truncate -s 64M state.ext4
mkfs.ext4 -q state.ext4
mkdir -p .{STATE}
mount -o loop state.ext4 .{STATE}
""")
        self.shorten_the_watchdog()
        enable_agent(machine, ALICE)
        agent = await_agent(machine)
        job = self.start_job()
        job.await_more(1)
        workers = machine.named("antdt-instrument")
        machine.run("fsfreeze", "--freeze", STATE)
        self.addCleanup(lambda: machine.run("fsfreeze", "--unfreeze", STATE, check=False))

        def waits():
            """How long the unit says that it has waited, in seconds."""
            said = re.match(r"waiting for (\d+) s for a disk", machine.of_unit("StatusText"))
            return int(said.group(1)) if said else 0
        await_true(lambda: waits() > 3 * SECONDS_OF_WATCHDOG, 30, "the deputy has spoken for a while")
        self.assertEqual(status_of(agent)["State"][0], "D")
        self.assertEqual(machine.of_unit("NRestarts"), "0", machine.journal())
        machine.run("fsfreeze", "--unfreeze", STATE)
        await_true(lambda: machine.of_unit("StatusText") == "1 jobs, 2 processes", 20, "its loop goes on")
        self.assertEqual(await_agent(machine), agent)
        self.assertEqual(machine.named("antdt-instrument"), workers)
        summary = job.finish()
        self.assertEqual((summary["state"], summary["failures"]), ("done", []))
        self.assertEqual(set(tally.counts(job.run_dir)), {float(EPOCHS)})

    def test_without_packages_it_is_installed_and_set_up_as_documented(self):
        machine = self.machine = Machine(self, also=INSTALL_WITHOUT_PACKAGES)
        run_documented(machine, "Without packages", {"cmake --install build --prefix /usr/local": "true"})
        self.assertIn("antdt-admin", machine.run("getent", "group", "antdt-admin"))
        machine.systemctl("start", "antdtd", check=False)
        self.assertEqual(machine.of_unit("ExecMainStatus"), "2", machine.journal())
        self.assertEqual((machine.of_unit("ActiveState"), machine.of_unit("NRestarts")), ("failed", "0"),
                         "it is not started again before it is configured")
        enable_agent(machine, ALICE, etc="/usr/local/etc")
        agent = await_agent(machine)
        set_up_host(machine, etc="/usr/local/etc")  # as for another user's key
        self.assertEqual({p.name for p in (machine.root / "etc/antdt/keys").iterdir()},
                         {"agent.key", "agent.pub", "authorized"})
        self.assertEqual(await_agent(machine), agent)
        self.assertEqual({p.name for p in (machine.root / "etc/antdt/keys/authorized").iterdir()},
                         {f"{ALICE}.pub"})

    def shorten_the_watchdog(self):
        place = self.machine.root / "run/systemd/system/antdtd.service.d"
        place.mkdir(parents=True)
        (place / "short.conf").write_text(f"[Service]\nWatchdogSec={SECONDS_OF_WATCHDOG}\n")
        self.machine.systemctl("daemon-reload")


if __name__ == "__main__":
    unittest.main()
