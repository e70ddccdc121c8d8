"""Members without a library: they store what is registered, and sum as if there were others."""
import ctypes

import torch

DTYPES = {1: torch.float32, 2: torch.float64}


class Memory:
    """Replaces Member, and stores what is registered."""

    def __init__(self):
        self.parts = {}

    def register(self, name, dtype, address, size, shape):
        self.parts[name] = (dtype, address, size, tuple(shape))

    def bytes_of(self, name):
        _, address, size, _ = self.parts[name]
        return ctypes.string_at(address, size)

    def receive(self, other):
        """The state of another member is written into this one, as healing does."""
        assert [(n, p[0], p[2], p[3]) for n, p in self.parts.items()] == \
               [(n, p[0], p[2], p[3]) for n, p in other.parts.items()]
        for name, (_, address, size, _) in self.parts.items():
            ctypes.memmove(address, other.parts[name][1], size)

    def all_bytes(self):
        return {name: self.bytes_of(name) for name in self.parts}


class Reducing:
    """Stores what is passed on to be summed, and adds `others` to it (a number for all values)."""

    def __init__(self, others=0.0):
        self.handed, self.others = [], others

    def reduce(self, address, count, dtype):
        element = torch.empty(0, dtype=DTYPES[dtype]).element_size()
        memory = (ctypes.c_char * (count * element)).from_address(address)
        values = torch.frombuffer(memory, dtype=DTYPES[dtype])
        values += self.others
        self.handed.append(count)
        return True
