"""What is known of this process: its steps, the collectives that it entered, and a thread that tells
the job of them once a second and answers when the job asks where it is."""
import atexit
import os
import platform
import sys
import threading
import time
import weakref
from collections import deque

from . import _library, _places

_KEPT = 64           # collectives that are told of
_OTHER_OPTIMIZERS = 50  # steps of others after which a silent first optimizer is given up
_SAY_EVERY = 1.0     # seconds
_AFTER_FAILURE = 1.5  # seconds that a failed rank stays, so that the others can be asked


def _nothing():
    return None


class _Call:
    """One collective that was entered."""
    __slots__ = ("group", "number", "name", "place", "began")

    def __init__(self, group, number, name, place, began):
        self.group, self.number, self.name = group, number, name
        self.place, self.began = place, began


class Tracer:
    """Of one process. `on` is asked before anything is measured; off, every hook is a plain call.

    Times belong to the thread that made the process group, and hooks in other threads do nothing.
    """

    def __init__(self):
        self.on = False
        self.thread = 0
        self.depth = 0           # of hooks within one another: the outermost measures
        self.ddp_forward = False  # a forward of DDP will be followed by its reduction
        self.steps = 0
        self.samples = 0
        self.samples_known = False
        self.collectives = 0
        self.failed = False      # the newest collective raised
        self._calls = deque(maxlen=_KEPT)
        self._numbers = {}
        self._inside = None
        self._since = 0.0        # the present step began
        self._data = self._wait = 0.0
        self._batch = 0          # samples fetched in this step
        self._optimizer = _nothing  # gives the one whose steps are counted
        self._others = 0
        self._trace = None
        self._threads = set()

    # ------------------------------------------------------------------ beginning and end

    def start(self, rank, world_size, torch_version):
        """The process group is there. At most once."""
        if self.on or self._trace is not None or os.environ.get("ANTDT_TRACE") != "1":
            return
        if os.environ.get("RANK") != str(rank):
            return  # a group that the script makes by itself
        os.environ["ANTDT_TRACE"] = "0"  # children of this process are not this worker
        self._trace = _library.Trace()
        self._rank, self._world_size = rank, world_size
        self._runs = f"torch {torch_version}, Python {platform.python_version()}"
        self.thread = threading.get_ident()
        self._since = time.perf_counter()
        self.on = True
        os.register_at_fork(after_in_child=self._forked)
        atexit.register(self._end)
        self._old_excepthook, sys.excepthook = sys.excepthook, self._excepthook
        self._teller = threading.Thread(target=self._tell, name="antdt-trace", daemon=True)
        self._teller.start()
        told, tells = os.pipe()
        self._trace.on_abort(tells, _AFTER_FAILURE)
        self._threads = {self._teller.ident}  # the tracer's own
        waiter = threading.Thread(target=self._await_abort, args=(told,), name="antdt-trace-abort", daemon=True)
        waiter.start()
        self._threads.add(waiter.ident)

    def _forked(self):
        self.on = False
        self._trace = None

    def give_up(self, error):
        """Something here went wrong: the script goes on without being measured."""
        if not self.on:
            return
        self.on = False
        print(f"antdt: this script is not measured any more: {type(error).__name__}: {error}",
              file=sys.stderr)

    def _end(self):
        trace, self.on = self._trace, False
        if trace is None:
            return
        self._teller.join(2 * _SAY_EVERY)
        try:
            self._say()
        except RuntimeError:
            pass  # the job is gone, or has another process in this one's place
        self._trace = None
        trace.close()

    def _await_abort(self, told):
        """PyTorch ends this process, which is there for a moment: the others are asked what they have called."""
        os.read(told, 1)
        try:
            if self.on and self._inside is not None:
                self._answer(0)
        except Exception:
            pass  # it ends anyway

    def _excepthook(self, kind, error, traceback):
        self._old_excepthook(kind, error, traceback)
        if not (self.on and self.failed):
            return
        try:
            sys.stderr.flush()
            self._answer(0)
            time.sleep(_AFTER_FAILURE)
        except Exception:
            pass  # it fails anyway, and has said why

    # ------------------------------------------------------------------ what hooks say

    def measures(self):
        """This call is to be measured."""
        return self.on and self.depth == 0 and threading.get_ident() == self.thread

    def enter(self, name, group, frame):
        """Into a collective; leave() ends it."""
        number = self._numbers.get(group, 0) + 1
        self._numbers[group] = number
        now = time.perf_counter()
        call = _Call(group, number, name, _places.caller(frame), now)
        self._calls.append(call)
        self.collectives += 1
        self._inside = call
        self.depth += 1
        return call

    def wait_for(self, call):
        """For a collective that was entered before."""
        self._inside = call if call is not None else _Call("", 0, "a collective", None, 0.0)
        self._inside.began = time.perf_counter()
        self.depth += 1

    def leave(self):
        self._wait += time.perf_counter() - self._inside.began
        self._inside = None
        self.depth -= 1

    def fetched(self, seconds, samples):
        """A batch came out of a data loader; samples: None if it cannot be told."""
        self._data += seconds
        if samples:
            self._batch += samples
            self.samples_known = True

    def stepped(self, optimizer):
        """An optimizer has made a step. Of several the first one counts."""
        counted = self._optimizer()
        if counted is not optimizer:
            self._others += 1
            if counted is not None and self._others < _OTHER_OPTIMIZERS:
                return
            self._optimizer = weakref.ref(optimizer)
        self._others = 0
        total = time.perf_counter() - self._since
        compute = max(0.0, total - self._data - self._wait)
        self.steps += 1
        self.samples += self._batch
        self._trace.step(self._batch, self._data, compute, self._wait)
        self._data = self._wait = 0.0
        self._batch = 0
        self._since = time.perf_counter()

    # ------------------------------------------------------------------ what the thread says

    def _say(self):
        inside = self._inside
        waits = inside is not None
        self._trace.say(self._rank, self._world_size, self.steps, self.samples,
                        self.samples_known, self.collectives, inside.name if waits else "",
                        _places.text_of(inside.place) if waits else "",
                        int(1000 * (time.perf_counter() - inside.began)) if waits else 0,
                        self._runs)

    def _answer(self, number):
        calls, inside = list(self._calls), self._inside
        if inside is not None and inside.number > 0:  # the last one told is that which it is in
            calls = [call for call in calls if call is not inside] + [inside]
        lines = [f"{call.group}\t{call.number}\t{call.name}\t{_places.text_of(call.place)}"
                 for call in calls]
        frame = sys._current_frames().get(self.thread)
        self._trace.tell(number, inside is not None and inside.number > 0 or self.failed,
                         _places.text_of(_places.caller(frame)),
                         _places.stacks(self.thread, self._threads),
                         "\n".join(lines))

    def _tell(self):
        number = 0
        try:
            while self.on:
                trace = self._trace
                if trace is None:
                    return
                self._say()
                asked = trace.asked(number, _SAY_EVERY)
                if asked > number and self.on:
                    number = asked
                    self._answer(number)
        except Exception as error:
            if self._trace is not None:
                self.give_up(error)


TRACER = Tracer()
