"""antdt top on a pseudo-terminal: it shows a straggler, sorts, opens, evicts after a question, and leaves
the terminal as it was."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import termios
import unittest

from monitoring import Watched
from harness import ANTDT, await_true, needs_trainer

SLOW = '[[inject]]\nworkers = ["w1"]\nslowdown = 4.0\n'
ROWS, COLUMNS = 30, 200


class Screen:
    """A program on a pseudo-terminal, and the lines that it drew last."""

    def __init__(self, test, *args, **more):
        self.test = test
        self.text = ""
        pid, self.fd = pty.fork()
        if pid == 0:
            os.chdir(test.dir)
            os.execve(ANTDT, ["antdt", *args], {**test.env, "TERM": "xterm", **more})
        self.pid = pid
        self.code = None
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        test.addCleanup(self.end)

    def end(self):
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    def read(self):
        while select.select([self.fd], [], [], 0)[0]:
            try:
                self.text += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:  # the program has ended
                return

    def lines(self):
        """What was drawn last, without the terminal's sequences."""
        last = self.text.rsplit("\x1b[H", 1)[-1]
        return re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", last).replace("\r", "")

    def await_text(self, pattern, seconds=30):
        def there():
            self.read()
            return re.search(pattern, self.lines())
        try:
            return await_true(there, seconds, pattern)
        except AssertionError:
            self.test.fail(f"no {pattern!r} on\n{self.lines()}")

    def waits_for_lines(self):
        """Whether the terminal gives whole lines, as usual, and not each key."""
        return bool(termios.tcgetattr(self.fd)[3] & termios.ICANON)

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def await_end(self):
        def ended():
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
            return pid
        await_true(ended, 20, "it has ended")
        self.read()
        return self.code


@needs_trainer
class Top(Watched):
    def test_top_shows_sorts_opens_and_evicts(self):
        self.start(SLOW)
        self.await_event("phase")
        screen = Screen(self, "top", NO_COLOR="")
        screen.await_text(r"watched-.*w1 .*straggler, \d+\.\d times as slow")
        self.assertFalse(screen.waits_for_lines())
        first = screen.lines().splitlines()
        at = next(i for i, line in enumerate(first) if "CPU" in line)
        self.assertIn(" w1 ", first[at + 1], "the straggler is on top")
        screen.await_text(r" w0 .*\d+% .*\d+%  waiting for others")
        self.assertIn("\x1b[7m", screen.text, "colours on a terminal")
        screen.type("n")
        screen.await_text(r"sorted by names")
        screen.await_text(r"w0 .*\n.*w1 ")
        screen.type("\x1b[B\r")
        screen.await_text(r"antdt logs \S+ --worker w1 -f")
        screen.type("\x1b")
        screen.await_text(r"samples/s")
        screen.type("e")
        screen.await_text(r"let w1 of watched-\S+ leave .*\? y: yes")
        screen.type("n")
        screen.await_text(r"w1 stays")
        self.assertEqual(self.states(), {"w0": "joined", "w1": "joined"})
        screen.type("e")
        screen.await_text(r"let w1 of")
        screen.type("y")
        await_true(lambda: self.states().get("w1") == "removed", 30, "w1 has left")
        self.assertIn("antdt top", [e["text"] for e in self.events("evict")][-1])
        screen.type("q")
        self.assertEqual(screen.await_end(), 0)
        self.assertTrue(screen.text.endswith("\x1b[?25h\x1b[?1049l"), repr(screen.text[-80:]))
        self.assertTrue(screen.waits_for_lines(), "the terminal is as it was")

        plain = Screen(self, "top", NO_COLOR="1")
        plain.await_text(r"watched-.*w0 ")
        os.kill(plain.pid, signal.SIGTERM)
        self.assertEqual(plain.await_end(), 0)
        self.assertIsNone(re.search(r"\x1b\[[0-9;]*m", plain.text), "no colours with NO_COLOR")
        once = self.antdt("top", timeout=60)
        self.assertEqual(once.returncode, 0, once.stderr)
        self.assertRegex(once.stdout, r"watched-.*w0 ")
        self.assertNotIn("\x1b", once.stdout)
        self.stop()
        self.assertIn("none of your jobs is running", self.antdt("top", "--once", timeout=60).stdout)
        self.assert_nothing_left()

    def states(self):
        status = self.antdt("status", self.run_dir, "--json", timeout=60)
        return {w["id"]: w["state"] for w in json.loads(status.stdout)["workers"]}


if __name__ == "__main__":
    unittest.main()
