"""Tests of reading a checkpoint."""
import json
import pathlib
import re
import struct
import tempfile
import unittest

import torch

import antdt
import antdt.torch as adt


class Reading(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="antdt-checkpoint-")
        self.addCleanup(folder.cleanup)
        self.run = pathlib.Path(folder.name)

    def write(self, name, state, value):
        folder = self.run / "checkpoints" / name
        folder.mkdir(parents=True)
        text = json.dumps({"schema": 1, "state": state}).encode().ljust(256)
        parts = [{"name": "python.json", "dtype": "bytes", "shape": [256], "first": 0, "bytes": 256},
                 {"name": "model/w", "dtype": "float32", "shape": [1, 2], "first": 256, "bytes": 8}]
        (folder / "parts.json").write_text(json.dumps({"schema": 1, "step": 7, "parts": parts}))
        (folder / "parts.bin").write_bytes(text + struct.pack("=2f", value, value))

    def test_the_newest_is_read_as_state_dicts(self):
        state = {"model": {"w": {"$tensor": "model/w"}}, "sched": {"last": 3}}
        self.write("s0000000009-l1-g1-w0.1", state, 1)
        self.write("s0000000003-l2-g2-w0.1", state, 2)  # of a later lineage
        self.assertEqual(antdt.Checkpoint(self.run).step, 7)
        found = adt.load(self.run)
        self.assertTrue(torch.equal(found["model"]["w"], torch.tensor([[2.0, 2.0]])))
        self.assertEqual(found["sched"], {"last": 3})

    def test_a_run_without_a_checkpoint_is_an_error_with_a_message(self):
        with self.assertRaisesRegex(FileNotFoundError, "has no checkpoint"):
            adt.load(self.run)

    def test_the_release_is_that_of_the_project(self):
        cmake = pathlib.Path(__file__).resolve().parents[3] / "CMakeLists.txt"
        version = re.search(r"project\(antdt VERSION ([0-9.]+)", cmake.read_text()).group(1)
        self.assertEqual(antdt.__version__, version)


if __name__ == "__main__":
    unittest.main()
