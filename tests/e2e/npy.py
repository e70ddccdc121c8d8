"""Reads the output of `antdt model export`: index.json and .npy files, as docs/model-export.md
specifies."""

import array
import ast
import json
import math
import pathlib
import struct
import sys

TYPES = {"<f4": "f", "<f8": "d", "<u8": "Q", "<i8": "q"}


def read_npy(path):
    """(shape, numbers in C order) of one array."""
    data = pathlib.Path(path).read_bytes()
    assert data[:8] == b"\x93NUMPY\x01\x00", f"{path}: neither .npy nor format 1.0"
    (length,) = struct.unpack_from("<H", data, 8)
    assert (10 + length) % 64 == 0, f"{path}: its numbers begin at {10 + length}"
    header = data[10:10 + length].decode("ascii")
    assert header.endswith("\n"), path
    said = ast.literal_eval(header)
    assert said.keys() == {"descr", "fortran_order", "shape"} and not said["fortran_order"], said
    numbers = array.array(TYPES[said["descr"]])
    numbers.frombytes(data[10 + length:])
    if sys.byteorder == "big":
        numbers.byteswap()
    assert len(numbers) == math.prod(said["shape"]), f"{path}: {len(numbers)}, {said['shape']}"
    return said["shape"], numbers


class Model:
    """One export. `parameters`: {name: (shape, numbers)}; `tables`: {name: {key: values}}."""

    def __init__(self, directory):
        directory = pathlib.Path(directory)
        self.index = json.loads((directory / "index.json").read_text())
        assert self.index["schema"] == 1, self.index
        files = {"index.json"}
        self.parameters = {}
        for entry in self.index["parameters"]:
            shape, numbers = read_npy(directory / entry["file"])
            assert list(shape) == entry["shape"], entry
            self.parameters[entry["name"]] = (shape, numbers)
            files.add(entry["file"])
        self.tables = {}
        for entry in self.index["tables"]:
            key_shape, keys = read_npy(directory / entry["keys_file"])
            shape, values = read_npy(directory / entry["values_file"])
            rows, width = entry["rows"], entry["width"]
            assert key_shape == (rows,) and shape == (rows, width), (entry, key_shape, shape)
            table = {key: values[width * i:width * (i + 1)] for i, key in enumerate(keys)}
            assert len(table) == rows, f"{entry['name']}: a key is there twice"
            self.tables[entry["name"]] = table
            files.update((entry["keys_file"], entry["values_file"]))
        found = {path.name for path in directory.iterdir()}
        assert found == files, f"files of no array, or arrays without a file: {found ^ files}"
