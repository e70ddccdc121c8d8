"""A libantdt that does not fit the package is refused with a message."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

from antdt import _abi


@unittest.skipUnless(shutil.which("cc"), "no C compiler")
class Library(unittest.TestCase):
    def check(self, text, words):
        with tempfile.TemporaryDirectory() as folder:
            source, library = pathlib.Path(folder) / "stub.c", pathlib.Path(folder) / "libstub.so"
            source.write_text(text)
            subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
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


if __name__ == "__main__":
    unittest.main()
