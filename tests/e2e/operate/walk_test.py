"""Does what docs/operations/walk.md tells a new operator to do, on three hosts in namespaces: each
command of the page is run, in order, and must end as the page says.

    python3 tests/e2e/operate/walk_test.py --write     # puts what the commands print into the page
"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

import shared  # noqa: F401 (finds what follows)
from harness import BIN, await_true, needs_trainer
from separate_hosts import INSIDE, Host, SeparateHosts, run_inside

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/operations/walk.md"
WRITE = "ANTDT_WRITE_WALK"
# "node1$ command": a command on that host. What follows, up to the next one, is what it printed.
COMMAND = re.compile(r"^(\w+)\$ (.*)$")
# In front of a command that ends with another status than 0: <!-- status 3 -->
STATUS = re.compile(r"^<!-- status (\d+) -->$")
# What a person would wait for before they go on: <!-- until: command -->
UNTIL = re.compile(r"^<!-- until: (.*) -->$")
# A file that the page shows: <!-- file: name -->, and the block after it.
# <!-- power off: node3 -->
POWER_OFF = re.compile(r"^<!-- power off: (\w+) -->$")
FILE = re.compile(r"^<!-- file: (\S+) -->$")
PATIENCE_S = 60


class Page:
    """The page as a list of steps, and the text that it becomes with new output."""

    def __init__(self, text):
        self.lines = text.splitlines()
        self.out = []

    def walk(self, run, until, power_off, put_file):
        status, name, block = 0, None, None
        skipping = False
        for line in self.lines:
            if block is not None and line == "```":
                if name:
                    put_file(name, "\n".join(block) + "\n")
                name, block, skipping = None, None, False
                self.out.append(line)
                continue
            if block is None:
                self.out.append(line)
                if line.startswith("```"):
                    block = []
                elif found := STATUS.match(line):
                    status = int(found[1])
                elif found := UNTIL.match(line):
                    until(found[1])
                elif found := POWER_OFF.match(line):
                    power_off(found[1])
                elif found := FILE.match(line):
                    name = found[1]
                continue
            block.append(line)
            if not name and (found := COMMAND.match(line)):
                skipping = True
                self.out.append(line)
                self.out.extend(run(found[1], found[2], status))
                status = 0
            elif not skipping:
                self.out.append(line)

    def text(self):
        return "\n".join(self.out) + "\n"


@needs_trainer
@unittest.skipUnless(INSIDE in os.environ, "runs in namespaces of its own only")
class Walk(SeparateHosts):
    def setUp(self):
        super().setUp()
        self.env["PATH"] = f"{BIN}:{os.environ['PATH']}"
        self.env["HOME"] = str(self.dir)
        self.env["NO_COLOR"] = "1"
        names = self.write("hosts", "".join(f"10.78.0.{n + 1} node{n}\n" for n in (1, 2, 3)))
        self.sh(f"mount --bind {names} /etc/hosts")
        self.addCleanup(lambda: self.sh("umount /etc/hosts"))
        for number in (1, 2, 3):
            host = Host(self, number + 1, f"node{number}")
            self.hosts[host.name] = host
            host.own_disk(self.runs, "2g")
            host.env.update(PATH=self.env["PATH"], HOME=str(self.dir))

    def shell(self, where, command):
        host = self.hosts.get(where)
        go_home = f"cd {self.dir} && "  # entering a namespace leads to its root
        enter, env = (host.enter(), host.env) if host else ([], self.env)
        if command.endswith("&"):
            with open(self.dir / f"{where}.log", "a") as log:
                process = subprocess.Popen([*enter, "bash", "-c", go_home + "exec " + command[:-1]], env=env,
                                           cwd=self.dir, stdout=log, stderr=log)
            self.addCleanup(lambda: (process.poll() is None and process.terminate(), process.wait(20)))
            return 0, ""
        done = subprocess.run([*enter, "bash", "-c", go_home + command], env=env, cwd=self.dir,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=300)
        return done.returncode, done.stdout.replace(str(self.dir), "/home/ada")

    def test_every_command_of_the_page_does_what_it_says(self):
        page = Page(PAGE.read_text())

        def run(where, command, status):
            code, out = self.shell(where, command)
            if code != status:
                logs = [p.read_text()[-1500:] for p in self.runs.glob("*/*.log")]
                self.fail("\n".join([f"{where}$ {command}: status {code}", out, *logs]))
            return out.splitlines()

        def until(command):
            try:
                await_true(lambda: self.shell("login", command)[0] == 0, PATIENCE_S, command)
            except AssertionError as error:
                said = [self.shell("login", command)[1]]
                said += [log.read_text()[-300:] for log in self.dir.glob("*.log")]
                raise AssertionError(f"{error}\n" + "\n".join(said)) from error

        def power_off(name):
            host = self.hosts[name]
            host.link("down")

            def none_left():
                for pid in host.processes():
                    self.kill(pid)
                return not host.processes()
            await_true(none_left, 20, f"{name} is dead")

        page.walk(run, until, power_off, self.write)
        if path := os.environ.get(WRITE):
            pathlib.Path(path).write_text(page.text())


class InNamespaces(unittest.TestCase):
    def test_the_walk(self):
        run_inside(self, __file__, "Walk")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        os.environ[WRITE] = str(PAGE)
        sys.argv.pop()
    unittest.main()
