"""A libantdt that does not fit the package is refused with a message."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from antdt import _abi
from antdt.trace import _find_library

TRACER = pathlib.Path(_find_library.__file__).resolve().parent


@unittest.skipUnless(shutil.which("cc"), "no C compiler")
class Library(unittest.TestCase):
    @staticmethod
    def stub(folder, text):
        source, library = pathlib.Path(folder) / "stub.c", pathlib.Path(folder) / "libstub.so"
        source.write_text(text)
        subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
        return library

    def check(self, text, words):
        with tempfile.TemporaryDirectory() as folder:
            library = self.stub(folder, text)
            with mock.patch.dict(os.environ, ANTDT_LIBRARY=str(library)):
                with self.assertRaisesRegex(ImportError, words):
                    _abi.load()

    def test_a_library_of_another_version_of_the_interface(self):
        functions = "".join(f"void {name}(void) {{}}\n" for name in _abi._FUNCTIONS
                            if name != "antdt_abi_version")
        self.check(functions + "unsigned antdt_abi_version(void) { return 2; }",
                   r"another release than this package \(.*not of version 1.*Install both")

    def test_a_library_that_lacks_a_function(self):
        functions = "".join(f"void {name}(void) {{}}\n" for name in _abi._FUNCTIONS
                            if name not in ("antdt_abi_version", "antdt_evaluated"))
        self.check(functions + "unsigned antdt_abi_version(void) { return 1; }",
                   "it has no antdt_evaluated. Install both of the same release")

    def test_a_library_that_does_not_exist(self):
        with mock.patch.dict(os.environ, ANTDT_LIBRARY="/nowhere/libantdt.so.1"):
            with self.assertRaisesRegex(ImportError, "set ANTDT_LIBRARY.*\n.*nowhere"):
                _abi.load()


    def test_the_tracer_looks_nowhere_else_either(self):
        self.check_tracer("/nowhere/libantdt.so.1", "set ANTDT_LIBRARY.*Tried: /nowhere/libantdt")

    def test_the_tracer_is_told_of_another_release(self):
        with tempfile.TemporaryDirectory() as folder:
            library = self.stub(folder, "unsigned antdt_abi_version(void) { return 2; }")
            self.check_tracer(library, "another release than this tracer: its C interface")

    def check_tracer(self, library, words):
        """The tracer as sitecustomize loads it, by its place, gives up with one line."""
        text = """if True:
            import importlib.util, sys
            spec = importlib.util.spec_from_file_location("_antdt_trace", sys.argv[1] + "/__init__.py",
                                                          submodule_search_locations=[sys.argv[1]])
            sys.modules["_antdt_trace"] = importlib.util.module_from_spec(spec)
            import _antdt_trace._library
            try:
                _antdt_trace._library.Trace()
            except ImportError as error:
                print(error)
            assert "antdt" not in sys.modules"""
        ended = subprocess.run([sys.executable, "-c", text, str(TRACER)], capture_output=True, text=True,
                               env=dict(os.environ, ANTDT_LIBRARY=str(library)))
        self.assertEqual((ended.returncode, ended.stdout.count("\n")), (0, 1), ended.stdout + ended.stderr)
        self.assertRegex(ended.stdout, words)


class Places(unittest.TestCase):
    def setUp(self):
        env = {k: v for k, v in os.environ.items() if k != "ANTDT_LIBRARY"}
        patch = mock.patch.dict(os.environ, dict(env, ANTDT_AGENT_LIBRARY="/opt/antdt/lib/libantdt.so.1"), clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def test_the_library_of_the_agent_is_behind_those_of_the_package(self):
        places = _find_library.candidates()
        self.assertEqual(places[-2:], ["/opt/antdt/lib/libantdt.so.1", "libantdt.so.1"])
        self.assertEqual(places[0], str(TRACER.parent / "lib" / "libantdt.so.1"))
        self.assertEqual(places[1], str(TRACER.parent.parent.parent / "build" / "lib" / "libantdt.so.1"))
        self.assertEqual(len(places), 4)
        with mock.patch.dict(os.environ, ANTDT_LIBRARY="/mine"):
            self.assertEqual(_find_library.candidates(), ["/mine"])

    def test_a_tracer_that_is_installed_by_itself_finds_that_of_the_installation(self):
        with mock.patch.object(_find_library, "__file__", "/usr/local/share/antdt/trace/_find_library.py"):
            self.assertEqual(_find_library.candidates(), [
                "/usr/local/lib/libantdt.so.1", "/opt/antdt/lib/libantdt.so.1", "libantdt.so.1"])


if __name__ == "__main__":
    unittest.main()
