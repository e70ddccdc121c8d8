"""A real Slurm: slurmctld on a login host, and a slurmd on each of three nodes. Each of these hosts has
a network, a host name, a tree of cgroups and a disk of its own (`Cluster.own`). They share the files
below `Cluster.shared`; all other files are the same and stand for installed programs. Jobs are those
of the user USER, who is a line in copies of /etc/passwd and /etc/group.

The caller must be root in a mount, a network and a UTS namespace of its own (slurm_case.run_inside)."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

from harness import BIN, await_true, stat_of
from separate_hosts import HOST, LAUNCHER, SWITCH

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "salloc", "sbatch", "scontrol", "unshare",
            "nsenter", "setpriv", "ip", "mount")
USER, UID = "antdt-alice", 54301
DAEMONS = ("munged", "slurmctld", ": slurmscriptd", "slurmd ", "etcd ")

CONF = """
ClusterName=test
SlurmctldHost=login({launcher})
SlurmctldPort=6817
SlurmdPort=6818
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={own}/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={own}/slurm/state
SlurmdSpoolDir={own}/slurm/spool
SlurmctldPidFile={own}/slurm/slurmctld.pid
SlurmdPidFile={own}/slurm/slurmd.pid
ProctrackType={proctrack}
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
KillWait=5
SlurmdTimeout=4
SlurmctldTimeout=5
MessageTimeout=2
TCPTimeout=2
PropagateResourceLimits=NONE
SchedulerParameters=sched_interval=1,batch_sched_delay=0,bf_interval=1
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=UNLIMITED
"""
CGROUP_CONF = """
CgroupMountpoint={own}/cgroup
CgroupPlugin=cgroup/v1
"""
OWN_DISK = """
mount -t tmpfs -o size=1g none {own} && chmod 755 {own} && cd {own} &&
mkdir -p munge slurm/state slurm/spool && mkdir -m 1777 tmp &&
install -d -m 700 -o {uid} -g {uid} run home && install -m 400 {dir}/munge.key munge/key
"""
OWN_CGROUPS = """
cd {own} && mkdir cgroup && mount -t tmpfs none cgroup && mkdir cgroup/freezer &&
mount -t cgroup -o freezer none cgroup/freezer
"""


def why_not():
    """Why there can be no such Slurm here; None if there can be one."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [p for p in PROGRAMS if shutil.which(p, path=path) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (apt-get install slurm-wlm munge)"
    if os.geteuid() != 0:
        return "slurmd starts jobs as their users, and so needs root"
    tried = subprocess.run(
        ["unshare", "-nmuC", "sh", "-c", "ip link add s0 type bridge && ip link add a0 type veth "
         "peer name b0 && mount -t tmpfs none /mnt"], capture_output=True, text=True)
    return None if tried.returncode == 0 else "no namespaces here: " + tried.stderr.strip()


def freezer():
    """The freezer's cgroups (version 1), in which Slurm keeps the processes of a step together; None
    where none can be made. Version 2 is not used: there Slurm asks a systemd on each node, or needs settings
    that its manual keeps for development."""
    cgroups = pathlib.Path("/sys/fs/cgroup/freezer")
    probe = cgroups / f"antdt-probe-{os.getpid()}"
    try:
        probe.mkdir()
        made = (probe / "cgroup.procs").exists()
        probe.rmdir()
    except OSError:
        return None
    return cgroups if made else None


def sh(script, check=True):
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
    if check and done.returncode != 0:
        raise AssertionError(f"{script}: {done.stderr}")


def send(which, pids):
    for pid in pids:
        try:
            os.kill(pid, which)
        except ProcessLookupError:
            pass


class Machine:
    """The login host, or a node with a number; seen from outside."""

    def __init__(self, cluster, name, number=None):
        self.cluster, self.name, self.number = cluster, name, number
        self.logs = cluster.dir / "logs" / name
        self.logs.mkdir(parents=True)
        self.hold_namespaces()
        if number is None:
            self.address, self.link_name = LAUNCHER, "wire"
        else:
            self.address, self.link_name = f"10.78.0.{number + 1}", f"wire-{number + 1}"
            sh(HOST.format(n=number + 1, pid=self.holder.pid, address=self.address))
        self.must(OWN_DISK.format(own=cluster.own, uid=UID, dir=cluster.dir))
        if cluster.freezer is not None:
            self.must(OWN_CGROUPS.format(own=cluster.own))

    def hold_namespaces(self):
        """Starts the process that holds them. It is in a cgroup of this machine, which becomes the root
        of the cgroups that are seen here."""
        enter = ""
        if self.cluster.freezer is not None:
            group = self.cluster.freezer / self.name
            group.mkdir()
            enter = f"echo $$ > {group}/cgroup.procs && "
        kinds = "-muC" if self.number is None else "-nmuC"  # the login host has the caller's network
        self.holder = subprocess.Popen(
            ["sh", "-c", f"{enter}exec unshare {kinds} --propagation private sh -c 'hostname "
             f"{self.name} && exec sleep infinity'"])
        self.cluster.at_end(lambda: (self.holder.kill(), self.holder.wait()))
        name = pathlib.Path(f"/proc/{self.holder.pid}/comm")
        await_true(lambda: name.read_text().strip() == "sleep", 10, "namespaces")
        self.namespace = os.readlink(f"/proc/{self.holder.pid}/ns/mnt")

    def enter(self):
        return ["nsenter", "-t", str(self.holder.pid), "-n", "-m", "-u", "-C"]

    def path(self, path):
        """The machine's own files at a path."""
        return pathlib.Path(f"/proc/{self.holder.pid}/root{path}")

    def must(self, script):
        """Runs a script of root there, which must succeed."""
        done = subprocess.run([*self.enter(), "sh", "-c", script], capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"{self.name}: {script}: {done.stdout}{done.stderr}")

    def begin(self):
        """Starts its daemons."""
        munge = f"{self.cluster.own}/munge"
        self.start("munged", "--foreground", "--force", "--num-threads=1", f"--key-file={munge}/key",
                   f"--socket={munge}/socket", f"--pid-file={munge}/pid",
                   f"--seed-file={munge}/seed", f"--log-file={munge}/log")
        await_true(self.path(f"{munge}/socket").exists, 10, f"munged on {self.name}")
        if self.number is None:
            self.start("slurmctld", "-D", "-c")
        else:
            self.start("slurmd", "-D")

    def start(self, *command):
        with open(self.logs / f"{command[0]}.log", "a") as log:
            process = subprocess.Popen([*self.enter(), *command], env=self.cluster.env, stdout=log,
                                       stderr=log)

        def end():
            if command[0] != "slurmctld":  # which would take 10 s to store what nobody wants
                process.terminate()
                try:
                    return process.wait(10)
                except subprocess.TimeoutExpired:
                    pass
            process.kill()
            return process.wait(10)
        self.cluster.at_end(end)

    def processes(self):
        """(pid, command line) of this machine's processes, without the one that holds it."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if not entry.name.isdigit() or os.readlink(entry / "ns" / "mnt") != self.namespace:
                    continue
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
            except OSError:
                continue
            pid = int(entry.name)
            if stat_of(pid) and pid != self.holder.pid:
                found.append((pid, command.decode(errors="replace")))
        return found

    def of_jobs(self):
        """Those without the daemons of Slurm and munge: command lines."""
        return [c for _, c in self.processes() if not c.startswith(DAEMONS)]

    def link(self, state):
        sh(f"ip link set {self.link_name} {state}")

    def lose_power(self):
        """Ends all its processes at once: they are stopped first, so that none sees another one's end."""
        self.link("down")
        stopped = set()

        def all_stopped():
            new = {pid for pid, _ in self.processes()} - stopped
            send(signal.SIGSTOP, new)
            stopped.update(new)
            return not new

        def dead():
            send(signal.SIGKILL, (pid for pid, _ in self.processes()))
            return not self.processes()
        await_true(all_stopped, 10, f"{self.name} stands still")
        await_true(dead, 10, f"{self.name} is dead")

    def come_back(self):
        """Its power is back, and its disk is unchanged."""
        self.link("up")
        self.path(f"{self.cluster.own}/munge/socket").unlink()
        self.begin()
        self.cluster.await_idle()


class Cluster:
    def __init__(self, nodes=3, cpus=2):
        self.ends = []
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="antdt-slurm-test-"))
        self.dir.chmod(0o755)
        self.at_end(lambda: shutil.rmtree(self.dir, ignore_errors=True))
        self.own, self.shared = self.dir / "own", self.dir / "shared"
        for directory in (self.own, self.shared):
            directory.mkdir(mode=0o755)
        os.chown(self.shared, UID, UID)
        (self.dir / "munge.key").write_bytes(os.urandom(128))
        path = f"{BIN}:{os.environ['PATH']}:/usr/sbin:/sbin"
        self.env = dict(os.environ, PATH=path, SLURM_CONF=str(self.dir / "slurm.conf"))
        self.user_env = {
            "PATH": path, "SLURM_CONF": self.env["SLURM_CONF"], "USER": USER, "LOGNAME": USER,
            "HOME": f"{self.own}/home", "TMPDIR": f"{self.own}/tmp", "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": f"{self.own}/run", "XDG_CACHE_HOME": f"{self.own}/home/cache"}
        self.nodes = {}
        try:
            self.begin(nodes, cpus)
        except BaseException:
            self.end()
            raise

    def begin(self, nodes, cpus):
        self.freezer = freezer()
        if self.freezer is not None:
            self.freezer /= self.dir.name
            self.freezer.mkdir()
            self.at_end(self.remove_cgroups)
        self.make_user()
        sh(SWITCH)
        self.login = Machine(self, "login")
        self.nodes = {f"n{i}": Machine(self, f"n{i}", i) for i in range(1, nodes + 1)}
        lines = "\n".join(f"NodeName={n.name} NodeAddr={n.address} CPUs={cpus} State=UNKNOWN"
                          for n in self.nodes.values())
        proctrack = "proctrack/linuxproc" if self.freezer is None else "proctrack/cgroup"
        (self.dir / "slurm.conf").write_text(
            CONF.format(launcher=LAUNCHER, own=self.own, proctrack=proctrack, nodes=lines))
        (self.dir / "cgroup.conf").write_text(CGROUP_CONF.format(own=self.own))
        for machine in self.machines():
            machine.begin()
        self.await_idle()

    def machines(self):
        return [self.login, *self.nodes.values()]

    def make_user(self):
        lines = {"passwd": f"{USER}:x:{UID}:{UID}::{self.own}/home:/bin/sh\n",
                 "group": f"{USER}:x:{UID}:\n"}
        for name, line in lines.items():
            copy = self.dir / name
            text = pathlib.Path("/etc", name).read_text()
            copy.write_text(text + ("" if text.endswith("\n") else "\n") + line)
            copy.chmod(0o644)
            sh(f"mount --bind {copy} /etc/{name}")
            self.at_end(lambda name=name: sh(f"umount /etc/{name}", check=False))

    def await_idle(self):
        try:
            await_true(lambda: self.slurm("sinfo", "-h", "-o", "%D %t").split() ==
                       [str(len(self.nodes)), "idle"], 30, "all nodes are idle")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.slurm('sinfo', '-N', '-l')}") from error

    def at_end(self, what):
        self.ends.append(what)

    def end(self):
        """Ends what the jobs have left, then the daemons."""
        for machine in self.machines() if self.nodes else []:
            send(signal.SIGKILL,
                 (pid for pid, c in machine.processes() if not c.startswith(DAEMONS)))
        while self.ends:
            self.ends.pop()()

    def remove_cgroups(self):
        def removed():
            for path, _, _ in os.walk(self.freezer, topdown=False):
                try:
                    os.rmdir(path)
                except OSError:
                    pass
            return not self.freezer.exists()
        await_true(removed, 10, f"{self.freezer} is removed")

    def as_user(self, machine, *command):
        """The words that run a command as the user, in the shared directory."""
        return [*machine.enter(), "env", "-C", str(self.shared), "setpriv", "--reuid", str(UID),
                "--regid", str(UID), "--clear-groups", "--inh-caps", "-all", "--bounding-set", "-all",
                *map(str, command)]

    def run(self, machine, *command, timeout=60):
        """A finished command of the user."""
        return subprocess.run(self.as_user(machine, *command), env=self.user_env, capture_output=True,
                              text=True, timeout=timeout)

    def slurm(self, *command):
        """The output of the user's command of Slurm on the login host."""
        done = self.run(self.login, *command)
        return done.stdout if done.returncode == 0 else f"{done.returncode}: {done.stderr}"

    def administer(self, *command):
        """A command of root on the login host, which must succeed."""
        done = subprocess.run([*self.login.enter(), *command], env=self.env, capture_output=True,
                              text=True, timeout=60)
        if done.returncode != 0:
            raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
