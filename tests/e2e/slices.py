"""Reads what parameter servers write into a checkpoint: slice-NN.rows, in the format of
trainer/ps/rows/slice_image.h."""

import array
import pathlib
import struct
import sys

MAGIC = b"antdt slice 1".ljust(16, b"\0")


def floats(data):
    values = array.array("f")
    values.frombytes(data)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def read_slice(path):
    """{table: {key: (values, optimizer state)}} of one file."""
    data = pathlib.Path(path).read_bytes()
    assert data[:16] == MAGIC, f"{path} is no slice"
    _, tables = struct.unpack_from("<II", data, 16)
    at = 24
    found = {}
    for _ in range(tables):
        (length,) = struct.unpack_from("<I", data, at)
        name = data[at + 4:at + 4 + length].decode()
        at += 4 + length
        width, state, rows = struct.unpack_from("<IIQ", data, at)
        at += 16
        table = found.setdefault(name, {})
        for _ in range(rows):
            (key,) = struct.unpack_from("<Q", data, at)
            at += 8
            row = floats(data[at:at + 4 * (width + state)])
            at += 4 * (width + state)
            assert key not in table, f"{path}: key {key} of '{name}' is there twice"
            table[key] = (row[:width], row[width:])
    assert at == len(data), f"{path}: {len(data) - at} bytes too many"
    return found


def count_rows(path):
    """{table: (width, floats of state, rows)} of one file; the rows themselves are not read."""
    found = {}
    with open(path, "rb") as f:
        assert f.read(16) == MAGIC, f"{path} is no slice"
        _, tables = struct.unpack("<II", f.read(8))
        for _ in range(tables):
            (length,) = struct.unpack("<I", f.read(4))
            name = f.read(length).decode()
            width, state, rows = found[name] = struct.unpack("<IIQ", f.read(16))
            f.seek(rows * (8 + 4 * (width + state)), 1)
    return found


def read_tables(checkpoint):
    """The same of a whole checkpoint."""
    all_tables = {}
    for path in sorted(pathlib.Path(checkpoint).glob("slice-*.rows")):
        for name, rows in read_slice(path).items():
            table = all_tables.setdefault(name, {})
            assert not table.keys() & rows.keys(), f"{path}: keys of another slice"
            table.update(rows)
    return all_tables
