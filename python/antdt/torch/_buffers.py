"""The buffers of one module, as the running statistics of BatchNorm.

Forward changes them on each member by what that member saw. So that all members go on alike, a step
adds to each buffer the mean of the members' changes, weighted as their gradients are: a member that
computed nothing has no say, and a buffer that nobody changed stays as it is to the bit. Whole numbers
(num_batches_tracked) are rounded. A step that is discarded leaves the buffers as they were before it.

Buffers of one type on one device are copied together: a copy from or to a device waits for it, and a
model may have hundreds of small ones.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Dict, List, Optional, Tuple

import torch

from antdt import _abi

if TYPE_CHECKING:
    from antdt._member import Member


class _Group:
    """Buffers of one type on one device."""

    def __init__(self) -> None:
        self.buffers: List[torch.Tensor] = []
        self.before = torch.empty(0)  # as all members have them

    def values(self) -> torch.Tensor:
        """A copy of all, one after another."""
        return torch.cat([b.detach().reshape(-1) for b in self.buffers])

    def split(self, values: torch.Tensor) -> Tuple[torch.Tensor, ...]:
        return values.split([b.numel() for b in self.buffers])

    def put(self, values: torch.Tensor) -> None:
        with torch.no_grad():
            for buffer, part in zip(self.buffers, self.split(values)):
                buffer.copy_(part.view(buffer.shape))


class Buffers:
    def __init__(self, module: torch.nn.Module) -> None:
        kept = module.state_dict(keep_vars=True)
        values = {id(v) for v in kept.values()}
        groups: Dict[Tuple[torch.dtype, torch.device], _Group] = {}
        for b in module.buffers():
            if id(b) in values and b.numel() > 0 and not b.dtype.is_complex:
                groups.setdefault((b.dtype, b.device), _Group()).buffers.append(b)
        self._groups = list(groups.values())
        self._sums: Optional[torch.Tensor] = None
        self.step_begins()

    def step_begins(self) -> None:
        """The buffers are as all members have them."""
        for group in self._groups:
            group.before = group.values()

    def finish(self, member: "Member", weight: float) -> None:
        """Hands over the changes; `weight` of what this member computed in the step."""
        if not self._groups:
            return
        changes = [torch.tensor([weight], dtype=torch.float64)]
        for group in self._groups:
            group.before = group.before.cpu()
            change = group.values().to("cpu", torch.float64) - group.before.to(torch.float64)
            changes.append(change * weight if weight > 0 else torch.zeros_like(change))
        self._sums = torch.cat(changes)
        member.reduce(self._sums.data_ptr(), self._sums.numel(), _abi.F64)

    def apply(self) -> None:
        """The sums are there."""
        if self._sums is None:
            return
        changes = self._sums[1:] / self._sums[0] if self._sums[0] > 0 else self._sums[1:] * 0
        for group, of_group in zip(self._groups, changes.split([len(g.before) for g in self._groups])):
            for value, change in zip(group.split(group.before), group.split(of_group)):
                if change.any():
                    new = value.to(torch.float64) + change
                    value.copy_(new if value.dtype.is_floating_point else new.round())
            group.put(group.before.to(group.buffers[0].device))
        self._sums = None

    def discard(self) -> None:
        self._sums = None
        for group in self._groups:
            group.before = group.before.to(group.buffers[0].device)
            group.put(group.before)
