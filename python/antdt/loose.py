"""Programs that only take records and say how long they took: any framework, no collective.

    import antdt.loose

    with antdt.loose.Worker() as worker:
        for work in worker.work(64):
            for record in work.records:
                …

The records of a piece of work count as done when the next one is taken. Between the two the time is
measured as computing; worker.report() says it better. Outside a job the same program works through
all records by itself. docs/programs/loose-clients.md.
"""
from __future__ import annotations

import ctypes
import json
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Dict, Iterator, Optional, Tuple, Type

from antdt import _abi
from antdt._abi import Error

_SLICE_MS = 200


@dataclass(frozen=True)
class Work:
    """Records to work through, in this order. epoch from 0; evaluation: not to be trained on."""

    records: Tuple[int, ...]
    epoch: int = 0
    evaluation: bool = False

    def __len__(self) -> int:
        return len(self.records)


class Worker:
    """One worker of a job, for one thread.

    records, eval_records  how many the program has; in a job they are compared with job.toml, outside
                           of one they say what there is
    fingerprint            any text that is the same exactly where the data are
    epochs                 outside a job: how often all records are worked through
    """

    def __init__(self, records: int = 0, *, eval_records: int = 0, epochs: int = 1, seed: int = 0,
                 fingerprint: Optional[str] = None) -> None:
        self._library = _abi.load()
        raw = _abi.Options(
            struct_size=ctypes.sizeof(_abi.Options), abi_version=_abi.ABI_VERSION, records=records,
            eval_records=eval_records, epochs=epochs, seed=seed,
            fingerprint=fingerprint.encode() if fingerprint is not None else None)
        handle = ctypes.c_void_p()
        self._check(self._library.antdt_loose_open(ctypes.byref(raw), ctypes.byref(handle)))
        self._handle: Optional[ctypes.c_void_p] = handle
        about = _abi.About(struct_size=ctypes.sizeof(_abi.About))
        self._check(self._library.antdt_loose_describe(handle, ctypes.byref(about)))
        self.in_job = bool(about.in_job)
        self.worker = about.worker.decode()
        self.run_dir = about.run_dir.decode()
        self.config: Dict[str, Any] = json.loads(about.config_json or b"{}")
        self._reported = True  # of the work in hand, or there is none

    def _check(self, code: int) -> int:
        if code < 0:
            raise Error(code, (self._library.antdt_last_error() or b"").decode(errors="replace"))
        return code

    def work(self, max_records: int) -> Iterator[Work]:
        """At most `max_records` at a time, until the job is over or this worker is to leave."""
        while True:
            asked = time.monotonic()
            work = self._next(max_records)
            if work is None:
                return
            given = time.monotonic()
            self._reported = False
            yield work
            if not self._reported:
                self.report(compute=time.monotonic() - given, wait=given - asked)

    def _next(self, max_records: int) -> Optional[Work]:
        raw = _abi.Work(struct_size=ctypes.sizeof(_abi.Work))
        while True:  # in slices, so that signals are heard meanwhile
            code = self._library.antdt_loose_next(self._handle, max_records, ctypes.byref(raw),
                                                  _SLICE_MS)
            if code == _abi.ENDED:
                return None
            if self._check(code) == _abi.OK:
                return Work(tuple(raw.records[:raw.count]), raw.epoch, bool(raw.evaluation))

    def skip(self, record: int, reason: str) -> None:
        """One of the records of the work in hand cannot be used. The audit counts it as skipped, by
        reason; RUN_DIR/skipped-<worker>.jsonl keeps it."""
        self._check(self._library.antdt_loose_skip(self._handle, int(record), reason.encode()))

    def report(self, *, data: float = 0.0, compute: float = 0.0, wait: float = 0.0) -> None:
        """How long the work in hand took, in seconds: reading, computing, waiting for others."""
        self._reported = True
        self._check(self._library.antdt_loose_report(self._handle, data, compute, wait))

    def close(self) -> None:
        """Ends this worker's part. What is in hand goes to others. Safe to call twice."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            self._library.antdt_loose_close(handle)

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()
