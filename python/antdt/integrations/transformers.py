"""A Trainer of Hugging Face transformers as a worker of AntDT, in place of its `train`:

    -trainer.train()
    +from antdt.integrations.transformers import train
    +train(trainer)

`Trainer.train` decides how many batches an epoch has and when a step is due, and in a job that is the
job's to say. So the Trainer is used without that loop: its model, `compute_loss`, collator, optimizer and
schedule (`create_optimizer_and_scheduler`), `max_grad_norm`, and how many labels a batch has, of which the
loss is a mean. What that loop does for a device is done here: bf16, and activations that are computed again.
The Trainer's callbacks, logs and checkpoints are not used: the job reports and writes checkpoints.
Nothing here imports transformers.
"""
from __future__ import annotations

import contextlib
from typing import Any, Callable, ContextManager, List, Optional

import torch
from torch.utils.data import RandomSampler, SequentialSampler

import antdt.torch as adt
from antdt.integrations._devices import class_of, of_moved
from antdt.integrations._ends import end_if

_REFUSED = {
    "fp16": "use bf16, or the loop of antdt.torch, whose steps take a GradScaler",
    "deepspeed": "it keeps the optimizer's state in pieces that members would have to exchange in each step",
    "fsdp": "it gathers parameters in each forward, and members may have unlike numbers of micro-batches",
    "neftune_noise_alpha": "the Trainer's own loop adds that noise; a hook on the embeddings can add it",
}


def _check(trainer: Any) -> None:
    args = trainer.args
    for name, why in _REFUSED.items():
        if getattr(args, name, None):
            raise ValueError(f"TrainingArguments({name}=…) cannot hold in a job: {why}")
    if args.gradient_accumulation_steps != 1:
        raise ValueError("TrainingArguments(gradient_accumulation_steps=…): how many micro-batches a step "
                         "has is the job's to say; write the batch of all members as [batch] global in "
                         "job.toml")
    if not hasattr(trainer.train_dataset, "__len__"):
        raise TypeError("the Trainer has an iterable dataset, whose records a job cannot hand out; "
                        "antdt.torch.shards reads data in ranges")


def _dataset_of(trainer: Any, dataset: Any) -> Any:
    """Without the columns that the model does not take, as the Trainer would give it."""
    without = getattr(trainer, "_remove_unused_columns", None)
    return without(dataset) if without is not None and hasattr(dataset, "column_names") else dataset


def _is_shuffled(trainer: Any) -> bool:
    """Whether a world of one is to shuffle; in a job job.toml says so."""
    sampler = trainer._get_train_sampler()
    if type(sampler) not in (RandomSampler, SequentialSampler):
        raise TypeError(f"the Trainer has a {type(sampler).__name__}, and in a job the ledger says which "
                        f"records are whose: leave the sampler out")
    return not isinstance(sampler, SequentialSampler)


def _steps_in_all(trainer: Any, job: adt.Job, records: int) -> int:
    """For the schedule."""
    args = trainer.args
    if args.max_steps > 0:
        return int(args.max_steps)
    if job.in_job and "constant" not in str(getattr(args.lr_scheduler_type, "value", args.lr_scheduler_type)):
        raise ValueError("how many steps there are is the job's to say, and the schedule has to know: write "
                         "TrainingArguments(max_steps=…), epochs × records / [batch] global of job.toml, or "
                         "lr_scheduler_type='constant'")
    return -(-records // args.per_device_train_batch_size) * max(1, int(args.num_train_epochs))


def _prepare_model(trainer: Any) -> None:
    """What a Trainer leaves to its loop."""
    args, model = trainer.args, trainer.model
    if getattr(args, "n_gpu", 1) > 1:
        args._n_gpu = 1  # a loss is that of one device, args.device, and not one for each that is seen
    full = getattr(args, "bf16_full_eval", False) or getattr(args, "fp16_full_eval", False)
    if full and not getattr(trainer, "is_model_parallel", False):
        trainer._move_model_to_device(model, args.device)
    names = ("activation_checkpointing", "gradient_checkpointing")  # of transformers 5, and of all
    if not any(getattr(args, name, None) for name in names):
        return
    for name in names:
        if getattr(args, name, None) and hasattr(model, f"{name}_enable"):
            options = dict(getattr(args, f"{name}_kwargs", None) or {})
            given = {key: options.pop(key) for key in ("every_n_layers", "offload") if key in options}
            given.update({f"{name}_kwargs": options} if options else {})
            getattr(model, f"{name}_enable")(**given)
            return
    raise ValueError(f"TrainingArguments(gradient_checkpointing=…): {type(model).__name__} has no "
                     f"gradient_checkpointing_enable, which would have activations computed again. Leave the "
                     f"argument out, or use a model that has that method")


def _precision(args: Any) -> ContextManager[Any]:
    """Of forward passes. The Trainer's loop has accelerate put it into the model's forward."""
    if getattr(args, "bf16", False):
        return torch.autocast(args.device.type, dtype=torch.bfloat16)
    return contextlib.nullcontext()


def _backward(trainer: Any, step: adt.Step, mb: adt.MicroBatch) -> None:
    """The loss is a mean over the labels of the batch where the Trainer counts them, else over its
    records."""
    inputs = trainer._prepare_inputs(mb.data)
    labels = trainer._get_num_items_in_batch([inputs], trainer.args.device)
    if labels is not None and labels == 0:
        step.skip(mb, "no label in the micro-batch")
        return
    counted = {} if labels is None else {"num_items_in_batch": labels}
    with trainer.compute_loss_context_manager(), _precision(trainer.args):
        loss = trainer.compute_loss(trainer.model, inputs, **counted)
    if labels is None:
        step.backward(loss * len(mb), weight=mb.weight)
    else:
        step.backward(loss * labels, weight=float(labels))


def train(trainer: Any, *, validation: Optional[Any] = None,
          metric: Optional[Callable[[adt.MicroBatch], adt.Sums]] = None,
          until: Optional[Callable[[List[adt.Evaluated]], Optional[str]]] = None) -> List[adt.Evaluated]:
    """Trains what the Trainer was made with; `num_train_epochs` and the batch size count outside a job.

    validation, metric  a dataset and the metric of job.evaluate, where the job evaluates
                        (data.eval_records)
    until               is asked after each epoch, with what the evaluations found so far: why the training
                        ends now, or None

    What the evaluations found, in their order.
    """
    _check(trainer)
    if (validation is None) != (metric is None):
        raise TypeError("train: validation and metric belong together")
    args, model = trainer.args, trainer.model
    _prepare_model(trainer)
    job = adt.init(epochs=max(1, int(args.num_train_epochs)), seed=args.seed,
                   batch_size=args.per_device_train_batch_size, shuffle=_is_shuffled(trainer),
                   device=class_of(args.device))

    def loader_of(dataset: Any) -> adt.Loader:
        return adt.Loader(_dataset_of(trainer, dataset), collate_fn=trainer.data_collator,
                          num_workers=args.dataloader_num_workers)

    loader = loader_of(trainer.train_dataset)
    rest = None if validation is None else loader_of(validation)
    trainer.create_optimizer_and_scheduler(_steps_in_all(trainer, job, len(loader)))
    job.ddp(model)
    job.state(model=model, opt=trainer.optimizer, sched=trainer.lr_scheduler)
    found: List[adt.Evaluated] = []
    for _ in job.epochs():
        model.train()
        for step in job.steps(loader):
            for mb in step:
                with step.micro(mb):
                    _backward(trainer, step, mb)
            if step.apply(trainer.optimizer, clip=args.max_grad_norm or None):
                trainer.lr_scheduler.step()
        if rest is not None and metric is not None:
            model.eval()
            evaluated = job.evaluate(rest, of_moved(metric, trainer._prepare_inputs))
            found += [evaluated] if evaluated is not None else []
        end_if(job, until, found)
    return found
