"""A real systemd as process 1 of namespaces that a test makes, over a copy-on-write view of files: of
this machine's, or of a chroot's. Everything in it ends with the test."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from harness import SOURCE, await_true, stat_of

SYSTEMD = "/lib/systemd/systemd"
# Settings that change the kernel or this machine's devices, or clean directories, are left out.
MASKED = ("systemd-sysctl.service systemd-modules-load.service systemd-udevd.service "
          "systemd-udev-trigger.service systemd-remount-fs.service systemd-tmpfiles-clean.timer "
          "systemd-binfmt.service systemd-hwdb-update.service systemd-random-seed.service "
          "systemd-update-utmp.service sys-kernel-debug.mount sys-kernel-tracing.mount "
          "sys-kernel-config.mount sys-fs-fuse-connections.mount dev-hugepages.mount "
          "dev-mqueue.mount systemd-networkd.service swap.target")
BOOT = """
set -e
mount -t tmpfs -o size=2g none {top}
mkdir {top}/upper {top}/work {top}/root
mount -t overlay none -o lowerdir={lower},upperdir={top}/upper,workdir={top}/work {top}/root
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
mount -t devpts none dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for unit in {masked}; do ln -sf /dev/null etc/systemd/system/$unit; done
rm -rf etc/systemd/system/*.wants
echo > etc/fstab
{also}
ip link set lo up
export container=antdt-test
mkdir old
pivot_root . old
exec chroot . sh -c 'umount -l /old; rmdir /old; exec "$@"' root \\
  {systemd} --system --unit=basic.target --log-target=null --show-status=no
"""


def why_not():
    """Why systemd cannot be started here; None if it can."""
    if os.geteuid() != 0:
        return "only root can start systemd in namespaces"
    for program in (SYSTEMD, "unshare", "nsenter", "ip", "cmake"):
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

    def __init__(self, test, lower="/", also=""):
        """`lower`: whose files are copied on write; `also`: a script that runs in the new root before
        systemd does."""
        self.test = test
        top = pathlib.Path(tempfile.mkdtemp(prefix="antdt-systemd-"))
        test.addCleanup(top.rmdir)
        script = BOOT.format(top=top, masked=MASKED, systemd=SYSTEMD, lower=lower, also=also)
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
        if self.process.returncode is None:
            self.process.kill()
            self.process.communicate()

    def command(self, *command):
        return ["nsenter", "-t", str(self.init), "-a", "-r", "-w", "--", *map(str, command)]

    def run(self, *command, check=True):
        done = subprocess.run(self.command(*command), capture_output=True, text=True, timeout=120,
                              env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"})
        if check:
            self.test.assertEqual(done.returncode, 0, f"{command}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def systemctl(self, *command, check=True):
        return self.run("systemctl", *command, check=check)

    def of_unit(self, name, unit="antdtd"):
        return self.systemctl("show", unit, "--property", name, "--value")

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
        """The pids of a program, also if its file was replaced."""
        def name_of(pid):
            try:
                return os.path.basename(os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)"))
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


def documented(words):
    """The commands of packaging/README.md that follow these words, for root."""
    text = (SOURCE / "packaging/README.md").read_text()
    block = re.search(r"(?:^ {4,}\S.*\n)+", text[text.index(words):], flags=re.MULTILINE).group()
    return block.replace("sudo ", "")


def run_documented(machine, words, instead):
    """Runs them in /root, with other names in place of the page's."""
    commands = documented(words)
    for name, other in instead.items():
        assert name in commands, f"{words}: {commands}"
        commands = commands.replace(name, other)
    machine.run("sh", "-ec", "cd /root\n" + commands)


def set_up_host(machine, etc="/etc"):
    """Gives a host its keys and enables its agent. `etc` is that of the installation."""
    run_documented(machine, "On each host, here node1", {
        "node1": "127.0.0.1", "10.0.0.1": "127.0.0.1", "/etc/default": f"{etc}/default"})


def enable_agent(machine, user, etc="/etc"):
    """An agent as packaging/README.md sets it up, and the key of `user`, who is made."""
    machine.run("useradd", "--create-home", "--user-group", "--shell", "/bin/sh", user)
    run_documented(machine, "Once, on a machine that keeps the keys", {"node1": "127.0.0.1", "alice": user})
    machine.run("mkdir", "-p", f"/home/{user}/.config")
    machine.run("cp", "-r", f"/root/keys/users/{user}", f"/home/{user}/.config/antdt")
    machine.run("chown", "-R", f"{user}:", f"/home/{user}/.config")
    set_up_host(machine, etc)


def agent_of(machine):
    """The pid, outside of the namespaces, of the unit's main process."""
    own = machine.of_unit("MainPID")
    found = [p for p in machine.named("antdtd") if status_of(p).get("NSpid", "").split()[-1:] == [own]]
    return found[0] if found else None


def await_agent(machine, other_than=0):
    """The same once the unit says that it is ready, which it says when the agent listens."""
    def ready():
        found = agent_of(machine) if machine.of_unit("ActiveState") == "active" else None
        return found if found and found != other_than else None
    try:
        return await_true(ready, 20, "the agent is ready")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{machine.journal()}") from error


class UserJob:
    """A job of a user, with a command that watches it."""

    def __init__(self, test, machine, user, text):
        self.machine, self.user = machine, user
        (machine.root / f"home/{user}/job.toml").write_text(text)
        self.process = subprocess.Popen(
            machine.command("runuser", "-l", user, "-c", "antdt run job.toml --run-dir run"),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        # Only with the namespaces do all end that hold the other end of its pipes.
        test.addCleanup(lambda: (self.process.poll() is None and machine.end(),
                                 self.process.communicate()))
        self.run_dir = machine.root / f"home/{user}/run"

    def command(self, command, check=True):
        return self.machine.run("runuser", "-l", self.user, "-c", command, check=check)

    def await_more(self, samples):
        """Until it has trained so many more samples than now."""
        def trained(before=[None]):
            said = self.command("antdt status run --json", check=False)
            if not said.startswith("{"):
                return False
            status = json.loads(said)
            before[0] = status["samples_done"] if before[0] is None else before[0]
            return status["state"] == "training" and status["samples_done"] >= before[0] + samples
        await_true(trained, 60, f"{samples} more samples")

    def finish(self):
        """Its summary, when it is done."""
        out, err = self.process.communicate(timeout=180)
        self.machine.test.assertEqual(self.process.returncode, 0, out + err + self.machine.journal())
        return json.loads((self.run_dir / "summary.json").read_text())
