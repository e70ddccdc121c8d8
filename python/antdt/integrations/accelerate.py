"""A loop that was written for Hugging Face accelerate, as a worker of AntDT:

    -from accelerate import Accelerator
    +from antdt.integrations.accelerate import Accelerator

     accelerator = Accelerator()
     net, opt, loader, sched = accelerator.prepare(net, opt, loader, sched)
     for epoch in range(3):
         for x, y in loader:
             opt.zero_grad()
             accelerator.backward(loss(net(x), y))      # a mean over the batch
             opt.step()
             sched.step()
     accelerator.end_training()                         # where job.toml has more epochs than the loop

The loader gives this member's micro-batches. The optimizer's step is taken when all of a step's
micro-batches are computed, by all members, and the schedules are advanced with it: `opt.step()`,
`opt.zero_grad()` and `sched.step()` say what happens anyway. So a member without a micro-batch in a step,
whose loop body does not run, does the same as the others.

What accelerate does by a collective of its own (gather, reduce, save_state …) is refused.
"""
from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch
from torch.utils.data import DataLoader

import antdt.torch as adt
from antdt.integrations._devices import class_of, device_of, moved, of_moved, place
from antdt.integrations._loaders import is_shuffled, loader_of

_FOR_EVER = 1_000_000  # epochs outside a job, where the program's own loop ends
_REFUSED = {
    "gather": "the job adds up metrics: accelerator.evaluate(loader, metric)",
    "gather_for_metrics": "the job adds up metrics: accelerator.evaluate(loader, metric)",
    "sync_gradients": "a step is complete when all members' micro-batches are: leave the condition out, and "
                      "clip by Accelerator(max_grad_norm=…)",
    "reduce": "members have unlike numbers of micro-batches, so that they do not meet there",
    "wait_for_everyone": "members have unlike numbers of micro-batches, so that they do not meet there",
    "save_state": "the job writes checkpoints ([checkpoint] in job.toml), and antdt.torch.load reads them",
    "load_state": "a resumed job goes on from its checkpoint by itself (antdt run --resume RUN)",
}


class _Told:
    """An optimizer or a schedule whose step is taken with the others'."""

    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def step(self, *_: Any, **__: Any) -> None:
        """Is taken when the step is complete."""

    def zero_grad(self, *_: Any, **__: Any) -> None:
        """Gradients are zero when a step begins."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._thing, name)


class _Batches:
    """The train loader: each time it is gone through is an epoch of the job, or nothing once the job
    has no more."""

    def __init__(self, accelerator: "Accelerator", loader: adt.Loader) -> None:
        self._accelerator, self._loader = accelerator, loader
        self.dataset = loader.dataset

    def __iter__(self) -> Iterator[Any]:
        return self._accelerator._epoch(self._loader)


class Accelerator:
    """max_grad_norm  what clip_grad_norm_ is called with in the loop; a member without a micro-batch
                      has to know it, too
    device            where the model and the batches are moved; without it a GPU, if this process sees any"""

    def __init__(self, *, max_grad_norm: Optional[float] = None, gradient_accumulation_steps: int = 1,
                 mixed_precision: str = "no", device: Optional[str] = None, seed: int = 0) -> None:
        if gradient_accumulation_steps != 1:
            raise ValueError("gradient_accumulation_steps: how many micro-batches a step has is the "
                             "job's to say; write the batch of all members as [batch] global in job.toml")
        if mixed_precision != "no":
            raise ValueError(f"mixed_precision={mixed_precision!r}: the model's forward is not wrapped "
                             f"here; use torch.autocast in the loop, and for fp16 antdt.torch itself, "
                             f"whose steps take a GradScaler")
        self._clip, self._seed, self._device = max_grad_norm, seed, device_of(device)
        self._job: Optional[adt.Job] = None
        self._epochs: Optional[Iterator[int]] = None
        self._step: Optional[adt.Step] = None
        self._micro: Any = None  # the context of the micro-batch that is computed
        self._batch: Optional[adt.MicroBatch] = None
        self._optimizer: Optional[torch.optim.Optimizer] = None
        self._schedules: List[Any] = []
        self._evaluated: Optional[Tuple[DataLoader, adt.Loader]] = None  # whose processes go on

    def __getattr__(self, name: str) -> Any:
        if name in _REFUSED:
            raise RuntimeError(f"accelerator.{name}: {_REFUSED[name]}")
        raise AttributeError(f"this Accelerator has no {name}")

    # ------------------------------------------------------------------- what is trained

    def prepare(self, *things: Any) -> Any:
        """A model, its optimizer, the train DataLoader and schedules, in any order and in one call."""
        if self._job is not None:
            raise RuntimeError("accelerator.prepare: give model, optimizer, loader and schedules in one "
                               "call, since a job begins with all of them; a loader to evaluate on is "
                               "given to accelerator.evaluate as it is")
        sorted_out = [(self._kind_of(thing), thing) for thing in things]
        if sum(k == "loader" for k, _ in sorted_out) > 1:
            raise TypeError("accelerator.prepare: one loader, to train on. A loader to evaluate on is not "
                            "prepared: give it as it is to accelerator.evaluate(loader, metric), which goes "
                            "over all of its records, on all members, where [data] eval_records in job.toml "
                            "says how many there are")
        for kind in ("model", "optimizer", "loader"):
            if sum(k == kind for k, _ in sorted_out) != 1:
                raise TypeError(f"accelerator.prepare: one {kind}, and this has "
                                f"{sum(k == kind for k, _ in sorted_out)}")
        given: Dict[str, Any] = {}
        for kind, thing in sorted_out:
            given.setdefault(kind, thing)
        self._optimizer = given["optimizer"]
        self._schedules = [thing for kind, thing in sorted_out if kind == "schedule"]
        loader = given["loader"]
        batches = loader_of(loader)
        if place(given["model"], self._device) and self._optimizer.state:  # which is where the parameters were
            self._optimizer.load_state_dict(self._optimizer.state_dict())
        self._job = adt.init(epochs=_FOR_EVER, batch_size=loader.batch_size, seed=self._seed,
                             shuffle=is_shuffled(loader), device=class_of(self._device))
        self._job.ddp(given["model"])
        self._job.state(model=given["model"], opt=self._optimizer,
                        **{f"sched{i}": s for i, s in enumerate(self._schedules)})
        made = [_Batches(self, batches) if kind == "loader" else self._prepared(kind, thing)
                for kind, thing in sorted_out]
        return made[0] if len(made) == 1 else tuple(made)

    @staticmethod
    def _kind_of(thing: Any) -> str:
        if isinstance(thing, torch.nn.Module):
            return "model"
        if isinstance(thing, torch.optim.Optimizer):
            return "optimizer"
        if isinstance(thing, DataLoader):
            return "loader"
        if hasattr(thing, "step") and hasattr(thing, "state_dict"):
            return "schedule"
        raise TypeError(f"accelerator.prepare: a {type(thing).__name__} is no model, optimizer, "
                        f"DataLoader or schedule")

    @staticmethod
    def _prepared(kind: str, thing: Any) -> Any:
        return _Told(thing) if kind in ("optimizer", "schedule") else thing

    # ------------------------------------------------------------------- the loop

    def _epoch(self, loader: adt.Loader) -> Iterator[Any]:
        job = self._the_job()
        if self._epochs is None:
            self._epochs = job.epochs()
        if next(self._epochs, None) is None:
            return
        for step in job.steps(loader):
            self._step = step
            for batch in step:
                # No `with`: where the program leaves the loop, the job hears of that by the program's
                # end, with the program's own words.
                self._micro, self._batch = step.micro(batch), batch
                self._micro.__enter__()
                yield moved(batch.data, self._device)
                self._batch = None
                self._micro.__exit__(None, None, None)
            assert self._optimizer is not None
            if step.apply(self._optimizer, clip=self._clip):
                for schedule in self._schedules:
                    schedule.step()

    def backward(self, loss: torch.Tensor) -> None:
        """loss  the mean over the records of this batch, as cross_entropy and mse_loss give it"""
        if self._batch is None or self._step is None:
            raise RuntimeError("accelerator.backward is called in the loop over the prepared loader, once "
                               "for each batch")
        self._step.backward(loss * len(self._batch), weight=self._batch.weight)

    def clip_grad_norm_(self, _parameters: Any, max_norm: float, norm_type: float = 2) -> None:
        """Gradients are clipped when the step is complete."""
        if norm_type != 2 or self._clip != max_norm:
            raise RuntimeError(f"accelerator.clip_grad_norm_: a member without a micro-batch has to clip "
                               f"alike and does not get here: say Accelerator(max_grad_norm={max_norm}), "
                               f"by the norm of type 2")

    @contextlib.contextmanager
    def accumulate(self, *_: Any) -> Iterator[None]:
        """The job says how many micro-batches a step has."""
        yield

    def evaluate(self, loader: DataLoader,
                 metric: Callable[[adt.MicroBatch], adt.Sums]) -> Optional[adt.Evaluated]:
        """job.evaluate: where the job evaluates, of all records (data.eval_records); what all found."""
        if self._evaluated is None or self._evaluated[0] is not loader:
            self._evaluated = loader, loader_of(loader)
        return self._the_job().evaluate(self._evaluated[1],
                                        of_moved(metric, lambda data: moved(data, self._device)))

    # ------------------------------------------------------------------- where it stands

    def _the_job(self) -> adt.Job:
        if self._job is None:
            raise RuntimeError("accelerator.prepare comes first")
        return self._job

    @property
    def device(self) -> torch.device:
        return self._device

    @property
    def process_index(self) -> int:
        return self._the_job().rank

    @property
    def num_processes(self) -> int:
        return self._the_job().size

    @property
    def is_main_process(self) -> bool:
        """Rank 0; before the first epoch, when there are no ranks in a job, the worker w0."""
        if self._epochs is None:
            return self._the_job().worker == "w0"
        return self.process_index == 0

    is_local_main_process = is_main_process

    def print(self, *words: Any, **options: Any) -> None:
        if self.is_main_process:
            print(*words, **options)

    def unwrap_model(self, model: torch.nn.Module) -> torch.nn.Module:
        return model

    def end_training(self) -> None:
        """The program needs no more epochs: a job that has some left is done with what is trained."""
        if self._batch is not None:
            raise RuntimeError("accelerator.end_training: the loop over the prepared loader was left amid a "
                               "step of all members; leave it at its end, and end the training then")
        if self._job is not None and self._epochs is not None:
            self._job.end_training("the program called accelerator.end_training()")
            next(self._epochs, None)
