"""The packaged unit under a real systemd: it is process 1 of namespaces that the test makes, over a
copy-on-write view of this machine's files. An agent of root with the unit's capabilities runs a
user's job. It is killed, restarted and stopped, and the job loses nothing. The test is skipped if
such namespaces cannot be made."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import BIN, EndToEnd, await_true, needs_trainer, stat_of

SYSTEMD = "/lib/systemd/systemd"
ALICE = "antdt-alice"
RECORDS, EPOCHS = 40000, 2
# setuid, setgid, kill, chown: what packaging/antdtd.service leaves to the agent.
CAPABILITIES = sum(1 << n for n in (0, 5, 6, 7))

# Settings that change the kernel or this machine's devices, or clean directories, are left out.
MASKED = ("systemd-sysctl.service systemd-modules-load.service systemd-udevd.service "
          "systemd-udev-trigger.service systemd-remount-fs.service systemd-tmpfiles-clean.timer "
          "systemd-binfmt.service systemd-hwdb-update.service systemd-random-seed.service "
          "systemd-update-utmp.service sys-kernel-debug.mount sys-kernel-tracing.mount "
          "sys-kernel-config.mount sys-fs-fuse-connections.mount dev-hugepages.mount "
          "dev-mqueue.mount systemd-networkd.service swap.target")
BOOT = """
set -e
mount -t tmpfs -o size=1g none {top}
mkdir {top}/upper {top}/work {top}/root
mount -t overlay none -o lowerdir=/,upperdir={top}/upper,workdir={top}/work {top}/root
cd {top}/root
mount -t proc none proc
mount --bind /sys sys
mount -t cgroup2 none sys/fs/cgroup
for place in dev run tmp; do mount -t tmpfs none $place; done
for device in null zero full random urandom tty; do
  touch dev/$device
  mount --bind /dev/$device dev/$device
done
mkdir dev/shm dev/pts
ln -s /proc/self/fd dev/fd
for unit in {masked}; do ln -sf /dev/null etc/systemd/system/$unit; done
rm -rf etc/systemd/system/*.wants
echo > etc/fstab
DESTDIR=. cmake --install {build} --prefix /usr > /dev/null
ip link set lo up
export container=antdt-test
exec chroot . {systemd} --system --unit=basic.target --log-target=null --show-status=no
"""


def why_not():
    """Why systemd cannot be started here; None if it can."""
    if os.geteuid() != 0:
        return "only root can start systemd in namespaces"
    for program in (SYSTEMD, "unshare", "nsenter", "ip", "useradd", "runuser", "cmake"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    tried = subprocess.run(
        ["unshare", "--mount", "--cgroup", "--net", "--pid", "--fork", "sh", "-c",
         "d=$(mktemp -d) && mount -t tmpfs none $d && mkdir $d/u $d/w $d/r $d/c && "
         "mount -t overlay none -o lowerdir=/,upperdir=$d/u,workdir=$d/w $d/r && "
         "mount -t cgroup2 none $d/c && mkdir $d/c/antdt-try-$$ && rmdir $d/c/antdt-try-$$"],
        capture_output=True, text=True)
    return None if tried.returncode == 0 else "no namespaces for it here: " + tried.stderr.strip()


class Machine:
    """The namespaces with a systemd, seen from outside."""

    def __init__(self, test):
        self.test = test
        top = pathlib.Path(tempfile.mkdtemp(prefix="antdt-systemd-"))
        test.addCleanup(top.rmdir)
        script = BOOT.format(top=top, masked=MASKED, systemd=SYSTEMD, build=BIN.parent)
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child",
             "--cgroup", "--net", "--uts", "--ipc", "sh", "-c", script],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        test.addCleanup(self.end)
        self.init = await_true(self.find_init, 60, "systemd begins")
        self.root = pathlib.Path(f"/proc/{self.init}/root")
        await_true(lambda: self.systemctl("is-system-running", check=False) in
                   ("running", "degraded"), 60, "systemd runs")

    def find_init(self):
        self.test.assertIsNone(self.process.poll(), "".join(self.process.communicate()[:1])
                               if self.process.poll() is not None else "")
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for pid in children.read_text().split():
            if pathlib.Path(f"/proc/{pid}/cmdline").read_text().startswith(SYSTEMD):
                return int(pid)
        return None

    def end(self):
        """Everything in the namespaces ends with their process 1."""
        self.process.kill()
        self.process.communicate()

    def command(self, *command):
        return ["nsenter", "-t", str(self.init), "-a", "-r", "-w", "--", *map(str, command)]

    def run(self, *command, check=True):
        done = subprocess.run(self.command(*command), capture_output=True, text=True, timeout=120,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        if check:
            self.test.assertEqual(done.returncode, 0, f"{command}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def systemctl(self, *command, check=True):
        return self.run("systemctl", *command, check=check)

    def of_unit(self, name):
        return self.systemctl("show", "antdtd", "--property", name, "--value")

    def journal(self):
        return self.run("journalctl", "-u", "antdtd", "--no-pager", "-n", "50", check=False)

    def pids(self):
        """The pids of the processes in the namespaces, as they are seen from outside."""
        own = os.readlink(f"/proc/{self.init}/ns/pid")
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and os.readlink(entry / "ns/pid") == own:
                    yield int(entry.name)
            except OSError:
                continue

    def named(self, program):
        def name_of(pid):
            try:
                return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
            except OSError:
                return ""
        return {pid for pid in self.pids() if name_of(pid) == program and stat_of(pid)}


def status_of(pid):
    """/proc/PID/status as a dictionary; empty if the process has ended."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {k: v.strip() for k, v in (line.split(":", 1) for line in lines)}


@needs_trainer
class Systemd(EndToEnd):
    def setUp(self):
        super().setUp()
        if (reason := why_not()) is not None:
            self.skipTest(reason)
        self.machine = Machine(self)
        self.uid = self.add_user()

    def add_user(self):
        self.machine.run("useradd", "--create-home", "--user-group", ALICE)
        return int(self.machine.run("id", "-u", ALICE))

    def enable_agent(self):
        """Follows packaging/README.md."""
        keys = "/root/keys"
        self.machine.run("antdt", "keygen", "--dir", keys, "--agent", "127.0.0.1", "--user", ALICE)
        self.machine.run("mkdir", "-p", "/etc/antdt", f"/home/{ALICE}/.config")
        self.machine.run("cp", "-r", f"{keys}/hosts/127.0.0.1", "/etc/antdt/keys")
        self.machine.run("cp", "-r", f"{keys}/users/{ALICE}", f"/home/{ALICE}/.config/antdt")
        self.machine.run("chown", "-R", f"{ALICE}:", f"/home/{ALICE}/.config")
        (self.machine.root / "etc/default/antdtd").write_text(
            'ANTDTD_OPTIONS="--listen 127.0.0.1:7700 --keys /etc/antdt/keys"\n')
        self.machine.systemctl("enable", "--now", "antdtd")
        self.await_agent()

    def await_agent(self, other_than=0):
        """The pid, outside of the namespaces, of the unit's main process, once it listens."""
        def listens():
            (agents, own) = (self.machine.named("antdtd"), self.machine.of_unit("MainPID"))
            found = [p for p in agents if status_of(p).get("NSpid", "").split()[-1:] == [own]]
            socket = "0100007F:1E14"  # 127.0.0.1:7700
            is_there = any(f" {socket} 00000000:0000 0A " in line for line in
                           (self.machine.root / f"proc/{own}/net/tcp").read_text().splitlines()
                           ) if found else False
            return found[0] if found and found[0] != other_than and is_there else None
        try:
            return await_true(listens, 20, "the agent listens")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.machine.journal()}") from error

    def start_job(self):
        text = tally.job(workers=2, records=RECORDS, epochs=EPOCHS, delay="20ms", extra=(
            '[cluster]\nhosts = ["127.0.0.1:7700"]\n'))
        job = self.machine.root / f"home/{ALICE}/job.toml"
        job.write_text(text)
        process = subprocess.Popen(
            self.machine.command("runuser", "-l", ALICE, "-c", "antdt run job.toml --run-dir run"),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.poll() is None and process.kill(), process.communicate()))
        return process, self.machine.root / f"home/{ALICE}/run"

    def status(self):
        done = self.machine.run("runuser", "-l", ALICE, "-c", "antdt status run --json",
                                check=False)
        return json.loads(done) if done.startswith("{") else None

    def await_more(self, samples):
        def trained(before=[None]):
            status = self.status()
            if status is None:
                return False
            before[0] = status["samples_done"] if before[0] is None else before[0]
            return status["state"] == "training" and status["samples_done"] >= before[0] + samples
        await_true(trained, 60, f"{samples} more samples")

    def test_an_agent_that_is_killed_restarted_or_stopped_costs_a_users_job_nothing(self):
        machine = self.machine
        self.enable_agent()
        process, run_dir = self.start_job()
        self.await_more(1)
        workers = machine.named("antdt-trainer")
        self.assertEqual(len(workers), 2)
        agent = self.await_agent()
        self.assertEqual(int(status_of(agent)["CapEff"], 16), CAPABILITIES)
        self.assertEqual(status_of(agent)["NoNewPrivs"], "1")
        for worker in workers:
            status = status_of(worker)
            self.assertEqual(set(map(int, status["Uid"].split())), {self.uid})
            self.assertEqual((int(status["CapEff"], 16), int(status["CapBnd"], 16) & ~CAPABILITIES),
                             (0, 0))
            self.assertIn("antdtd.service/",
                          pathlib.Path(f"/proc/{worker}/cgroup").read_text())
        os.kill(agent, 9)
        second = self.await_agent(other_than=agent)
        self.assertEqual(machine.of_unit("NRestarts"), "1")
        self.await_more(1000)
        machine.systemctl("restart", "antdtd")
        third = self.await_agent(other_than=second)
        self.await_more(1000)
        machine.systemctl("stop", "antdtd")
        self.assertEqual(machine.of_unit("ActiveState"), "inactive", machine.journal())
        self.assertEqual(machine.named("antdt-trainer"), workers, "they outlive their agent")
        machine.systemctl("start", "antdtd")
        self.await_agent(other_than=third)
        self.await_more(1000)
        self.assertEqual(machine.named("antdt-trainer"), workers, "nobody was started again")
        out, err = process.communicate(timeout=180)
        self.assertEqual(process.returncode, 0, out + err + machine.journal())
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertEqual((summary["state"], summary["failures"]), ("done", []))
        self.assertEqual(set(tally.counts(run_dir)), {float(EPOCHS)})
        audit = machine.run("runuser", "-l", ALICE, "-c", "antdt data audit run")
        self.assertIn("kept", audit)
        for path in run_dir.rglob("*"):
            self.assertEqual(path.lstat().st_uid, self.uid, path)
        machine.systemctl("stop", "antdtd")
        await_true(lambda: not any(machine.named(name) for name in (
            "antdtd", "antdt-shim", "antdt-jobd", "antdt-trainer")), 20, "nothing of it is left")


if __name__ == "__main__":
    unittest.main()
