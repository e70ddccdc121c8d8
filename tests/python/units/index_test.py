"""Where an index is kept by a process that has no directory of its own: only where nobody else writes."""
import contextlib
import io
import os
import pathlib
import stat
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest
from unittest import mock

from antdt.data import Folder, WebDataset, _index, _progress, progress


class Progress(unittest.TestCase):
    """What is told of opening data, by a library that keeps it."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.dir = pathlib.Path(temporary.name)
        self.data = self.dir / "data"
        (self.data / "cat").mkdir(parents=True)
        (self.data / "cat" / "1.txt").write_text("meow")
        self.told, self.at_call = [], lambda: None
        library = mock.Mock()
        library.antdt_data_progress.side_effect = self.hear
        for patch in (mock.patch.dict(os.environ, XDG_CACHE_HOME=str(self.dir / "cache")),
                      mock.patch.object(_progress, "_library", lambda: library)):
            patch.start()
            self.addCleanup(patch.stop)

    def hear(self, path, done, total, flags):
        self.told.append((path and path.decode(), done, total, *["waits"][:flags]))
        self.at_call()
        return 0

    def test_a_pass_and_a_look_at_an_index_are_told_and_that_they_are_over(self):
        Folder(self.data)
        self.assertIn((str(self.data / "cat"), len("cat") + len("1.txt"), 0), self.told)
        self.assertEqual(self.told[-1], (None, 0, 0))
        self.told.clear()
        Folder(self.data)  # its index is there
        self.assertEqual([path for path, *_ in self.told],
                         [str(self.data), str(self.data / "cat"), None])

    def test_all_bytes_of_all_tars_are_counted(self):
        paths = [self.dir / "a.tar", self.dir / "b.tar"]
        for path in paths:
            with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
                tar.add(self.data / "cat" / "1.txt", "1.txt")
        WebDataset(paths)
        size = [path.stat().st_size for path in paths]
        self.assertIn((str(paths[0]), 512, sum(size)), self.told)
        self.assertIn((str(paths[1]), size[0] + 512, sum(size)), self.told)

    def test_who_waits_tells_how_far_the_builder_is(self):
        lock = str(self.dir / "x.lock")
        heard = threading.Event()

        def waits():
            with _progress.building(lock):
                pass

        def look():
            if self.told[-1] == (lock, 7, 9, "waits"):
                heard.set()
        waiter = threading.Thread(target=waits)
        with _progress.building(lock) as tell:
            self.at_call = look
            waiter.start()
            tell("a file", 7, 9)
            self.assertTrue(heard.wait(20))
        waiter.join(20)
        self.assertFalse(waiter.is_alive())

    def test_a_program_may_tell_of_what_it_opens_itself(self):
        progress(self.data, 3, 4)
        progress(None)
        self.assertEqual(self.told, [(str(self.data), 3, 4), (None, 0, 0)])


class WithoutHome(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.shared = pathlib.Path(temporary.name) / "shared"
        self.data = pathlib.Path(temporary.name) / "data" / "cat"
        self.shared.mkdir()
        self.data.mkdir(parents=True)
        (self.data / "1.txt").write_text("meow")
        self.place = self.shared / f"antdt-index-{os.getuid()}"
        env = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME")}
        for patch in (mock.patch.dict(os.environ, env, clear=True),
                      mock.patch.object(_index, "_SHARED", str(self.shared))):
            patch.start()
            self.addCleanup(patch.stop)

    def refused(self):
        """The folder that is used instead of self.place, and what was said."""
        with contextlib.redirect_stderr(io.StringIO()) as said:
            folder = _index.cache_folder()
        self.assertNotEqual(folder, str(self.place))
        info = os.lstat(folder)
        self.assertEqual((stat.S_IMODE(info.st_mode), info.st_uid), (0o700, os.getuid()))
        return folder, said.getvalue()

    def check_refused(self):
        before = sorted(self.shared.rglob("*"))
        folder, said = self.refused()
        self.assertIn(f"{self.place} is not a directory that only this user writes to", said)
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(len(Folder(self.data.parent)), 1)
        self.assertEqual(sorted(self.shared.rglob("*")), before)
        self.assertEqual(self.refused()[0], folder, "one for a process")

    def test_it_is_made_for_this_user_alone_and_used_again(self):
        for _ in range(2):
            self.assertEqual(_index.cache_folder(), str(self.place))
            self.assertEqual(stat.S_IMODE(self.place.stat().st_mode), 0o700)
        Folder(self.data.parent)
        self.assertEqual([path.suffix for path in self.place.iterdir() if path.suffix != ".lock"], [".pyidx"])

    def test_a_link_of_somebody_elses_is_not_followed(self):
        elsewhere = self.shared / "elsewhere"
        elsewhere.mkdir(0o700)
        self.place.symlink_to(elsewhere)
        self.check_refused()

    def test_a_directory_where_others_write_is_not_used(self):
        self.place.mkdir()
        self.place.chmod(0o770)
        self.check_refused()

    def test_a_file_is_not_used(self):
        self.place.write_text("")
        self.check_refused()

    @unittest.skipUnless(os.getuid() == 0, "only root gives a directory to others")
    def test_a_directory_of_another_user_is_not_used(self):
        self.place.mkdir(0o700)
        os.chown(self.place, 12345, 12345)
        self.check_refused()

    def test_a_folder_of_one_process_ends_with_it(self):
        self.place.write_text("")
        text = ("import sys; from antdt.data import _index; _index._SHARED = sys.argv[1]\n"
                "print(_index.cache_folder())")
        ended = subprocess.run([sys.executable, "-c", text, str(self.shared)], capture_output=True, text=True)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertTrue(os.path.basename(ended.stdout).startswith("antdt-index-"), ended.stdout)
        self.assertFalse(os.path.exists(ended.stdout.strip()))


if __name__ == "__main__":
    unittest.main()
