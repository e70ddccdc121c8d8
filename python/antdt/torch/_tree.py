"""A state_dict as JSON and tensors. JSON holds the structure and the plain values; a tensor is named
where it stands. What is neither (a function that a schedule keeps, say) is not written: who reads
the tree takes it from the object as the program made it.

    None, bool, int, float, str    themselves
    list                           a list
    dict with text keys            an object
    other dict, Counter            {"$dict": [[key, value], …]}, {"$counter": …}
    tuple, bytes                   {"$tuple": […]}, {"$hex": "…"}
    tensor                         {"$tensor": "name of the part"}
    anything else                  {"$own": "its type"}
"""
from __future__ import annotations

import collections
import re
from typing import Any, Callable, Mapping

import torch

Json = Any


def part_name(*words: Any) -> str:
    """The name of a part: words joined by "/", other characters than antdt.h allows escaped."""
    text = "/".join(str(word) for word in words)
    return re.sub(r"[^A-Za-z0-9._/-]", lambda c: "".join(f"-x{b:02x}" for b in c[0].encode()), text)


def encode(value: Any, name: str, keep: Callable[[str, torch.Tensor], str]) -> Json:
    """`keep(name, tensor)` says under which name the tensor is kept."""
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
    if hasattr(value, "item") and getattr(value, "shape", None) == ():  # a number of numpy
        return encode(value.item(), name, keep)
    return {"$own": type(value).__qualname__}


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
    for mark in ("$tensor", "$hex", "$counter", "$dict", "$tuple", "$own"):
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
        return own
    return {k: decode(v, tensor, _of(own, k)) for k, v in tree.items()}
