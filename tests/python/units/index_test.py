"""Where an index is kept by a process that has no directory of its own: only where nobody else writes."""
import contextlib
import io
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from antdt.data import Folder, _index


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
