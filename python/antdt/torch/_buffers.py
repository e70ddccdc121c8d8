"""The buffers of one module, as the running statistics of BatchNorm.

Forward changes them on each member by what that member saw. So that all members go on alike, a step
adds to each buffer the mean of the members' changes, weighted as their gradients are: a member that
computed nothing has no say, and a buffer that nobody changed stays as it is to the bit. Whole numbers
(num_batches_tracked) are rounded. A step that is discarded leaves the buffers as they were before it.

A forward changes a buffer in place, or puts another tensor in its place (`self.mean = 0.9 * self.mean +
…`). So a buffer is what its module has under its name now. One that is in the place of the tensor that
was there may share its memory with anything, as a batch or a parameter: the values go into a new tensor.

Buffers of one type on one device are copied together: a copy from or to a device waits for it, and a
model may have hundreds of small ones.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Dict, List, Optional, Tuple

import torch

from antdt import _abi

if TYPE_CHECKING:
    from antdt._member import Member


class _Buffer:
    """A buffer, by its name in its module."""

    def __init__(self, name: str, module: torch.nn.Module, key: str, own: torch.Tensor) -> None:
        self._name, self._module, self._key = name, module, key
        self._own = own  # what was there when the job began, or was put there by put()

    def size(self) -> int:
        return self._own.numel()

    def _there(self) -> Optional[torch.Tensor]:
        return self._module._buffers[self._key]

    def values(self) -> torch.Tensor:
        now, own = self._there(), self._own
        if now is None or now.shape != own.shape or now.dtype != own.dtype:
            has = "nothing" if now is None else f"a tensor of shape {tuple(now.shape)} and {now.dtype}"
            raise TypeError(
                f"the buffer {self._name} had shape {tuple(own.shape)} and {own.dtype} when the job began, and a "
                f"forward has put {has} in its place. Buffers are averaged over all members, so keep their "
                f"shapes and types")
        return now.detach().reshape(-1)

    def put(self, values: torch.Tensor) -> None:
        now = self._there()
        if now is not self._own:
            device = self._own.device if now is None else now.device
            self._own = torch.empty_like(self._own, device=device)
            self._module._buffers[self._key] = self._own
        self._own.copy_(values.view(self._own.shape))


class _Group:
    """Buffers of one type on one device."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.buffers: List[_Buffer] = []
        self.before = torch.empty(0)  # as all members have them

    def values(self) -> torch.Tensor:
        """A copy of all, one after another."""
        return torch.cat([b.values().to(self.device) for b in self.buffers])

    def split(self, values: torch.Tensor) -> Tuple[torch.Tensor, ...]:
        return values.split([b.size() for b in self.buffers])

    def put(self, values: torch.Tensor) -> None:
        with torch.no_grad():
            for buffer, part in zip(self.buffers, self.split(values)):
                buffer.put(part)


class Buffers:
    def __init__(self, module: torch.nn.Module) -> None:
        kept = module.state_dict(keep_vars=True)
        values = {id(v) for v in kept.values()}
        groups: Dict[Tuple[torch.dtype, torch.device], _Group] = {}
        for name, b in module.named_buffers():
            if id(b) in values and b.numel() > 0 and not b.dtype.is_complex:
                group = groups.setdefault((b.dtype, b.device), _Group(b.device))
                path, _, key = name.rpartition(".")
                group.buffers.append(_Buffer(name, module.get_submodule(path), key, b))
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
            group.put(group.before.to(group.device))
        self._sums = None

    def discard(self) -> None:
        self._sums = None
        for group in self._groups:
            group.before = group.before.to(group.device)
            group.put(group.before)
