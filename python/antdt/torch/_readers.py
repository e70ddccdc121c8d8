"""Processes that read micro-batches. They never call libantdt, and die with the process that made
them. A request goes to them in turn; each answers its requests in their order.

A process that sends an answer reads no request until the answer is taken. So a request is sent only
where that cannot block: to a process that owes no answer, or into the connection's buffer.

A fork has the program's generators of random numbers as they were, so that all processes would crop and
flip alike. So each of them seeds its own, as a DataLoader's do.
"""
from __future__ import annotations

import collections
import ctypes
import hashlib
import io
import os
import pickle
import random
import signal
import sys
import traceback
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, Callable, Deque, Dict, List, Optional, Set, Tuple

import torch

_PR_SET_PDEATHSIG = 1
_ROOM = 32 << 10  # bytes of requests that a connection's buffer takes, whatever the system's settings
_BY_NUMPY = (torch.float32, torch.float64, torch.float16, torch.int64, torch.int32, torch.int16,
             torch.int8, torch.uint8, torch.bool)


def _tensor(memory: Any, dtype: torch.dtype, shape: Tuple[int, ...]) -> torch.Tensor:
    if 0 in shape:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(memory, dtype=dtype).reshape(shape)


class _Pickler(pickle.Pickler):
    """Leaves the memory of tensors outside, so that it is sent as it is. Shared memory would have to
    be cleaned up after a process that was killed."""

    def reducer_override(self, value: Any) -> Any:
        if type(value) is torch.Tensor and value.dtype in _BY_NUMPY and value.device.type == "cpu" \
                and value.layout == torch.strided:
            array: Any = value.detach().contiguous().numpy()
            return _tensor, (pickle.PickleBuffer(array), value.dtype, tuple(value.shape))
        return NotImplemented


def _send(connection: Connection, value: Any) -> None:
    buffers: List[pickle.PickleBuffer] = []
    text = io.BytesIO()
    _Pickler(text, 5, buffer_callback=buffers.append).dump(value)
    raw = [buffer.raw() for buffer in buffers]
    connection.send_bytes(pickle.dumps([len(memory) for memory in raw]))
    connection.send_bytes(text.getvalue())
    for memory in raw:
        if len(memory):
            connection.send_bytes(memory)


def _receive(connection: Connection) -> Any:
    sizes = pickle.loads(connection.recv_bytes())
    text = connection.recv_bytes()
    buffers = [bytearray(size) for size in sizes]
    for buffer in buffers:
        if buffer:
            connection.recv_bytes_into(buffer)
    return pickle.loads(text, buffers=buffers)


def _seed_all(seed: str) -> None:
    """What torch, random and numpy draw follows from `seed`."""
    digest = hashlib.sha256(seed.encode()).digest()
    words = [int.from_bytes(digest[i:i + 4], "little") for i in range(0, len(digest), 4)]
    torch.manual_seed(words[0] << 32 | words[1])
    random.seed(digest)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(words)


def _serve(connection: Connection, parent: int, read: Callable[[Tuple[int, ...]], Any], seed: str) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's to answer
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    torch.set_num_threads(1)
    _seed_all(seed)
    while True:
        records = pickle.loads(connection.recv_bytes())
        answer: Tuple[Any, Optional[str]]
        try:
            answer = (read(records), None)
        except Exception as error:
            answer = (None, f"{error}\n(in a process of the loader)\n{traceback.format_exc()}")
        _send(connection, answer)


def _end_of(code: int, records: Tuple[int, ...]) -> str:
    """How a process ended, amid its answer to a request."""
    try:
        by = f", by {signal.Signals(-code).name}," if code < 0 else ""
    except ValueError:
        by = f", by signal {-code},"
    some = ", ".join(map(str, records[:8])) + (", …" if len(records) > 8 else "")
    text = (f"a process of the loader ended with exit code {code}{by} while it had {len(records)} records in "
            f"hand ({some}). ")
    if code == -signal.SIGKILL:
        text += ("The kernel kills so where memory runs out (dmesg has it): try less num_workers or prefetch, "
                 "or a dataset that holds less. ")
    return text + "With num_workers=0 the program itself reads them, and shows where it happens"


class _Worker:
    def __init__(self, context: Any, read: Callable[[Tuple[int, ...]], Any], seed: str) -> None:
        self.connection, there = context.Pipe()
        self.process = context.Process(target=_serve, args=(there, os.getpid(), read, seed), daemon=True)
        self.process.start()
        there.close()
        self._waiting: Deque[bytes] = collections.deque()  # requests that are to be sent
        self._sent: Deque[bytes] = collections.deque()  # those that are not answered

    def ask(self, records: Tuple[int, ...]) -> None:
        self._waiting.append(pickle.dumps(records))
        self._send()

    def _send(self) -> None:
        while self._waiting and (not self._sent or sum(map(len, self._sent)) + len(self._waiting[0]) <= _ROOM):
            request = self._waiting.popleft()
            self._sent.append(request)
            try:
                self.connection.send_bytes(request)
            except ConnectionError:
                return  # it has ended: its answer will say how

    def answer(self) -> Any:
        """The next answer; RuntimeError if the process has ended."""
        if self.connection in wait([self.connection, self.process.sentinel]):
            try:
                answer = _receive(self.connection)
                self._sent.popleft()
                self._send()
                return answer
            except (EOFError, ConnectionResetError):
                pass
        self.process.join()
        raise RuntimeError(_end_of(self.process.exitcode, pickle.loads(self._sent[0])))


class Readers:
    def __init__(self, count: int, read: Callable[[Tuple[int, ...]], Any], seed: str) -> None:
        """seed  what the processes draw follows from it, and differs between them"""
        context = get_context("fork")  # the dataset is inherited, not copied
        self._workers = [_Worker(context, read, f"{seed} {number}") for number in range(count)]
        self._asked = 0
        self._answered = [0] * count  # by worker: the requests of it that it has answered
        self._answers: Dict[int, Any] = {}
        self._forgotten: Set[int] = set()

    def ask(self, records: Tuple[int, ...]) -> int:
        """A number under which the answer is taken, or forgotten."""
        ticket = self._asked
        self._asked += 1
        self._workers[ticket % len(self._workers)].ask(records)
        return ticket

    def forget(self, ticket: int) -> None:
        if self._answers.pop(ticket, None) is None:
            self._forgotten.add(ticket)

    def take(self, ticket: int) -> Any:
        """The answer; RuntimeError with the other process's words where it failed."""
        worker = ticket % len(self._workers)
        while ticket not in self._answers:
            self._receive_one(worker)
        data, error = self._answers.pop(ticket)
        if error is not None:
            raise RuntimeError(error)
        return data

    def _receive_one(self, worker: int) -> None:
        answer = self._workers[worker].answer()
        ticket = worker + self._answered[worker] * len(self._workers)
        self._answered[worker] += 1
        if ticket in self._forgotten:
            self._forgotten.discard(ticket)
        else:
            self._answers[ticket] = answer

    def close(self) -> None:
        for worker in self._workers:
            worker.connection.close()
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
