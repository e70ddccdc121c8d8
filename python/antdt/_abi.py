"""libantdt's C interface (include/antdt.h), as ctypes sees it.

Nothing here decides anything: structures, the functions' types, and errors as exceptions. ctypes
gives up the interpreter's lock during each call, so a call that waits holds up no other thread.
"""
from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_uint32, c_uint64, c_void_p
from typing import Any

from antdt._version import __version__
from antdt.trace import _find_library

ABI_VERSION = _find_library.ABI_VERSION

OK, TIMEOUT, INTERRUPTED = 0, 1, 2
USAGE, CONFIG, UNREACHABLE, REFUSED, IO, FORKED, ENDED, INTERNAL = range(-1, -9, -1)
_ERROR_NAMES = ("usage", "config", "unreachable", "refused", "io", "forked", "ended", "internal")

# Flags of antdt_options.
STATE_ON_REQUEST, ONLY_IN_A_JOB, NO_SHUFFLE = 1, 2, 4

# Kinds of orders.
(COMPUTE, REDUCE, APPLY, DISCARD, EVALUATE, STATE_REPLACED, STATE_WANTED, PHASE_BEGIN, PHASE_END,
 LEAVE) = range(1, 11)

# Types of the elements of a part, and of what is reduced (f32 and f64 alone).
BYTES, F32, F64, F16, BF16, I64, I32, I16, I8, U8, BOOL = range(11)


class Error(RuntimeError):
    """A call of libantdt failed. `code` is one of antdt.h's negative results."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code

    @property
    def name(self) -> str:
        """The code in a word: "usage", "config", "unreachable", …"""
        index = -self.code - 1
        return _ERROR_NAMES[index] if 0 <= index < len(_ERROR_NAMES) else str(self.code)


class Options(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("abi_version", c_uint32), ("flags", c_uint32),
                ("timeout_ms", c_uint32), ("records", c_uint64), ("eval_records", c_uint64),
                ("fingerprint", c_char_p), ("device", c_char_p), ("max_micro_batch", c_uint32),
                ("epochs", c_uint32), ("micro_batch", c_uint32), ("accumulation", c_uint32),
                ("seed", c_uint64), ("read_ahead", c_uint64)]


class About(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("in_job", c_uint32), ("job", c_char_p),
                ("worker", c_char_p), ("host", c_char_p), ("run_dir", c_char_p),
                ("config_json", c_char_p), ("attempt", c_uint32), ("reserved", c_uint32)]


class Part(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("dtype", c_int32), ("name", c_char_p),
                ("data", c_void_p), ("bytes", c_uint64), ("shape", POINTER(c_uint64)),
                ("dimensions", c_uint32), ("reserved", c_uint32)]


class Order(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("kind", c_int32), ("step", c_uint64),
                ("phase", c_uint64), ("epoch", c_uint64), ("generation", c_uint64),
                ("rank", c_uint32), ("size", c_uint32), ("evaluation", c_int32),
                ("last", c_int32), ("records", POINTER(c_uint64)), ("count", c_uint64),
                ("position", c_uint64), ("weight", c_double), ("rate", c_double),
                ("phase_records", c_uint64), ("phase_committed", c_uint64), ("complete", c_int32),
                ("code", c_int32), ("text", c_char_p)]


class NamedSum(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("sum", c_double)]


class Metrics(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("bins", c_uint32), ("records", c_uint64),
                ("loss_sum", c_double), ("correct", c_uint64), ("bin", POINTER(c_uint32)),
                ("negatives", POINTER(c_uint64)), ("positives", POINTER(c_uint64)),
                ("named", POINTER(NamedSum)), ("named_count", c_uint64)]


class Work(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("evaluation", c_int32), ("epoch", c_uint64),
                ("records", POINTER(c_uint64)), ("count", c_uint64)]


class Evaluation(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("epoch", c_uint64),
                ("records", c_uint64), ("log_loss", c_double), ("accuracy", c_double),
                ("auc", c_double), ("named", POINTER(NamedSum)), ("named_count", c_uint64)]


class DataOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("paths", POINTER(c_char_p)),
                ("path_count", c_uint64), ("cache_dir", c_char_p)]


class DataAbout(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("records", c_uint64),
                ("fingerprint", c_char_p)]


class DataRecords(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("bytes", c_void_p),
                ("ends", POINTER(c_uint64)), ("count", c_uint64)]


DATA_INDEX_BESIDE = 1
DATA_WAITS = 1  # a flag of antdt_data_progress

SCORE_BINS = 16384

_FUNCTIONS = {
    "antdt_last_error": (c_char_p, []),
    "antdt_abi_version": (c_uint32, []),
    "antdt_version": (c_char_p, []),
    "antdt_order_name": (c_char_p, [c_int32]),
    "antdt_open": (c_int, [POINTER(Options), POINTER(c_void_p)]),
    "antdt_close": (None, [c_void_p]),
    "antdt_describe": (c_int, [c_void_p, POINTER(About)]),
    "antdt_register": (c_int, [c_void_p, POINTER(Part)]),
    "antdt_unregister": (c_int, [c_void_p, c_char_p]),
    "antdt_next": (c_int, [c_void_p, POINTER(Order), c_uint32]),
    "antdt_done": (c_int, [c_void_p]),
    "antdt_done_compute": (c_int, [c_void_p, c_double, c_double]),
    "antdt_done_evaluate": (c_int, [c_void_p, POINTER(Metrics)]),
    "antdt_evaluated": (c_int, [c_void_p, POINTER(Evaluation)]),
    "antdt_failed": (c_int, [c_void_p, c_char_p]),
    "antdt_skip": (c_int, [c_void_p, c_uint64, c_char_p]),
    "antdt_reduce": (c_int, [c_void_p, c_void_p, c_uint64, c_int32]),
    "antdt_wait": (c_int, [c_void_p, c_uint32]),
    "antdt_is_over": (c_int, [c_void_p]),
    "antdt_ahead": (c_int, [c_void_p, c_uint64, c_uint64, POINTER(c_uint64), POINTER(c_uint64),
                            c_uint64, POINTER(c_uint64), c_uint32]),
    "antdt_end_training": (c_int, [c_void_p, c_char_p]),
    "antdt_leave": (c_int, [c_void_p]),
    "antdt_loose_open": (c_int, [POINTER(Options), POINTER(c_void_p)]),
    "antdt_loose_next": (c_int, [c_void_p, c_uint64, POINTER(Work), c_uint32]),
    "antdt_loose_skip": (c_int, [c_void_p, c_uint64, c_char_p]),
    "antdt_loose_report": (c_int, [c_void_p, c_double, c_double, c_double]),
    "antdt_loose_describe": (c_int, [c_void_p, POINTER(About)]),
    "antdt_loose_close": (None, [c_void_p]),
    "antdt_data_open": (c_int, [POINTER(DataOptions), POINTER(c_void_p)]),
    "antdt_data_describe": (c_int, [c_void_p, POINTER(DataAbout)]),
    "antdt_data_read": (c_int, [c_void_p, POINTER(c_uint64), c_uint64, POINTER(DataRecords)]),
    "antdt_data_close": (None, [c_void_p]),
    "antdt_data_progress": (c_int, [c_char_p, c_uint64, c_uint64, c_uint32]),
}


def load() -> Any:
    """The library, with its functions' types. ImportError says where it was looked for."""
    return _find_library.load(_FUNCTIONS, f"package ({__version__})")
