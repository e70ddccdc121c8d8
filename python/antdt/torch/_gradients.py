"""The gradients of one module, summed over all members in buckets while they are still computed.

torch's DistributedDataParallel cannot be used for this: its reducer does not survive a backward whose
reduction was broken off. Instead every parameter has a hook that runs after its gradient was
accumulated. Parameters are laid out in flat buckets in the reverse of their order, which is about the
order in which their gradients are complete. In the backward of a step's last micro-batch a bucket is
handed to the library as soon as all before it have been and it is complete; the rest follow when the
step is reduced. So the order of the reductions is the same on all members, and one without a
micro-batch takes part with zeros. Autograd has a thread for each device, so a lock keeps that order where a
module is on several.

Where a parameter is float32 or float64 its .grad is a view of its bucket, which costs no copy. Half
precision (float16, bfloat16) is accumulated and summed in float32.

Only parameters that are trained have a place in a bucket; the .grad of the others is None. Which they
are is decided when a step begins (_trained.py), and if it is news, the buckets are laid out anew.
"""
from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

import torch

from antdt import _abi
from antdt.torch._trained import Trained

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
                     torch.zeros(self.count, dtype=self.dtype, pin_memory=self.device.type == "cuda"))
        self.views: List[torch.Tensor] = []
        first = 0
        for p in self.parameters:
            self.views.append(self.sums[first:first + p.numel()].view(p.shape))
            first += p.numel()
        self.begin()

    def begin(self) -> None:
        """A step begins; the sums are zero."""
        self.missing = len(self.parameters)
        self.accumulated = [False] * len(self.parameters)
        self.handed_over = False
        self.seen()

    def seen(self) -> None:
        """What was written so far was written by backward, or here."""
        self._version = self.sums._version

    def check(self) -> None:
        """RuntimeError if the program has thrown gradients away, as zero_grad() does it in place."""
        if self.sums._version == self._version:
            return
        if self.handed_over:
            raise RuntimeError(
                "gradients were changed after the last backward of a step, while they are summed: take "
                "zero_grad() out of the loop over steps, where gradients are zero when a step begins, "
                "and clip by step.apply(optimizer, clip=…)")
        if any(was and not bool(view.any()) for was, view in zip(self.accumulated, self.views)):
            raise RuntimeError(
                "the gradients of the step's micro-batches so far were set to zero: take zero_grad() out "
                "of the loop over micro-batches. Gradients are zero when a step begins")
        self.seen()


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
        self.trained = Trained(module)
        self._bucket_bytes, self._overlap = bucket_bytes, overlap
        self._hooks: Dict[int, Any] = {}  # by id of the parameter
        self._armed: Optional[Member] = None
        self._alone = False  # no other member is in the step, so nothing leaves the device
        # Held until the library has a bucket: whoever finds the next one complete hands it over after that.
        self._turn = threading.Lock()
        self._lay_out()
        self.clear()

    def _lay_out(self) -> None:
        self._buckets: List[_Bucket] = []
        self._places: Dict[int, Tuple[_Bucket, int]] = {}  # by id of the parameter
        open_buckets: Dict[Tuple[torch.dtype, torch.device], _Bucket] = {}
        for p in reversed(self.trained.parameters()):
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
            full = (min(self._bucket_bytes, _FIRST_BUCKET_BYTES) if bucket is self._buckets[0]
                    else self._bucket_bytes)
            if bucket.count * torch.empty(0, dtype=key[0]).element_size() >= full:
                del open_buckets[key]
        for bucket in self._buckets:
            bucket.lay_out()
            for index, p in enumerate(bucket.parameters):
                self._places[id(p)] = (bucket, index)
                if id(p) not in self._hooks:
                    self._hooks[id(p)] = _on_accumulated(p, functools.partial(self._accumulated, p))
        for _, p in self.trained.named():
            if id(p) not in self._places:
                p.grad = None

    def parameters(self) -> List[torch.nn.Parameter]:
        return [p for bucket in self._buckets for p in bucket.parameters]

    def holds(self, parameter: torch.Tensor) -> bool:
        """Whether its gradient is summed in this step."""
        return id(parameter) in self._places

    # ------------------------------------------------------------------- when a step begins

    def begin_step(self) -> bool:
        """The gradients are zero, and nothing of the step was computed. Whether other parameters are
        trained in it than in the one before."""
        self.trained.look()
        now = self.trained.parameters()
        if {id(p) for p in now} == set(self._places):
            return False
        self._lay_out()
        self.clear()
        return True

    # ------------------------------------------------------------------- during a backward

    def arm(self, member: "Member", members: int) -> None:
        """The backward that comes is the last of the step."""
        self._alone = members == 1
        if self._overlap:
            self._armed = member

    def disarm(self) -> None:
        self._armed = None

    def check_kept(self) -> None:
        """RuntimeError if the program has thrown gradients of this step away, or computed some that
        would not be summed."""
        for bucket in self._buckets:
            bucket.check()
        self.trained.check_others(self._places)

    def _accumulated(self, p: torch.nn.Parameter) -> None:
        if id(p) not in self._places:
            return  # check_kept says so, with the parameter's name
        bucket, index = self._places[id(p)]
        view = bucket.views[index]
        if p.grad is not None and p.grad is not view:
            with torch.no_grad():
                view += p.grad
            p.grad = view if p.dtype == view.dtype else None
        bucket.accumulated[index] = True
        bucket.seen()
        if self._armed is None:
            return
        with self._turn:
            bucket.missing -= 1
            if bucket.missing < 0:
                raise RuntimeError(
                    "a gradient was accumulated after its bucket had been handed over: the last "
                    "micro-batch of a step may have one backward, and each parameter one gradient in "
                    "it. Use job.ddp(module, overlap=False)")
            while self._next < len(self._buckets) and self._buckets[self._next].missing == 0:
                self._hand_over(self._armed)

    def _hand_over(self, member: "Member") -> None:
        """With the turn."""
        bucket = self._buckets[self._next]
        self._next += 1
        bucket.missing = 0
        bucket.handed_over = True
        if bucket.host is not bucket.sums and not self._alone:
            bucket.host.copy_(bucket.sums)
        # False: the generation is over. The step will be discarded, whatever is in the buckets.
        member.reduce(bucket.host.data_ptr(), bucket.count, _ABI_TYPES[bucket.dtype])

    # ------------------------------------------------------------------- at the end of a step

    def finish(self, member: "Member", members: int) -> None:
        """Hands over what has not been."""
        self._alone = members == 1
        with self._turn:
            while self._next < len(self._buckets):
                self._hand_over(member)

    def divide(self, weight: float) -> None:
        """The sums, which are there, become means: .grad of each parameter."""
        for bucket in self._buckets:
            if bucket.host is not bucket.sums and not self._alone:
                bucket.sums.copy_(bucket.host, non_blocking=True)
            bucket.sums /= weight
            for p, view in zip(bucket.parameters, bucket.views):
                p.grad = view if p.dtype == view.dtype else view.to(p.dtype)

    def clear(self) -> None:
        """The gradients are zero, and a new step begins."""
        self._armed = None
        self._next = 0  # buckets before it have been handed over
        for bucket in self._buckets:
            bucket.sums.zero_()
            bucket.begin()
            for p, view in zip(bucket.parameters, bucket.views):
                p.grad = view if p.dtype == view.dtype else None
