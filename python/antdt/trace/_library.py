"""libantdt's functions for a tracer (include/antdt.h, "tracing"), as ctypes sees them."""
import ctypes
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int32, c_uint32, c_uint64, c_void_p

from . import _find_library

_TIMEOUT = 1


class _State(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("rank", c_uint32), ("world_size", c_uint32),
                ("samples_known", c_int32), ("steps", c_uint64), ("samples", c_uint64),
                ("collectives", c_uint64), ("inside_ms", c_uint64), ("inside", c_char_p),
                ("where", c_char_p), ("runs", c_char_p)]


_FUNCTIONS = {
    "antdt_last_error": (c_char_p, []),
    "antdt_abi_version": (c_uint32, []),
    "antdt_trace_open": (c_int, [c_uint32, POINTER(c_void_p)]),
    "antdt_trace_step": (c_int, [c_void_p, c_uint64, c_double, c_double, c_double,
                                 POINTER(c_double)]),
    "antdt_trace_say": (c_int, [c_void_p, POINTER(_State)]),
    "antdt_trace_asked": (c_int, [c_void_p, POINTER(c_uint64), c_uint32]),
    "antdt_trace_tell": (c_int, [c_void_p, c_uint64, c_int32, c_char_p, c_char_p, c_char_p]),
    "antdt_trace_on_abort": (c_int, [c_void_p, c_int32, c_uint32]),
    "antdt_trace_close": (None, [c_void_p]),
}


class Trace:
    """One traced process. An error of the library is a RuntimeError with its words."""

    def __init__(self):
        try:
            self._library = _find_library.load(_FUNCTIONS, "tracer")
        except ImportError as error:
            raise ImportError(" ".join(str(error).split())) from None  # the script is told in one line
        self._handle = c_void_p()
        self._added = c_double()
        self._check(self._library.antdt_trace_open(10000, byref(self._handle)))

    def _check(self, code):
        if code < 0:
            raise RuntimeError(self._library.antdt_last_error().decode(errors="replace"))
        return code

    def step(self, samples, data, compute, wait):
        """One step, in seconds. Takes longer where a drill says so."""
        self._check(self._library.antdt_trace_step(self._handle, samples, data, compute, wait,
                                                   byref(self._added)))

    def say(self, rank, world_size, steps, samples, samples_known, collectives, inside, where,
            inside_ms, runs):
        state = _State(ctypes.sizeof(_State), rank, world_size, samples_known, steps, samples,
                       collectives, inside_ms, inside.encode(), where.encode(), runs.encode())
        self._check(self._library.antdt_trace_say(self._handle, byref(state)))

    def asked(self, number, seconds):
        """Waits so long at most; the number of the newest question."""
        newest = c_uint64(number)
        code = self._library.antdt_trace_asked(self._handle, byref(newest), int(1000 * seconds))
        return number if self._check(code) == _TIMEOUT else newest.value

    def tell(self, number, inside, where, stack, calls):
        self._check(self._library.antdt_trace_tell(
            self._handle, number, inside, where.encode(errors="replace"),
            stack.encode(errors="replace"), calls.encode(errors="replace")))

    def on_abort(self, fd, seconds):
        """A process that aborts writes a byte to `fd` first, and stays so long."""
        self._check(self._library.antdt_trace_on_abort(self._handle, fd, int(1000 * seconds)))

    def close(self):
        handle, self._handle = self._handle, c_void_p()
        self._library.antdt_trace_close(handle)
