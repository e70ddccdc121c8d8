"""One step of the job, as the program's loop sees it.

    computing ──the micro-batches are through──> reducing ──apply()──> applied, or discarded
    computing ──the membership changes──> discarded

Each order is answered by what the program does: a micro-batch by leaving `step.micro(mb)`, a
reduction by `apply`; what it applied is answered when the loop asks for the next step, so that a
schedule may still be advanced.
"""
from __future__ import annotations

import contextlib
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Iterator, Optional, Sequence, Tuple

import torch

from antdt import _abi
from antdt.torch._batch import MicroBatch, padded, pieces_of

if TYPE_CHECKING:
    from antdt._member import Order
    from antdt.torch._job import Job
    from antdt.torch._loader import Loader


@contextlib.contextmanager
def _at_rate(optimizers: Sequence[torch.optim.Optimizer], rate: float) -> Iterator[None]:
    """The plan may want another learning rate than the program has."""
    groups = [g for o in optimizers for g in o.param_groups if "lr" in g] if rate != 1 else []
    before = [g["lr"] for g in groups]
    for group in groups:
        group["lr"] = group["lr"] * rate
    try:
        yield
    finally:
        for group, lr in zip(groups, before):
            group["lr"] = lr


def _make_scale(scaler: Any, optimizers: Sequence[torch.optim.Optimizer]) -> None:
    """A scaler makes its scale with the first loss, and a member may be without one in its first step."""
    devices = [p.device for o in optimizers for group in o.param_groups for p in group["params"]]
    if devices:
        scaler.scale(torch.zeros((), device=next((d for d in devices if d.type != "cpu"), devices[0])))


class Step:
    """A step of the loop `for step in job.steps(loader)`."""

    def __init__(self, job: "Job", loader: "Loader") -> None:
        self._job, self._loader = job, loader
        self._state = "computing"
        self._weight = 0.0  # of what this member computed in this step
        self._begun = False
        self._scaled = False  # a scaler has had a loss of this step
        self._sums: Optional[list] = None  # weight and loss of the micro-batch under way
        self._skipped = False
        self._piece: Optional[MicroBatch] = None  # that is to be computed
        self._ends_order = True                   # with it the order is done
        self._order_sums = [0.0, 0.0]             # weight and loss of the order so far
        self.weight = 0.0  # once applied: of all members' records in it
        self.grad_norm: Optional[float] = None

    @property
    def finished(self) -> bool:
        return self._state in ("applied", "discarded")

    # ------------------------------------------------------------------- micro-batches

    def __iter__(self) -> Iterator[MicroBatch]:
        """This member's micro-batches in this step; maybe none."""
        self._begin()
        while True:
            order = self._job._order_in_step()
            if order is None:
                self._state = "discarded"
                return
            if order.kind == _abi.REDUCE:
                self._state = "reducing"
                return
            if self._job._member.is_over():
                self._job._member.done_compute(0.0, 0.0)
                continue
            yield from self._pieces(order)

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._job._modules.begin_step()

    def _pieces(self, order: "Order") -> Iterator[MicroBatch]:
        """The order as micro-batches: one, unless job.declare() knows sizes that are smaller."""
        sizes = self._job._sizes
        pieces = pieces_of(order.records, sizes)
        self._order_sums, position = [0.0, 0.0], order.position
        for n, records in enumerate(pieces):
            self._ends_order = n + 1 == len(pieces)
            piece = replace(order, records=records, position=position)
            position += len(records)
            self._piece = MicroBatch(self._read(piece, sizes), records, order.last and self._ends_order,
                                     len(padded(records, sizes)))
            yield self._piece
            self._job._modules.micro_batch_ended()
            if self._piece is not None:
                raise RuntimeError("a micro-batch was given and not computed: compute each of them in "
                                   "`with step.micro(mb):`")

    def _read(self, order: "Order", sizes: Tuple[int, ...]) -> Any:
        try:
            return self._loader.fetch(order, sizes)
        except BaseException as error:
            self._job._fail(error)
            raise

    @contextlib.contextmanager
    def micro(self, mb: MicroBatch) -> Iterator[None]:
        """Computes one micro-batch. An exception in it ends this member's part; the others go on."""
        if self._piece is None or mb is not self._piece:
            raise RuntimeError("step.micro(mb): this micro-batch is not the one in hand; compute each "
                               "once, when the step gives it")
        self._sums, self._skipped = [0.0, 0.0, False], False
        try:
            if mb.last:
                self._job._modules.arm(self._job._member, self._job.size)
            yield
            self._job._modules.disarm()
            weight, loss = self._sums_of(mb)
        except BaseException as error:
            self._job._fail(error)
            raise
        finally:
            self._sums = None
        self._piece = None
        self._weight += weight
        self._order_sums[0] += weight
        self._order_sums[1] += loss
        if self._ends_order:
            self._job._member.done_compute(*self._order_sums)

    def _sums_of(self, mb: MicroBatch) -> tuple:
        weight, loss, was_called = self._sums or (0.0, 0.0, False)
        if not was_called and not self._skipped:
            raise RuntimeError("a micro-batch was left without step.backward(loss_sum, weight=…), so "
                               "its weight is not known; step.skip(mb, reason) passes over one")
        return weight, loss

    def backward(self, loss_sum: torch.Tensor, *, weight: float, scaler: Any = None) -> None:
        """Adds the gradients of `loss_sum`.

        loss_sum  a scalar: the sum (reduction="sum") of the losses in this micro-batch
        weight    what it is the sum of: how many records, or tokens; 0 or more. A mean m over n is
                  backward(m * n, weight=n)
        scaler    a GradScaler, given to apply() as well
        """
        if self._sums is None:
            raise RuntimeError("step.backward is called in `with step.micro(mb):`")
        loss = self._checked(loss_sum)
        weight = float(weight)
        if not 0 <= weight < math.inf:
            raise ValueError(f"step.backward(weight={weight}): how much is in the sum, 0 or more")
        self._sums[0] += weight
        self._sums[1] += float(loss.detach())
        self._sums[2] = True
        self._job._modules.check_kept()
        self._scaled = self._scaled or scaler is not None
        (loss if scaler is None else scaler.scale(loss)).backward()

    @staticmethod
    def _checked(loss_sum: Any) -> torch.Tensor:
        if not isinstance(loss_sum, torch.Tensor):
            raise TypeError(f"step.backward(loss_sum): a {type(loss_sum).__name__} has no gradients; give "
                            f"it the tensor that the loss function returned, and not its .item()")
        if loss_sum.numel() != 1:
            raise ValueError(f"step.backward(loss_sum): a loss of shape {tuple(loss_sum.shape)} is no sum; "
                             f'give the sum of the losses, as reduction="sum" or .sum() makes it')
        if not loss_sum.requires_grad:
            raise ValueError("step.backward(loss_sum): the loss depends on no parameter that is trained, or "
                             "was computed under no_grad() or detached, so that it has no gradients")
        return loss_sum

    def skip(self, mb: MicroBatch, reason: str, records: Optional[Sequence[int]] = None) -> None:
        """The micro-batch cannot be used, or only without `records`. If the step completes, the
        audit counts them as skipped, and not as trained; they have the weight of what was added of
        them, usually none. RUN_DIR/skipped-<worker>.jsonl keeps them with the reason."""
        if self._sums is None:
            raise RuntimeError("step.skip is called in `with step.micro(mb):`")
        for record in mb.records if records is None else records:
            self._job._member.skip(int(record), reason)
        self._skipped = self._skipped or records is None or len(records) == len(mb.records)

    # ------------------------------------------------------------------- the end of the step

    def apply(self, *optimizers: torch.optim.Optimizer, clip: Optional[float] = None,
              scaler: Any = None) -> bool:
        """Sums the gradients of all members, divides by the weight of all, and takes a step.

        Returns True if the step is applied, by all members; False if it is discarded by all: its
        records are computed again. Without an optimizer .grad has the means until the next step
        begins, and the program changes the state itself.

        clip    the greatest norm of all gradients; self.grad_norm is what it was before
        scaler  the GradScaler that backward() was given
        """
        if self.finished:
            if self._state == "discarded":
                return False
            raise RuntimeError("step.apply: this step is applied already")
        self._begin()
        order = self._job._order_in_step()
        if order is not None and order.kind == _abi.COMPUTE:
            raise RuntimeError("step.apply: there are micro-batches left; go through `for mb in "
                               "step:` to its end")
        self._job._check_optimizers(optimizers)
        decided = self._job._reduce(self._weight) if order is not None else None
        if decided is None:
            self._state = "discarded"
            return False
        self.weight = decided.weight
        self._job._divide(decided.weight)
        if scaler is not None and not self._scaled:
            _make_scale(scaler, optimizers)
        with _at_rate(optimizers, decided.rate):
            for optimizer in optimizers if scaler is not None else ():
                scaler.unscale_(optimizer)
            if clip is not None:
                norm = torch.nn.utils.clip_grad_norm_(self._job._modules.parameters(), clip)
                self.grad_norm = float(norm)
            for optimizer in optimizers:
                optimizer.step() if scaler is None else scaler.step(optimizer)
            if scaler is not None:
                scaler.update()
        self._state = "applied"
        return True
