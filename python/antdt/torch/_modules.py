"""The modules that job.ddp() was given: what is done with the gradients and buffers of all of them."""
from __future__ import annotations

from typing import TYPE_CHECKING, List

import torch

from antdt.torch._buffers import Buffers
from antdt.torch._gradients import Gradients

if TYPE_CHECKING:
    from antdt._member import Member
    from antdt.torch._state import State

_REFUSED = {
    "SyncBatchNorm": "SyncBatchNorm waits for all members in each forward, and members may have unlike "
                     "numbers of micro-batches. Use BatchNorm, whose statistics are averaged in each step",
    "DistributedDataParallel": "it takes the place of DistributedDataParallel; give it the module itself",
    **dict.fromkeys(("FullyShardedDataParallel", "FSDP", "FSDPModule"),
                    "FSDP gathers parameters in each forward, and members may have unlike numbers of "
                    "micro-batches. Give job.ddp the module itself"),
}


class Modules:
    def __init__(self, state: "State") -> None:
        self._state = state
        self._gradients: List[Gradients] = []
        self._reduces_buffers: List[torch.nn.Module] = []
        self._buffers: List[Buffers] = []

    def add(self, module: torch.nn.Module, bucket_bytes: int, overlap: bool, buffers: bool) -> None:
        for part in module.modules():
            if type(part).__name__ in _REFUSED:
                raise TypeError(f"job.ddp: {_REFUSED[type(part).__name__]}")
        for name, p in module.named_parameters():
            if self.know(p):
                raise ValueError(f"job.ddp: {name} is in a module that job.ddp was given before, so that "
                                 f"its gradient would be added twice. Give each parameter once; modules "
                                 f"that share some, together in one torch.nn.ModuleList")
        self._gradients.append(Gradients(module, bucket_bytes, overlap))
        self._state.follow(self._gradients[-1].trained)
        if buffers:
            self._reduces_buffers.append(module)

    def parameters(self) -> List[torch.nn.Parameter]:
        """Those that are trained in this step."""
        return [p for gradients in self._gradients for p in gradients.parameters()]

    def know(self, parameter: torch.Tensor) -> bool:
        """Whether it is one of a module's, trained or not."""
        return any(gradients.trained.knows(parameter) for gradients in self._gradients)

    def begin(self) -> None:
        """The job begins."""
        self._buffers = [Buffers(module) for module in self._reduces_buffers]
        for gradients in self._gradients:
            gradients.clear()

    def check_held(self) -> None:
        """RuntimeError if what is trained is not in the state."""
        held = {id(v) for m in self._state.modules() for v in m.parameters()}
        if any(id(p) not in held for p in self.parameters()):
            raise RuntimeError("job.state(model=…) has to hold what job.ddp was given: without it a "
                               "member that joins would not get the model")

    # ------------------------------------------------------------------- a step

    def clear(self) -> None:
        """The gradients are zero, and the buffers as all members have them."""
        for gradients in self._gradients:
            gradients.clear()
        for buffers in self._buffers:
            buffers.step_begins()

    def begin_step(self) -> None:
        changed = [gradients.begin_step() for gradients in self._gradients]
        if any(changed):
            self.check_held()
            for gradients in self._gradients:
                for name, p in gradients.trained.named():
                    if gradients.holds(p):
                        self._state.check_kept(name, p)

    def arm(self, member: "Member", members: int) -> None:
        """The backward that comes is the last of the step."""
        for gradients in self._gradients:
            gradients.arm(member, members)

    def disarm(self) -> None:
        for gradients in self._gradients:
            gradients.disarm()

    def micro_batch_ended(self) -> None:
        """The program's code for a micro-batch has run, which not all members have."""
        for gradients in self._gradients:
            gradients.trained.pass_over()

    def check_kept(self) -> None:
        """RuntimeError if the program has thrown gradients away."""
        for gradients in self._gradients:
            gradients.check_kept()

    def finish(self, member: "Member", members: int, weight: float) -> None:
        """Hands over what is not summed yet; `weight` of what this member computed."""
        self.check_kept()
        for gradients in self._gradients:
            gradients.finish(member, members)
        for buffers in self._buffers:
            buffers.finish(member, weight)

    def apply(self, weight: float) -> None:
        """The sums are there, and `weight` is that of all."""
        for gradients in self._gradients:
            gradients.divide(weight)
        for buffers in self._buffers:
            buffers.apply()

    def discard_buffers(self) -> None:
        for buffers in self._buffers:
            buffers.discard()
