"""A state_dict as JSON and tensors. JSON holds the structure and the plain values; a tensor is named
where it stands. What says how the program computes (a function that a schedule keeps, the device of
an optimizer) is not written: who reads the tree takes it from the object as the program made it. Other
values that cannot be written are refused, since they would be lost.

    None, bool, int, float, str    themselves
    list                           a list
    dict with text keys            an object
    other dict, Counter            {"$dict": [[key, value], …]}, {"$counter": …}
    tuple, bytes                   {"$tuple": […]}, {"$hex": "…"}
    tensor                         {"$tensor": "name of the part"}
    array of numpy                 {"$array": "name of the part", "dtype": "<f8", "shape": […]}
    set, frozenset                 {"$set": […]}, {"$frozenset": […]}
    callable, dtype, device        {"$own": "its type"}
"""
from __future__ import annotations

import collections
import math
import re
import sys
from typing import Any, Callable, Mapping

import torch

from antdt.torch._memory import DTYPES

Json = Any
_OF_THE_PROGRAM = (torch.dtype, torch.device)


def part_name(*words: Any) -> str:
    """The name of a part: words joined by "/", other characters than antdt.h allows escaped."""
    text = "/".join(str(word) for word in words)
    return re.sub(r"[^A-Za-z0-9._/-]", lambda c: "".join(f"-x{b:02x}" for b in c[0].encode()), text)


def _is_array(value: Any) -> bool:
    """Of numpy, which may not be there."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _encode_array(value: Any, name: str, keep: Callable[[str, torch.Tensor], str]) -> Json:
    copy = value.copy(order="C")
    try:
        tensor = torch.from_numpy(copy)
        kept = tensor.dtype in DTYPES
    except TypeError:  # as uint16, text
        kept = False
    if not kept:
        tensor = torch.frombuffer(bytearray(copy.tobytes() or b"\0"), dtype=torch.uint8)
    return {"$array": keep(name, tensor), "dtype": value.dtype.str, "shape": list(value.shape)}


def _decode_array(held: Any, tensor: torch.Tensor) -> Any:
    import numpy
    size = numpy.dtype(held["dtype"]).itemsize * math.prod(held["shape"])
    memory = bytearray(tensor.contiguous().numpy().tobytes()[:size])
    return numpy.frombuffer(memory, dtype=held["dtype"]).reshape(held["shape"])


def encode(value: Any, name: str, keep: Callable[[str, torch.Tensor], str]) -> Json:
    """`keep(name, tensor)` says under which name the tensor is kept. TypeError for a value that would be
    lost."""
    if isinstance(value, torch.Tensor):
        return {"$tensor": keep(name, value.detach())}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, bytes):
        return {"$hex": value.hex()}
    if isinstance(value, collections.Counter):
        return {"$counter": [[k, n] for k, n in value.items()]}
    if isinstance(value, Mapping):
        pairs = [(k, encode(v, part_name(name, k), keep)) for k, v in value.items()]
        if all(isinstance(k, str) and not k.startswith("$") for k, _ in pairs):
            return dict(pairs)
        if all(isinstance(k, (str, int, float, bool)) for k, _ in pairs):
            return {"$dict": [[k, v] for k, v in pairs]}
    if type(value) in (list, tuple):
        items = [encode(v, part_name(name, i), keep) for i, v in enumerate(value)]
        return items if isinstance(value, list) else {"$tuple": items}
    if isinstance(value, (set, frozenset)) and all(isinstance(v, (str, int, float)) for v in value):
        return {f"${type(value).__name__}": sorted(value, key=lambda v: (type(v).__name__, v))}
    if _is_array(value) and not value.dtype.hasobject and value.dtype.fields is None:
        return _encode_array(value, name, keep)
    if hasattr(value, "item") and getattr(value, "shape", None) == ():  # a number of numpy
        return encode(value.item(), name, keep)
    if callable(value) or isinstance(value, _OF_THE_PROGRAM):
        return {"$own": type(value).__qualname__}
    entry = name.split("/")[0]
    raise TypeError(f"job.state({entry}=…): {name} is a {type(value).__qualname__}, and would not be kept. Let "
                    f"its state_dict() give tensors, arrays of numbers, numbers, texts, lists, tuples and dicts")


def _of(own: Any, key: Any) -> Any:
    try:
        return own[key]
    except (KeyError, IndexError, TypeError):
        return None


def decode(tree: Json, tensor: Callable[[str], torch.Tensor], own: Any = None) -> Any:
    """The value; `own` is the one that the program made, from which comes what is not written."""
    if isinstance(tree, list):
        return [decode(v, tensor, _of(own, i)) for i, v in enumerate(tree)]
    if not isinstance(tree, dict):
        return tree
    for mark in ("$tensor", "$hex", "$counter", "$dict", "$tuple", "$array", "$set",
                 "$frozenset", "$own"):
        if mark not in tree:
            continue
        held = tree[mark]
        if mark == "$tensor":
            return tensor(held)
        if mark == "$hex":
            return bytes.fromhex(held)
        if mark == "$counter":
            return collections.Counter({k: n for k, n in held})
        if mark == "$dict":
            return {k: decode(v, tensor, _of(own, k)) for k, v in held}
        if mark == "$tuple":
            return tuple(decode(v, tensor, _of(own, i)) for i, v in enumerate(held))
        if mark == "$array":
            return _decode_array(tree, tensor(held))
        if mark in ("$set", "$frozenset"):
            return set(held) if mark == "$set" else frozenset(held)
        return own
    return {k: decode(v, tensor, _of(own, k)) for k, v in tree.items()}
