"""The buffers of one module, as the running statistics of BatchNorm.

Forward changes them on each member by what that member saw. So that all members go on alike, a step
adds to each buffer the mean of the members' changes, weighted as their gradients are: a member that
computed nothing has no say, and a buffer that nobody changed stays as it is to the bit. Whole numbers
(num_batches_tracked) are rounded. A step that is discarded leaves the buffers as they were before it.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional

import torch

from antdt import _abi

if TYPE_CHECKING:
    from antdt._member import Member


class Buffers:
    def __init__(self, module: torch.nn.Module) -> None:
        kept = module.state_dict(keep_vars=True)
        values = {id(v) for v in kept.values()}
        self._buffers = [b for b in module.buffers() if id(b) in values and b.numel() > 0
                         and not b.dtype.is_complex]
        self._before: List[torch.Tensor] = []
        self._sums: Optional[torch.Tensor] = None
        self.step_begins()

    def step_begins(self) -> None:
        """The buffers are as all members have them."""
        self._before = [b.detach().clone() for b in self._buffers]

    def finish(self, member: "Member", weight: float) -> None:
        """Hands over the changes; `weight` of what this member computed in the step."""
        if not self._buffers:
            return
        changes = [torch.tensor([weight], dtype=torch.float64)]
        for now, before in zip(self._buffers, self._before):
            change = now.detach().to("cpu", torch.float64) - before.to("cpu", torch.float64)
            changes.append((change * weight if weight > 0 else torch.zeros_like(change)).flatten())
        self._sums = torch.cat(changes)
        member.reduce(self._sums.data_ptr(), self._sums.numel(), _abi.F64)

    def apply(self) -> None:
        """The sums are there."""
        if self._sums is None:
            return
        changes = self._sums[1:] / self._sums[0] if self._sums[0] > 0 else self._sums[1:] * 0
        first = 0
        with torch.no_grad():
            for now, before in zip(self._buffers, self._before):
                change = changes[first:first + now.numel()].view(now.shape)
                first += now.numel()
                if not change.any():
                    now.copy_(before)
                    continue
                value = before.to("cpu", torch.float64) + change
                now.copy_(value if now.dtype.is_floating_point else value.round())
        self._sums = None

    def discard(self) -> None:
        self._sums = None
        with torch.no_grad():
            for now, before in zip(self._buffers, self._before):
                now.copy_(before)
