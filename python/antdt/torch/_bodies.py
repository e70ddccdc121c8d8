"""Which bodies of the loop over epochs are in the training state.

The end of a body, after the steps and the evaluation of an epoch, may change the state: there a
schedule that goes by epochs is advanced. Members come to it when the next epoch is announced. If the
membership changes just then, some have been there and others have not, and all are at the same step;
a process that joins has not even begun that body. So the state says how many bodies are in it:

- What a member shows of its state is that from before the end of the body, until a step of the next
  epoch is applied, which all members do after that end. So all show the same.
- A member whose state comes from another begins with the body that comes next in that state, though
  its epoch has no steps left: its end is run here as it was, or will be, elsewhere.
- A member whose state was replaced by one to which this end does not belong (of an earlier epoch, from
  a checkpoint) takes back what the end did.

This goes for what is no tensor. What changes tensors belongs after step.apply.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from antdt._member import Order
    from antdt.torch._state import State


class Bodies:
    """in a body ──the next epoch is announced──> at its end ──end()──> between ──begin()──> in a body"""

    def __init__(self, state: "State") -> None:
        self._state = state
        self._ended: Optional[int] = 0        # bodies that are in the state; None: it does not say
        self._body: Optional[int] = None      # the epoch of the body that runs
        self._before: Optional[bytes] = None  # the state before the last end, until a step is applied

    def begin(self, epoch: int) -> int:
        """A phase of `epoch` is announced, and a new body begins; the epoch that it is of."""
        if self._ended is None or self._ended > epoch:
            self._ended = epoch
        self._body = self._ended
        return self._body

    def are_of(self, epoch: int) -> bool:
        """Whether the body that runs is that of `epoch`, and the state the one to begin it with."""
        return self._body == epoch and self._ended in (epoch, None)

    def phase_begins(self, order: "Order") -> None:
        """A phase is announced. If it is none of the body that runs, that comes to its end."""
        if self._body is not None and self._before is None and not self.are_of(order.epoch):
            self._before = self._state.text(self._ended)

    def end(self) -> None:
        """The program has left the body."""
        body, self._body = self._body, None
        if self._before is None:  # no other epoch is announced: the job ends
            return
        if body is not None and self._ended in (body, None):
            self._ended = body + 1
            return
        self._state.take(self._before)
        self._before = None

    def applied(self) -> None:
        """A step is applied, by all members."""
        self._before = None

    def replaced(self, ended: Optional[int]) -> None:
        """The state was replaced by one that `ended` bodies are in."""
        self._ended, self._before = ended, None

    def text(self) -> bytes:
        """What this member shows of the state that is no tensor."""
        return self._state.text(self._ended) if self._before is None else self._before
