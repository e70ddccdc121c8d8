#!/usr/bin/env python3
"""Tests of the preloaded library with which other tests make a disk slow."""
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

LIBRARY = os.environ["ANTDT_SLOW_PATH"]


class SlowPath(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="antdt-slow-"))
        self.addCleanup(shutil.rmtree, self.dir)
        self.slow = self.dir / "slow"
        self.slow.mkdir()
        self.control = self.dir / "control"

    def start(self, code, **more):
        env = dict(os.environ, LD_PRELOAD=LIBRARY, ANTDT_TEST_SLOW_PATH=str(self.slow),
                   ANTDT_TEST_SLOW_CONTROL=str(self.control))
        # "open" is a call of the C library, "stdio" a stream of it.
        return subprocess.Popen([sys.executable, "-S", "-c", code], env=env, cwd=self.dir,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)

    def finished(self, process):
        out, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0, err)
        return out.strip()

    def run_code(self, code):
        return self.finished(self.start(code))

    def test_without_an_order_nothing_happens(self):
        self.assertEqual(self.run_code("open('slow/a', 'w').write('x' * 9)"
                                       "; print(open('slow/a').read())"), "x" * 9)

    def test_a_stalled_call_waits_until_the_order_is_taken_back(self):
        self.control.write_text("stall")
        for code in ("open('slow/a', 'w')", "import os; os.mkdir('slow/../slow/d')",
                     "import os; os.listdir('slow')"):
            process = self.start(f"print('begins', flush=True); {code}")
            self.assertEqual(process.stdout.readline().strip(), "begins")
            with self.assertRaises(subprocess.TimeoutExpired):
                process.wait(timeout=0.2)
            self.control.write_text("")
            self.finished(process)
            self.control.write_text("stall")

    def test_it_concerns_open_descriptors_and_streams_of_the_c_library(self):
        code = """
import ctypes, os
c = ctypes.CDLL(None)
c.fopen.restype = ctypes.c_void_p
stream = c.fopen(b'slow/s', b'w')
fd = os.open('slow/a', os.O_CREAT | os.O_WRONLY)
open('control', 'w').write('fail ENOSPC')
def error(call):
    try: call()
    except OSError as e: return e.errno
print(error(lambda: os.write(fd, b'x')), error(lambda: os.fsync(fd)),
      c.fwrite(b'x', 1, 1, ctypes.c_void_p(stream)), c.fopen(b'slow/t', b'w'))
"""
        self.assertEqual(self.run_code(code), "28 28 0 None")

    def test_other_paths_are_let_alone(self):
        self.control.write_text("fail EIO")
        self.assertEqual(self.run_code("open('slower', 'w').write('x'); print(open('slower').read())"),
                         "x")

    def test_the_rate_is_that_of_all_calls_together(self):
        self.control.write_text("rate 1000000")
        begin = time.monotonic()
        self.run_code("import os; fd = os.open('slow/a', os.O_CREAT | os.O_RDWR)\n"
                      "for i in range(5): os.write(fd, b'x' * 100000)")
        self.assertGreaterEqual(time.monotonic() - begin, 0.5)

    def test_a_database_stands_still_with_its_disk(self):
        sqlite3.connect(self.slow / "d.db").execute("create table t (x)")
        process = self.start("import sqlite3; d = sqlite3.connect('slow/d.db'); print('open', flush=True)\n"
                             "input = __import__('sys').stdin.readline; input()\n"
                             "d.execute('insert into t values (1)'); d.commit()",
                             stdin=subprocess.PIPE)
        process.stdout.readline()
        self.control.write_text("stall")
        process.stdin.write("\n")
        process.stdin.flush()
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(timeout=0.2)
        self.control.write_text("")
        self.finished(process)


if __name__ == "__main__":
    unittest.main()
