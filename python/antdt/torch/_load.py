"""A checkpoint as the state_dicts that were written."""
from __future__ import annotations

import json
import os
from typing import Any, Dict, Union

import torch

from antdt.checkpoint import Checkpoint
from antdt.torch._memory import BY_NAME
from antdt.torch._state import JSON_PART
from antdt.torch._tree import decode


def load(path: Union[str, "os.PathLike[str]"]) -> Dict[str, Any]:
    """What job.state() was given, by name, each as its state_dict. `path` is a run directory, whose
    newest checkpoint is read, or the directory of one checkpoint. Runs no code of the file."""
    checkpoint = Checkpoint(path)
    if JSON_PART not in checkpoint.parts:
        raise ValueError(f"{checkpoint.path} was not written by a program of antdt.torch; "
                         f"antdt.Checkpoint reads its parts")

    def tensor(name: str) -> torch.Tensor:
        part = checkpoint.parts[name]
        dtype = BY_NAME[part.dtype]
        if part.bytes == 0:
            return torch.empty(part.shape, dtype=dtype)
        return torch.frombuffer(checkpoint.read(name), dtype=dtype).reshape(part.shape)

    return decode(json.loads(checkpoint.read(JSON_PART))["state"], tensor)
