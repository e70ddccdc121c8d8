"""A member of a job, as Python sees it: orders and answers, with exceptions for errors.

    no order ──next()──> an order in hand ──done…()──> no order
    any ──next() gives LEAVE──> left ──close()──> closed

`next()` waits in slices of a fifth of a second, so that signals (Ctrl-C) are heard meanwhile.
"""
from __future__ import annotations

import ctypes
import json
import os
import signal
import threading
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from antdt import _abi
from antdt._abi import Error

_SLICE_MS = 200


@dataclass(frozen=True)
class Order:
    """An order, as antdt_order in antdt.h; `kind` decides which fields have a meaning."""

    kind: int
    step: int = 0
    phase: int = 0
    epoch: int = 0
    generation: int = 0
    rank: int = 0
    size: int = 1
    evaluation: bool = False
    last: bool = False
    records: Tuple[int, ...] = ()
    position: int = 0
    weight: float = 0.0
    rate: float = 1.0
    phase_records: int = 0
    phase_committed: int = 0
    complete: bool = False
    code: int = 0
    text: str = ""


@dataclass(frozen=True)
class Evaluation:
    """The result of an evaluation, as antdt_evaluation; NaN for sums that no member gave."""

    epoch: int
    records: int
    log_loss: float
    accuracy: float
    auc: float
    named: Mapping[str, float]


@dataclass(frozen=True)
class Options:
    """The options, as antdt_options; a world of one needs `records`."""

    records: int = 0
    eval_records: int = 0
    fingerprint: Optional[str] = None
    device: Optional[str] = None
    max_micro_batch: int = 0
    epochs: int = 1
    micro_batch: int = 0
    accumulation: int = 0
    seed: int = 0
    shuffle: bool = True
    read_ahead: int = 0


def _text(value: Optional[str]) -> Optional[bytes]:
    return None if value is None else value.encode()


class Member:
    """One open handle of libantdt. Threads: orders and answers by one, the rest by any."""

    def __init__(self, options: Options) -> None:
        self._library = _abi.load()
        raw = _abi.Options(
            struct_size=ctypes.sizeof(_abi.Options), abi_version=_abi.ABI_VERSION,
            flags=_abi.STATE_ON_REQUEST | (0 if options.shuffle else _abi.NO_SHUFFLE),
            records=options.records, eval_records=options.eval_records,
            fingerprint=_text(options.fingerprint), device=_text(options.device),
            max_micro_batch=options.max_micro_batch, epochs=options.epochs,
            micro_batch=options.micro_batch, accumulation=options.accumulation, seed=options.seed,
            read_ahead=options.read_ahead)
        handle = ctypes.c_void_p()
        self._check(self._library.antdt_open(ctypes.byref(raw), ctypes.byref(handle)))
        self._handle: Optional[ctypes.c_void_p] = handle
        about = _abi.About(struct_size=ctypes.sizeof(_abi.About))
        self._check(self._library.antdt_describe(handle, ctypes.byref(about)))
        self.in_job = bool(about.in_job)
        self.job = about.job.decode()
        self.worker = about.worker.decode()
        self.host = about.host.decode()
        self.run_dir = about.run_dir.decode()
        self.attempt = int(about.attempt)
        self.config: Dict[str, Any] = json.loads(about.config_json or b"{}")
        self.in_hand: Optional[Order] = None
        self._order = _abi.Order(struct_size=ctypes.sizeof(_abi.Order))

    def _check(self, code: int) -> int:
        if code < 0:
            text = (self._library.antdt_last_error() or b"").decode(errors="replace")
            if code == _abi.FORKED:
                text += (". In Python: start the child before the first epoch, or with "
                         "multiprocessing's start method 'spawn', and let it not use the job")
            raise Error(code, text)
        return code

    @property
    def closed(self) -> bool:
        return self._handle is None

    def close(self) -> None:
        """Ends this member's part. Safe to call twice."""
        if self._handle is not None:
            handle, self._handle, self.in_hand = self._handle, None, None
            self._library.antdt_close(handle)

    def leave_on_terminate(self) -> None:
        """SIGTERM asks to leave at the end of the step, unless the program has a handler of its
        own. Only the main thread may set one. A child that the program forks inherits the handler,
        and is ended by SIGTERM as it would be without it: multiprocessing's pools rely on that."""
        if threading.current_thread() is not threading.main_thread():
            return
        process = os.getpid()

        def on_terminate(*_: Any) -> None:
            if os.getpid() == process:
                return self.leave()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)

        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, on_terminate)

    # ------------------------------------------------------------------- the state

    def register(self, name: str, dtype: int, address: int, size: int,
                 shape: Sequence[int]) -> None:
        """Registers `size` bytes at `address`; the memory must stay where it is."""
        extents = (ctypes.c_uint64 * max(1, len(shape)))(*shape)
        part = _abi.Part(struct_size=ctypes.sizeof(_abi.Part), dtype=dtype, name=name.encode(),
                         data=address, bytes=size, shape=extents, dimensions=len(shape))
        self._check(self._library.antdt_register(self._handle, ctypes.byref(part)))

    # ------------------------------------------------------------------- orders

    def next(self) -> Order:
        """The next order, however long it takes. ENDED after the order to leave."""
        order = None
        while order is None:
            order = self.next_within(_SLICE_MS)
        return order

    def next_within(self, timeout_ms: int) -> Optional[Order]:
        """The next order; None if there is none within that time."""
        if self._check(self._library.antdt_next(self._handle, ctypes.byref(self._order),
                                                timeout_ms)) != _abi.OK:
            return None
        raw = self._order
        leaves = raw.kind == _abi.LEAVE
        order = Order(
            kind=raw.kind, step=raw.step, phase=raw.phase, epoch=raw.epoch,
            generation=raw.generation, rank=raw.rank, size=raw.size,
            evaluation=bool(raw.evaluation), last=bool(raw.last),
            records=tuple(raw.records[:raw.count]) if raw.count else (), position=raw.position,
            weight=raw.weight, rate=raw.rate, phase_records=raw.phase_records,
            phase_committed=raw.phase_committed, complete=bool(raw.complete), code=raw.code,
            text=(raw.text or b"").decode(errors="replace") if leaves else "")
        self.in_hand = None if leaves else order
        return order

    def name_of(self, order: Order) -> str:
        return self._library.antdt_order_name(order.kind).decode()

    def done(self) -> None:
        self._check(self._library.antdt_done(self._handle))
        self.in_hand = None

    def done_compute(self, weight: float, loss: float) -> None:
        self._check(self._library.antdt_done_compute(self._handle, weight, loss))
        self.in_hand = None

    def done_evaluate(self, records: int, loss_sum: float, correct: int, bins: List[int],
                      negatives: List[int], positives: List[int],
                      named: Mapping[str, float]) -> None:
        count = len(bins)
        raw = _abi.Metrics(struct_size=ctypes.sizeof(_abi.Metrics), bins=count, records=records,
                           loss_sum=loss_sum, correct=correct)
        if count:
            raw.bin = (ctypes.c_uint32 * count)(*bins)
            raw.negatives = (ctypes.c_uint64 * count)(*negatives)
            raw.positives = (ctypes.c_uint64 * count)(*positives)
        sums = [_abi.NamedSum(name.encode(), value) for name, value in named.items()]
        raw.named, raw.named_count = (_abi.NamedSum * len(sums))(*sums), len(sums)
        self._check(self._library.antdt_done_evaluate(self._handle, ctypes.byref(raw)))
        self.in_hand = None

    def evaluated(self) -> Optional["Evaluation"]:
        """The result of the job's newest evaluation; None before the first."""
        raw = _abi.Evaluation(struct_size=ctypes.sizeof(_abi.Evaluation))
        self._check(self._library.antdt_evaluated(self._handle, ctypes.byref(raw)))
        if raw.records == 0:
            return None
        named = {raw.named[i].name.decode(): raw.named[i].sum for i in range(raw.named_count)}
        return Evaluation(raw.epoch, raw.records, raw.log_loss, raw.accuracy, raw.auc, named)

    def failed(self, why: str) -> None:
        """Answers any order: the program cannot do it."""
        self._check(self._library.antdt_failed(self._handle, why.encode()))
        self.in_hand = None

    def skip(self, record: int, reason: str) -> None:
        self._check(self._library.antdt_skip(self._handle, record, reason.encode()))

    # ------------------------------------------------------------------- reductions

    def reduce(self, address: int, count: int, dtype: int) -> bool:
        """Begins to sum `count` values over all members; False: the generation is over."""
        return self._check(self._library.antdt_reduce(
            self._handle, address, count, dtype)) == _abi.OK

    def wait(self) -> bool:
        """Until all is summed; False: a member is gone, and what the buffers hold is void."""
        while True:
            code = self._check(self._library.antdt_wait(self._handle, _SLICE_MS))
            if code != _abi.TIMEOUT:
                return code == _abi.OK

    # ------------------------------------------------------------------- on the way

    def is_over(self) -> bool:
        """The generation is over: what is computed now will be discarded."""
        return self._check(self._library.antdt_is_over(self._handle)) == 1

    def ahead(self, generation: int, phase: int, position: int, most: int,
              timeout_ms: int = 0) -> Optional[Tuple[int, List[int]]]:
        """(the position of the first, records that come next, from `position` on at the
        earliest); no records: none are known within `timeout_ms`. None: the phase is over."""
        start, count = ctypes.c_uint64(position), ctypes.c_uint64()
        records = (ctypes.c_uint64 * most)()
        code = self._check(self._library.antdt_ahead(
            self._handle, generation, phase, ctypes.byref(start), records, most,
            ctypes.byref(count), timeout_ms))
        if code == _abi.INTERRUPTED:
            return None
        return start.value, list(records[:count.value]) if code == _abi.OK else []

    def end_training(self, reason: str) -> None:
        """No member begins another step."""
        self._check(self._library.antdt_end_training(self._handle, reason.encode()))

    def leave(self) -> None:
        """Asks to leave at the end of the step."""
        if self._handle is not None:
            self._check(self._library.antdt_leave(self._handle))
