"""Where a member computes, as the other frameworks' loops have it: models and batches are moved there."""
from __future__ import annotations

import copy
import os
from collections.abc import MutableMapping
from dataclasses import replace
from typing import Any, Callable, Optional, Union

import torch

import antdt.torch as adt


def device_of(given: Union[str, torch.device, None], module: Optional[torch.nn.Module] = None) -> torch.device:
    """The device that is given; else that of `module`, if the program has moved it from the processor; else a
    GPU, if this process sees any."""
    if given is not None:
        return torch.device(given)
    for parameter in module.parameters() if module is not None else ():
        if parameter.device.type != "cpu":
            return parameter.device
    if not torch.cuda.is_available():
        return torch.device("cpu")
    # Workers without a GPU of their own take those that they see in turn, as antdt-trainer does.
    worker = int(os.environ.get("ANTDT_WORKER_ID", "w0").lstrip("w"))
    device = torch.device("cuda", worker % torch.cuda.device_count())
    torch.cuda.set_device(device)  # for `.cuda()` in the program
    return device


def class_of(device: torch.device) -> Optional[str]:
    """For adt.init(device=…), where alike devices have the same name; None: the processor, whose name the
    library knows."""
    if device.type == "cpu":
        return None
    return f"cuda:{torch.cuda.get_device_name(device)}" if device.type == "cuda" else device.type


def place(module: torch.nn.Module, device: torch.device) -> bool:
    """Moves the module, and says whether that moved its parameters. One that the program has spread over
    several devices stays as it is."""
    before = {parameter.device for parameter in module.parameters()}
    if len(before) > 1:
        return False
    module.to(device)
    return before != {parameter.device for parameter in module.parameters()}


def moved(data: Any, device: torch.device) -> Any:
    """Tensors and what else has a method `to`, in lists, tuples and mappings of any depth."""
    if callable(getattr(data, "to", None)):
        there = data.to(device)
        return data if there is None else there
    if isinstance(data, MutableMapping):
        mapping = copy.copy(data)
        mapping.update({key: moved(value, device) for key, value in data.items()})
        return mapping
    if isinstance(data, (list, tuple)):
        values = [moved(value, device) for value in data]
        return type(data)(*values) if hasattr(data, "_fields") else type(data)(values)
    return data


def of_moved(metric: Callable[[adt.MicroBatch], adt.Sums],
             move: Callable[[Any], Any]) -> Callable[[adt.MicroBatch], adt.Sums]:
    """The metric of batches whose data were moved."""
    return lambda mb: metric(replace(mb, data=move(mb.data)))
