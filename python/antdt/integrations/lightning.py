"""A LightningModule as a worker of AntDT, in place of Lightning's Trainer:

    -trainer = Trainer(max_epochs=3, gradient_clip_val=1.0)
    -trainer.fit(module, loader)
    +from antdt.integrations.lightning import fit
    +fit(module, loader, max_epochs=3, gradient_clip_val=1.0)

The Trainer decides how many batches an epoch has and when a step is due, and in a job that is the
job's to say; a Strategy cannot take it from the Trainer. So the module is used without one: its
`configure_optimizers` and `training_step`, and the hooks `on_train_epoch_start` and
`on_train_epoch_end` where it has them. The module and its batches are moved to the GPU, as a Trainer does;
for bfloat16 there is torch.autocast in `training_step`. `self.log` in it does nothing, as Lightning says in
a warning; what the job reports is the loss. Nothing here imports Lightning.
"""
from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple

import torch
from torch.utils.data import DataLoader

import antdt.torch as adt
from antdt.integrations._devices import class_of, device_of, moved, of_moved, place
from antdt.integrations._ends import end_if
from antdt.integrations._loaders import is_shuffled, loader_of


def _optimizer_of(module: Any) -> Tuple[torch.optim.Optimizer, List[Tuple[Any, bool]]]:
    """(the optimizer, schedules and whether each is advanced by steps, and not by epochs)."""
    found = module.configure_optimizers()
    schedules: List[Any] = []
    if isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], (list, tuple)):
        found, schedules = found
    if isinstance(found, dict):
        schedules = [found["lr_scheduler"]] if "lr_scheduler" in found else []
        found = found["optimizer"]
    if isinstance(found, (list, tuple)) and len(found) == 1:
        found = found[0]
    if not isinstance(found, torch.optim.Optimizer):
        raise TypeError("configure_optimizers gives one optimizer here: several would have steps of "
                        "their own")
    return found, [_schedule_of(schedule) for schedule in schedules]


def _schedule_of(given: Any) -> Tuple[Any, bool]:
    options = given if isinstance(given, dict) else {"scheduler": given}
    if options.get("frequency", 1) != 1 or "monitor" in options:
        raise TypeError("a schedule is advanced by each step or each epoch here; its frequency is 1, "
                        "and what it monitors is antdt.torch's job.evaluate to find")
    return options["scheduler"], options.get("interval", "epoch") == "step"


def fit(module: Any, loader: DataLoader, *, max_epochs: int = 1,
        gradient_clip_val: Optional[float] = None,
        validation: Optional[DataLoader] = None,
        metric: Optional[Callable[[adt.MicroBatch], adt.Sums]] = None,
        until: Optional[Callable[[List[adt.Evaluated]], Optional[str]]] = None,
        device: Optional[str] = None) -> List[adt.Evaluated]:
    """Trains `module`, whose training_step gives the mean loss over the records of its batch.

    max_epochs          outside a job; in one, job.toml says how many
    gradient_clip_val   the greatest norm of all gradients
    validation, metric  of job.evaluate, where the job evaluates (data.eval_records)
    until               is asked after each epoch, with what the evaluations found so far: why the training
                        ends now, or None. It is what EarlyStopping would do
    device              where the module and the batches are moved (by its transfer_batch_to_device, if it has
                        that); without it where the module is, or to a GPU, if this process sees any

    What the evaluations found, in their order.
    """
    if not getattr(module, "automatic_optimization", True):
        raise TypeError("the module takes its optimizer's steps itself (automatic_optimization is "
                        "False), and in a job a step is applied by all members or by none: write the "
                        "loop with antdt.torch")
    if (validation is None) != (metric is None):
        raise TypeError("fit: validation and metric belong together")
    there = device_of(device, module)
    place(module, there)
    optimizer, schedules = _optimizer_of(module)
    job = adt.init(epochs=max_epochs, batch_size=loader.batch_size or 1, shuffle=is_shuffled(loader),
                   device=class_of(there))
    job.ddp(module)
    job.state(model=module, opt=optimizer,
              **{f"sched{i}": schedule for i, (schedule, _) in enumerate(schedules)})
    train = loader_of(loader)
    rest = loader_of(validation) if validation is not None else None
    own = getattr(module, "transfer_batch_to_device", None)

    def move(data: Any) -> Any:
        return moved(data, there) if own is None else own(data, there, 0)

    found: List[adt.Evaluated] = []
    for epoch in job.epochs():
        module.train()
        _hook(module, "on_train_epoch_start")
        _steps(job, module, train, move, optimizer, gradient_clip_val,
               [schedule for schedule, by_step in schedules if by_step])
        _hook(module, "on_train_epoch_end")
        if rest is not None and metric is not None:
            module.eval()
            evaluated = job.evaluate(rest, of_moved(metric, move))
            found += [evaluated] if evaluated is not None else []
        # Behind the evaluation, in which members may come that do this, too.
        for schedule in (s for s, by_step in schedules if not by_step):
            schedule.step()
        end_if(job, until, found)
    return found


def _hook(module: Any, name: str) -> None:
    if callable(getattr(module, name, None)):
        getattr(module, name)()


def _steps(job: adt.Job, module: Any, loader: adt.Loader, move: Callable[[Any], Any],
           optimizer: torch.optim.Optimizer, clip: Optional[float], schedules: List[Any]) -> None:
    """The steps of an epoch in which this member takes part."""
    for n, step in enumerate(job.steps(loader)):
        for mb in step:
            with step.micro(mb):
                loss = module.training_step(move(mb.data), n)
                loss = loss["loss"] if isinstance(loss, dict) else loss
                step.backward(loss * len(mb), weight=mb.weight)
        if step.apply(optimizer, clip=clip):
            for schedule in schedules:
                schedule.step()
