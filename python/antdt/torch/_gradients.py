"""The gradients of one module, summed over all members in buckets while they are still computed.

torch's DistributedDataParallel cannot be used for this: its reducer does not survive a backward whose
reduction was broken off. Instead every parameter has a hook that runs after its gradient was
accumulated. Parameters are laid out in flat buckets in the reverse of their order, which is about the
order in which their gradients are complete. In the backward of a step's last micro-batch a bucket is
handed to the library as soon as all before it have been and it is complete; the rest follow when the
step is reduced. So the order of the reductions is the same on all members, and one without a
micro-batch takes part with zeros.

Where a parameter is float32 or float64 its .grad is a view of its bucket, which costs no copy. Half
precision (float16, bfloat16) is accumulated and summed in float32.
"""
from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

import torch

from antdt import _abi

if TYPE_CHECKING:
    from antdt._member import Member

_SUMMED_AS = {torch.float32: torch.float32, torch.float64: torch.float64,
              torch.float16: torch.float32, torch.bfloat16: torch.float32}
_ABI_TYPES = {torch.float32: _abi.F32, torch.float64: _abi.F64}
_FIRST_BUCKET_BYTES = 1 << 20


class _Bucket:
    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self.dtype, self.device = dtype, device
        self.parameters: List[torch.nn.Parameter] = []
        self.count = 0

    def add(self, parameter: torch.nn.Parameter) -> None:
        self.parameters.append(parameter)
        self.count += parameter.numel()

    def lay_out(self) -> None:
        self.sums = torch.zeros(self.count, dtype=self.dtype, device=self.device)
        # The tensor that the library sums, in the processor's memory.
        self.host = (self.sums if self.device.type == "cpu" else
                     torch.zeros(self.count, dtype=self.dtype))
        self.views: List[torch.Tensor] = []
        first = 0
        for p in self.parameters:
            self.views.append(self.sums[first:first + p.numel()].view(p.shape))
            first += p.numel()
        self.missing = len(self.parameters)


def _on_accumulated(parameter: torch.nn.Parameter, call: Callable[[], None]) -> Any:
    """Calls after each accumulation into parameter.grad; keep what it returns."""
    if hasattr(parameter, "register_post_accumulate_grad_hook"):  # torch 2.1 on
        return parameter.register_post_accumulate_grad_hook(lambda _: call())
    node: Any = parameter.expand_as(parameter).grad_fn
    node = node.next_functions[0][0]  # the parameter's AccumulateGrad
    return node, node.register_hook(lambda *_: call())


class Gradients:
    """States of a step: accumulating ──arm()──> launching ──finish()──> summed ──clear()──>
    accumulating; clear() may come at any time once the library has let go of the buckets."""

    def __init__(self, module: torch.nn.Module, bucket_bytes: int, overlap: bool) -> None:
        self.module = module
        self._overlap = overlap
        self._buckets: List[_Bucket] = []
        self._places: Dict[int, Tuple[_Bucket, int]] = {}  # by id of the parameter
        self._next = 0  # buckets before it have been handed over
        self._armed: Optional[Member] = None
        self._lay_out(bucket_bytes)
        self._hooks = [_on_accumulated(p, functools.partial(self._accumulated, p))
                       for bucket in self._buckets for p in bucket.parameters]
        self.clear()

    def _lay_out(self, bucket_bytes: int) -> None:
        open_buckets: Dict[Tuple[torch.dtype, torch.device], _Bucket] = {}
        for p in reversed([p for p in self.module.parameters() if p.requires_grad]):
            if p.dtype not in _SUMMED_AS:
                raise TypeError(f"job.ddp: a parameter of {p.dtype} cannot be trained over several "
                                f"members; float32, float64, float16 and bfloat16 can")
            key = (_SUMMED_AS[p.dtype], p.device)
            bucket = open_buckets.get(key)
            if bucket is None:
                bucket = open_buckets[key] = _Bucket(*key)
                self._buckets.append(bucket)
            bucket.add(p)
            # The first one is small, so that the sums begin soon after backward does.
            full = min(bucket_bytes, _FIRST_BUCKET_BYTES) if bucket is self._buckets[0] else bucket_bytes
            if bucket.count * torch.empty(0, dtype=key[0]).element_size() >= full:
                del open_buckets[key]
        for bucket in self._buckets:
            bucket.lay_out()
            for index, p in enumerate(bucket.parameters):
                self._places[id(p)] = (bucket, index)

    def parameters(self) -> List[torch.nn.Parameter]:
        return [p for bucket in self._buckets for p in bucket.parameters]

    def holds(self, parameter: torch.Tensor) -> bool:
        return id(parameter) in self._places

    # ------------------------------------------------------------------- during a backward

    def arm(self, member: "Member") -> None:
        """The backward that comes is the last of the step."""
        if self._overlap:
            self._armed = member

    def disarm(self) -> None:
        self._armed = None

    def _accumulated(self, p: torch.nn.Parameter) -> None:
        bucket, index = self._places[id(p)]
        view = bucket.views[index]
        if p.grad is not None and p.grad is not view:
            with torch.no_grad():
                view += p.grad
            p.grad = view if p.dtype == view.dtype else None
        if self._armed is None:
            return
        bucket.missing -= 1
        if bucket.missing < 0:
            raise RuntimeError(
                "a gradient was accumulated after its bucket had been handed over: the last "
                "micro-batch of a step may have one backward, and each parameter one gradient in "
                "it. Use job.ddp(module, overlap=False)")
        while self._next < len(self._buckets) and self._buckets[self._next].missing == 0:
            self._hand_over(self._armed)

    def _hand_over(self, member: "Member") -> None:
        bucket = self._buckets[self._next]
        self._next += 1
        bucket.missing = 0
        if bucket.host is not bucket.sums:
            bucket.host.copy_(bucket.sums)
        # False: the generation is over. The step will be discarded, whatever is in the buckets.
        member.reduce(bucket.host.data_ptr(), bucket.count, _ABI_TYPES[bucket.dtype])

    # ------------------------------------------------------------------- at the end of a step

    def finish(self, member: "Member") -> None:
        """Hands over what has not been."""
        while self._next < len(self._buckets):
            self._hand_over(member)

    def divide(self, weight: float) -> None:
        """The sums, which are there, become means: .grad of each parameter."""
        for bucket in self._buckets:
            if bucket.host is not bucket.sums:
                bucket.sums.copy_(bucket.host)
            bucket.sums /= weight
            for p, view in zip(bucket.parameters, bucket.views):
                p.grad = view if p.dtype == view.dtype else view.to(p.dtype)

    def clear(self) -> None:
        """The gradients are zero, and a new step begins."""
        self._armed, self._next = None, 0
        for bucket in self._buckets:
            bucket.missing = len(bucket.parameters)
            bucket.sums.zero_()
            for p, view in zip(bucket.parameters, bucket.views):
                p.grad = view if p.dtype == view.dtype else None
