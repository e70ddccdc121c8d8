"""Several users of one agent: each job runs as its user, and no user can reach another's job. The
users are lines in copies of /etc/passwd and /etc/group in this test's own mount namespace. The test
is skipped if the namespace cannot be made."""

import atexit
import json
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import shared  # noqa: F401 (finds what follows)
import jobs
from harness import ANTDT, BIN, EndToEnd, await_true, needs_trainer, processes_of
from hosts import Hosts, free_port

MARK = "ANTDT_TEST_OWN_MOUNTS"
USERS = {"antdt-alice": 54301, "antdt-bob": 54302, "antdt-carol": 54303}
ALICE, BOB, CAROL = USERS
SHARED_GROUP = 54310  # of alice, beside her own
ADMINS = 54311        # carol is one
# The capabilities that the unit of systemd leaves to antdtd (packaging/antdtd.service.in).
CAPABILITIES = "setuid,setgid,kill,chown"
ROWS = 4000


def own_namespace():
    """Runs this test again in a mount namespace of its own, if that is possible here."""
    if MARK in os.environ or os.geteuid() != 0:
        return
    unshare = ["unshare", "--mount", "--propagation", "private"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode == 0:
        os.execvpe(unshare[0], [*unshare, sys.executable, __file__, *sys.argv[1:]],
                   dict(os.environ, **{MARK: "1"}))


def setUpModule():
    if MARK not in os.environ:
        raise unittest.SkipTest("only root can make users in a mount namespace of its own")
    copies = pathlib.Path(tempfile.mkdtemp(prefix="antdt-etc-"))
    atexit.register(shutil.rmtree, copies, True)
    copies.chmod(0o711)
    for name, uid in USERS.items():
        (copies / name).mkdir(mode=0o700)
        os.chown(copies / name, uid, uid)
    lines = {"passwd": "".join(f"{n}:x:{u}:{u}::{copies / n}:/bin/sh\n"
                               for n, u in USERS.items()),
             "group": "".join(f"{n}:x:{u}:\n" for n, u in USERS.items()) +
             f"antdt-shared:x:{SHARED_GROUP}:{ALICE}\nantdt-admin:x:{ADMINS}:{CAROL}\n"}
    for name, more in lines.items():
        text = pathlib.Path("/etc", name).read_text()
        copy = copies / name
        copy.write_text(text + ("" if text.endswith("\n") else "\n") + more)
        copy.chmod(0o644)
        subprocess.run(["mount", "--bind", str(copy), f"/etc/{name}"], check=True)
    assert pwd.getpwnam(ALICE).pw_uid == USERS[ALICE]


class UsersCase(Hosts):
    def setUp(self):
        super().setUp()
        for directory in (self.dir, self.runtime):
            directory.chmod(0o711)
        for name in USERS:
            self.make_for(name, self.home(name))
            self.make_for(name, self.home(name) / "run")

    def home(self, user):
        return self.dir / "home" / user

    @staticmethod
    def make_for(user, path):
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o700)
        os.chown(path, USERS[user], USERS[user])

    def keys_of(self, *users):
        """The agent's directory of keys; each user has a copy of their own keys."""
        made = self.dir / "keys"
        for user in users:
            self.assert_ok(self.antdt("keygen", "--dir", made, "--agent", "127.0.0.1", "--user",
                                      user))
        for user in users:
            keys = self.home(user) / "keys"
            shutil.copytree(made / "users" / user, keys)
            for path in (keys, *keys.rglob("*")):
                os.chown(path, USERS[user], USERS[user])
        return made / "hosts" / "127.0.0.1"

    def assert_ok(self, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def root_agent(self, keys, *more):
        """An agent of root with the rights of the packaged unit, and no others."""
        rights = ",".join(f"+{c}" for c in CAPABILITIES.split(","))
        return self.start_agent(["setpriv", "--bounding-set", f"-all,{rights}", "--inh-caps",
                                 "-all"], "root", keys, *more)

    def start_agent(self, before, name, keys, *more):
        port = free_port()
        log = open(self.dir / f"{name}.log", "w")
        process = subprocess.Popen(
            [*before, str(BIN / "antdtd"), "--listen", f"127.0.0.1:{port}", "--keys", str(keys),
             "--state-dir", str(self.state(name)), "--host-name", name, "--socket-dir",
             str(self.runtime / name), "--address", "127.0.0.1", *more],
            env=dict(self.env, SECRET="of root"), stdout=log, stderr=subprocess.STDOUT)
        self.addCleanup(log.close)

        def end():
            process.terminate()
            process.wait(10)

        self.addCleanup(end)
        await_true(lambda: self.listens("127.0.0.1", port, process), 10,
                   f"{name} listens: {pathlib.Path(log.name).read_text()}")
        return f"127.0.0.1:{port}"

    def state(self, name):
        return self.dir / f"{name}-state"

    def as_user(self, user, *command):
        return ["setpriv", "--reuid", str(USERS[user]), "--regid", str(USERS[user]),
                "--init-groups", "--inh-caps", "-all", "--bounding-set", "-all",
                *map(str, command)]

    def env_of(self, user):
        home = self.home(user)
        return {"PATH": os.environ["PATH"], "HOME": str(home), "USER": user,
                "XDG_RUNTIME_DIR": str(home / "run"), "XDG_CACHE_HOME": str(home / "cache"),
                "TMPDIR": str(home)}

    def run_as(self, user, *command, timeout=60):
        return subprocess.run(self.as_user(user, *command), env=self.env_of(user),
                              cwd=self.home(user), capture_output=True, text=True,
                              timeout=timeout)

    def start_as(self, user, text, name="work"):
        """`antdt run` of that user in the background: (process, run directory)."""
        home = self.home(user)
        job = home / f"{name}.toml"
        job.write_text(text)
        run_dir = home / name
        process = subprocess.Popen(
            self.as_user(user, ANTDT, "run", job, "--run-dir", run_dir), env=self.env_of(user),
            cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.poll() is None and process.kill(),
                                 process.communicate()))
        return process, run_dir

    def await_log(self, process, run_dir, text, name="w0.1.out"):
        log = run_dir / "logs" / name

        def look():
            if process.poll() is not None:
                self.fail("the job has ended: " + "".join(process.communicate()) +
                          (self.dir / "root.log").read_text())
            return log.exists() and text in log.read_text()
        await_true(look, 60, f"{text} in {log}")
        return log.read_text()

    def cluster_of(self, user, host):
        return self.cluster([host], self.home(user) / "keys")

    @staticmethod
    def script(text, more=""):
        return SCRIPT.format(script=json.dumps(text)) + more


class Keygen(EndToEnd):
    def keygen(self, *args):
        made = self.antdt("keygen", "--dir", self.dir / "keys", *args)
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)

    def files(self, *parts):
        return sorted(p.name for p in self.dir.joinpath("keys", *parts).iterdir())

    def test_each_agent_has_a_secret_of_its_own_and_knows_the_users(self):
        self.keygen("--agent", "node1", "--agent", "node2", "--user", BOB)
        self.keygen("--user", ALICE)
        secrets = {self.dir.joinpath("keys", "hosts", host, "agent.key").read_text()
                   for host in ("node1", "node2")}
        self.assertEqual(len(secrets), 2)
        self.assertEqual(self.files("agents"), ["node1.pub", "node2.pub"])
        self.assertEqual(self.files("users", ALICE, "agents"), ["node1.pub", "node2.pub"])
        for host in ("node1", "node2"):
            self.assertEqual(self.files("hosts", host, "authorized"),
                             [f"{ALICE}.pub", f"{BOB}.pub"])
            self.assertEqual(self.dir.joinpath("keys", "hosts", host, "agent.pub").read_text(),
                             self.dir.joinpath("keys", "agents", f"{host}.pub").read_text())
        self.assertFalse(self.dir.joinpath("keys", "agent.key").exists())
        # A user who is removed here is removed from the files for the hosts.
        self.dir.joinpath("keys", "authorized", f"{BOB}.pub").unlink()
        self.keygen("--user", ALICE)
        self.assertEqual(self.files("hosts", "node1", "authorized"), [f"{ALICE}.pub"])

    def test_a_key_of_an_earlier_release_gets_its_users_name(self):
        self.keygen()
        own = self.dir.joinpath("keys", "authorized", f"{pwd.getpwuid(os.geteuid()).pw_name}.pub")
        nameless = own.with_name("job.pub")
        own.rename(nameless)
        self.keygen()
        self.assertEqual(self.files("authorized"), [own.name])

    def test_names_that_lead_elsewhere_are_refused(self):
        for option in ("--user", "--agent"):
            for name in ("../x", ".hidden", "a/b"):
                made = self.antdt("keygen", "--dir", self.dir / "keys", option, name)
                self.assertNotEqual(made.returncode, 0, (option, name))


class Isolation(UsersCase):
    def test_a_job_runs_as_its_user_and_others_cannot_get_at_it(self):
        host = self.root_agent(self.keys_of(ALICE, BOB))
        process, run_dir = self.start_as(ALICE, self.script(TELL + WAIT, self.cluster_of(
            ALICE, host)))
        said = self.await_log(process, run_dir, "told")
        self.check_identity(said)
        pids = {p: c for p, c in processes_of(str(run_dir)) if p != process.pid}
        for path in run_dir.rglob("*"):
            try:
                owner = path.lstat().st_uid
            except FileNotFoundError:  # a temporary file of the job daemon
                continue
            self.assertEqual(owner, USERS[ALICE], path)
        self.check_bob_is_kept_out(run_dir, pids)
        # His use of the same agent does not disturb her.
        other, other_dir = self.start_as(BOB, self.script("id -u; echo done", self.cluster_of(
            BOB, host)))
        out, err = other.communicate(timeout=60)
        self.assertEqual(other.returncode, 0, out + err + (other_dir / "jobd.log").read_text())
        self.assertEqual((other_dir / "logs" / "w0.1.out").read_text().split(),
                         [str(USERS[BOB]), "done"])
        self.assertIsNone(process.poll(), "her job runs on")
        self.assert_ok(self.run_as(ALICE, ANTDT, "stop", run_dir, "--grace", "5s"))
        process.communicate(timeout=60)
        await_true(lambda: not any(pathlib.Path(f"/proc/{p}").exists() for p in pids), 20,
                   "her processes are gone")
        await_true(lambda: not list((self.state("root") / "jobs").iterdir()), 20,
                   "the agent has forgotten both jobs")

    def check_identity(self, said):
        told = dict(re.findall(r"^(\w+)=(.*)$", said, re.M))
        uid = str(USERS[ALICE])
        self.assertEqual(told["uid"], uid)
        self.assertEqual(told["gid"], uid)
        self.assertEqual(set(told["groups"].split()), {uid, str(SHARED_GROUP)})
        self.assertEqual(told["umask"], "0077")
        self.assertEqual(told["home"], pwd.getpwnam(ALICE).pw_dir)
        self.assertEqual((told["user"], told["logname"], told["shell"]), (ALICE, ALICE, "/bin/sh"))
        self.assertEqual(told["secret"], "")
        fds = said.split("end of fds")[0].split("\n")
        self.assertEqual([fd for fd in fds if fd.isdigit()], ["0", "1", "2"])
        self.assertEqual(told["caps"].split(), ["0000000000000000"] * 3)
        self.assertEqual(told["nonew"], "1")

    def check_bob_is_kept_out(self, run_dir, pids):
        def fails(*command):
            done = self.run_as(BOB, *command)
            self.assertNotEqual(done.returncode, 0, (command, done.stdout, done.stderr))
            return done.stdout + done.stderr

        for path in (run_dir / "logs" / "w0.1.out", run_dir / "summary.json",
                     run_dir / "checkpoints", self.home(ALICE) / "keys" / "job.key"):
            fails("ls", "-d", path)
        for pid in pids:
            fails("cat", f"/proc/{pid}/environ")
            fails("sh", "-c", f"kill -0 {pid}")
        for command in (("status", run_dir), ("stop", run_dir), ("evict", run_dir, "w0"),
                        ("logs", run_dir)):
            said = fails(ANTDT, *command)
            self.assertIn("Permission denied", said)
            self.assertIn(f"belongs to {ALICE}: run the command as {ALICE}", said)
        sockets = [p for p in (*self.runtime.rglob("*"), *self.home(ALICE).rglob("*"))
                   if p.is_socket()]
        names = {p.name for p in sockets}
        self.assertLessEqual({f"w{USERS[ALICE]}.sock", "workers.sock", "jobd.sock"}, names)
        for path in sockets:
            self.assertIn("PermissionError", fails(sys.executable, "-c", CONNECT, path))
        kept = [p for place in (self.state("root"), self.runtime)
                for p in place.rglob("*") if p.is_file()]
        self.assertTrue([p for p in kept if p.name == "start"], kept)
        for path in kept:
            fails("cat", path)
        fails("ls", self.state("root") / "jobs")

    @needs_trainer
    def test_logs_checkpoints_and_the_model_are_the_users(self):
        self.assert_ok(self.antdt("data", "synth", "criteo", "--rows", ROWS, "--seed", 5, "--out",
                                  self.dir / "data"))
        (self.dir / "data").chmod(0o755)
        for path in (self.dir / "data").iterdir():
            path.chmod(0o644)
        host = self.root_agent(self.keys_of(ALICE))
        process, run_dir = self.start_as(ALICE, jobs.ctr(
            self.dir / "data" / "train.tsv", self.dir / "data" / "eval.tsv", workers=2,
            extra='[checkpoint]\nevery = "200ms"\n' + self.cluster_of(ALICE, host)))
        out, err = process.communicate(timeout=120)
        log = (run_dir / "jobd.log").read_text() if (run_dir / "jobd.log").exists() else ""
        self.assertEqual(process.returncode, 0, out + err + log)
        self.assertNotIn("Permission denied", log)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertEqual(summary["state"], "done")
        self.assertEqual(summary["failures"], [])
        kept = [p for p in (run_dir / "checkpoints").rglob("*") if p.is_file()]
        self.assertTrue(kept)
        for path in kept:
            self.assertEqual(path.stat().st_uid, USERS[ALICE], path)


class NotRoot(UsersCase):
    def test_a_job_whose_workers_could_not_use_its_run_directory_does_not_start(self):
        # One key for all and an agent with a user of its own: an earlier release's unit was like
        # that.
        made = self.home(CAROL) / "agent-keys"
        self.assert_ok(self.run_as(CAROL, ANTDT, "keygen", "--dir", made))
        keys = self.home(ALICE) / "keys"
        shutil.copytree(made, keys)
        for path in (keys, *keys.rglob("*")):
            os.chown(path, USERS[ALICE], USERS[ALICE])
        for place in (self.runtime, self.dir):
            os.chmod(place, 0o777)
        host = self.start_agent(self.as_user(CAROL), "carol", made)
        touch = self.dir / "touched"
        process, run_dir = self.start_as(ALICE, self.script(
            f"echo said; touch {touch}", self.cluster_of(ALICE, host)))
        out, err = process.communicate(timeout=60)
        log = run_dir / "logs" / "w0.1.out"
        if touch.exists():
            self.assertTrue(log.exists(), f"a worker ran and its log is nowhere: {out}{err}")
        self.assertFalse(touch.exists(), "a worker ran as another user than who started the job")
        self.assertNotEqual(process.returncode, 0)
        self.assertIn(f"{host}: as '{CAROL}'", out + err)

    def test_an_agent_that_is_not_roots_refuses_the_job_of_another_before_anything_starts(self):
        keys = self.keys_of(ALICE, CAROL)
        mine = self.home(CAROL) / "agent-keys"
        shutil.copytree(keys, mine)
        # The layout of antdt keygen in earlier releases: a key that names no user.
        (mine / "authorized" / f"{ALICE}.pub").rename(mine / "authorized" / "job.pub")
        for path in (mine, *mine.rglob("*")):
            os.chown(path, USERS[CAROL], USERS[CAROL])
        for place in (self.runtime, self.dir):
            os.chmod(place, 0o777)
        host = self.start_agent(self.as_user(CAROL), "carol", mine)
        touch = self.home(ALICE) / "touched"
        process, run_dir = self.start_as(ALICE, self.script(f"touch {touch}", self.cluster_of(
            ALICE, host)))
        out, err = process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn(f"{host}: as '{CAROL}'", out + err)
        self.assertIn("run antdtd as root", out + err)
        self.assertFalse(touch.exists())
        self.assertFalse((run_dir / "logs").exists())
        # If the key names its user, the agent itself refuses.
        (mine / "authorized" / "job.pub").rename(mine / "authorized" / f"{ALICE}.pub")

        def refused():
            process, _ = self.start_as(ALICE, self.script("true", self.cluster_of(ALICE, host)),
                                       "second")
            out, err = process.communicate(timeout=60)
            self.assertNotEqual(process.returncode, 0)
            return f"the key {ALICE} is that of the user '{ALICE}'" in out + err
        await_true(refused, 20, "the agent says whose key it is")
        # The jobs of the agent's own user run.
        process, run_dir = self.start_as(CAROL, self.script("id -u", self.cluster_of(CAROL, host)))
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, out + err)
        self.assertEqual((run_dir / "logs" / "w0.1.out").read_text().strip(), str(USERS[CAROL]))


class Administrators(UsersCase):
    def through(self, user, host, *args):
        return self.run_as(user, ANTDT, *args, "--agent", host, "--keys", self.home(user) / "keys")

    @needs_trainer
    def test_only_an_administrator_evicts_from_and_stops_the_job_of_another(self):
        self.assert_ok(self.antdt("data", "synth", "criteo", "--rows", 20000, "--seed", 5, "--out",
                                  self.dir / "data"))
        (self.dir / "data").chmod(0o755)
        for path in (self.dir / "data").iterdir():
            path.chmod(0o644)
        host = self.root_agent(self.keys_of(ALICE, BOB, CAROL))
        process, run_dir = self.start_as(ALICE, jobs.ctr(
            self.dir / "data" / "train.tsv", self.dir / "data" / "eval.tsv", workers=2, epochs=9,
            extra='[[inject]]\nworkers = ["*"]\ndelay_per_sample = "200us"\n' +
            self.cluster_of(ALICE, host)))

        def trains():
            if process.poll() is not None:
                self.fail("the job has ended: " + "".join(process.communicate()))
            answer = self.run_as(ALICE, ANTDT, "status", run_dir, "--json")
            return answer.returncode == 0 and json.loads(answer.stdout).get(
                "samples_done", 0) > 0
        await_true(trains, 60, "it trains")
        listed = self.through(CAROL, host, "jobs", "--json")
        self.assert_ok(listed)
        (job,) = json.loads(listed.stdout)
        self.assertEqual((job["user"], job["processes"], job["attached"]), (ALICE, 2, True))
        self.assertEqual(json.loads(self.through(BOB, host, "jobs", "--json").stdout), [])
        for order in (("stop", job["job"]), ("evict", job["job"], "w1")):
            refused = self.through(BOB, host, *order)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("antdt-admin", refused.stderr)
        wrong = self.through(CAROL, host, "evict", job["job"], "w9")
        self.assertNotEqual(wrong.returncode, 0, "the job daemon has no such worker")
        self.assertIn("w9", wrong.stderr)
        self.assert_ok(self.through(CAROL, host, "evict", job["job"], "w1"))
        self.assert_ok(self.through(CAROL, host, "stop", job["job"], "--grace", "20s", "--reason",
                                    "maintenance"))
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, out + err)
        events = (run_dir / "events.jsonl").read_text()
        self.assertIn(f"asked by the administrator {CAROL}@root: maintenance", events)
        self.assertIn("w1, asked by the administrator", events)


SCRIPT = """
schema = 1
[job]
name = "users"
[roles.worker]
count = 1
protocol = "exec"
command = ["sh", "-c", {script}]
"""
TELL = r"""
echo uid=$(id -u); echo gid=$(id -g); echo groups=$(id -G); echo umask=$(umask)
echo home=$HOME; echo user=$USER; echo logname=$LOGNAME; echo shell=$SHELL
echo secret=$SECRET
ls /proc/$$/fd; echo end of fds
echo caps=$(awk '/Cap(Prm|Eff|Amb)/ {print $2}' /proc/$$/status)
echo nonew=$(awk '/NoNewPrivs/ {print $2}' /proc/$$/status)
echo told
"""
WAIT = "while :; do sleep 1; done\n"
CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"


if __name__ == "__main__":
    own_namespace()
    unittest.main()
