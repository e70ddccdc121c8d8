"""Which parameters of a module are trained: those that require a gradient when a step begins.

All members have to agree on this, since they sum the gradients of the same parameters. What a program
does outside of its micro-batches, all members do alike. What it does in a micro-batch (a discriminator
that is frozen while its generator is trained) only those do that have one in the step. So a parameter
is frozen, or trained again, where its requires_grad changes between two steps, and not where it
changes in the body of `for mb in step`.

A process that joins was not there when a parameter was frozen. So the state names the frozen ones, and
whoever takes the state over freezes the same.
"""
from __future__ import annotations

from typing import Container, Iterable, Iterator, List, Tuple

import torch


class Trained:
    def __init__(self, module: torch.nn.Module) -> None:
        named = [(n, p) for n, p in module.named_parameters()
                 if p.is_floating_point() or p.is_complex()]
        self._names = [name for name, _ in named]
        self._all = [p for _, p in named]
        self._ids = {id(p) for p in self._all}
        self._seen = [p.requires_grad for p in self._all]  # when somebody looked
        self._trained = list(self._seen)

    def named(self) -> Iterator[Tuple[str, torch.nn.Parameter]]:
        return zip(self._names, self._all)

    def knows(self, parameter: torch.Tensor) -> bool:
        return id(parameter) in self._ids

    def parameters(self) -> List[torch.nn.Parameter]:
        return [p for p, trained in zip(self._all, self._trained) if trained]

    def look(self) -> None:
        """All members are here: what has changed since the last look holds for all."""
        for i, p in enumerate(self._all):
            if p.requires_grad != self._seen[i]:
                self._seen[i] = self._trained[i] = p.requires_grad

    def pass_over(self) -> None:
        """What has changed since the last look does not: a micro-batch was computed meanwhile."""
        self._seen = [p.requires_grad for p in self._all]

    def check_others(self, summed: Container[int]) -> None:
        """RuntimeError if a parameter has a gradient though it is not `summed` (by id) in this step."""
        for name, p in self.named():
            if id(p) not in summed and p.grad is not None:
                raise RuntimeError(
                    f"{name} was frozen when the step began, and got a gradient in it, which would not be "
                    f"summed. Which parameters are trained is known before a step, since a member may "
                    f"compute nothing in it: set requires_grad before `for mb in step`")

    # ------------------------------------------------------------------- in the state

    def frozen(self) -> List[str]:
        return [name for name, trained in zip(self._names, self._trained) if not trained]

    def freeze(self, names: Iterable[str]) -> None:
        """These are frozen, and the others trained."""
        frozen = set(names)
        for i, (name, p) in enumerate(zip(self._names, self._all)):
            if self._trained[i] == (name in frozen):
                p.requires_grad_(name not in frozen)
                self._seen[i] = self._trained[i] = p.requires_grad
