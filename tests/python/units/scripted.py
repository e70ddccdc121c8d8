"""A member whose library follows a script: the orders of a job, without one."""
import ctypes

from antdt import _abi
from antdt._member import Order
from memory import Memory


class Scripted(Memory):
    """A word in the script is a name under which the member's present state is stored; a state in the
    script replaces the member's, and is written where the member says then that its parts are."""

    in_job, run_dir, config, closed = True, "", {}, False
    worker, attempt = "w0", 1

    def __init__(self, script):
        super().__init__()
        self.script, self.in_hand, self.shown = list(script), None, {}
        self._keep_as = None
        self._replacement = None

    def next(self):
        assert self.in_hand is None, "an order is not answered"
        if self._replacement is not None:
            for name, value in self._replacement.items():
                ctypes.memmove(self.parts[name][1], value, len(value))
            self._replacement, self.in_hand = None, Order(_abi.STATE_REPLACED)
            return self.in_hand
        if not self.script:
            return Order(_abi.LEAVE, code=75)
        given = self.script.pop(0)
        if isinstance(given, str):
            self._keep_as, given = given, Order(_abi.STATE_WANTED)
        elif isinstance(given, dict):
            self._replacement, given = given, Order(_abi.STATE_WANTED)
        self.in_hand = given
        return given

    def done(self, *_):
        if self._keep_as is not None:
            self.shown[self._keep_as] = self.all_bytes()
            self._keep_as = None
        self.in_hand = None

    done_compute = done_evaluate = done

    def skip(self, *_):
        pass

    def ahead(self, *_):
        return None

    def reduce(self, *_):
        return True

    def wait(self):
        return True

    def is_over(self):
        return False

    def evaluated(self):
        return None

    def leave_on_terminate(self):
        pass

    def failed(self, why):
        raise AssertionError(why)

    def close(self):
        self.closed = True


def begin(epoch, generation=1):
    return Order(_abi.PHASE_BEGIN, epoch=epoch, phase=epoch + 1, generation=generation)


def end(epoch, complete=True):
    return Order(_abi.PHASE_END, epoch=epoch, phase=epoch + 1, complete=complete)


def a_step(epoch):
    here = {"epoch": epoch, "phase": epoch + 1}
    return [Order(_abi.COMPUTE, records=(0, 1), last=True, **here), Order(_abi.REDUCE, **here),
            Order(_abi.APPLY, weight=2.0, **here)]


def an_epoch(epoch, generation=1):
    return [begin(epoch, generation), *a_step(epoch), end(epoch)]


def an_evaluation(epoch, generation=1):
    here = {"epoch": epoch, "phase": epoch + 101, "generation": generation, "evaluation": True}
    return [Order(_abi.PHASE_BEGIN, **here), Order(_abi.EVALUATE, records=(0, 1), **here),
            Order(_abi.PHASE_END, complete=True, **here)]
