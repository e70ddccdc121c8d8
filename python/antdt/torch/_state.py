"""The training state: everything that job.state() was given, as parts of libantdt.

Each tensor is a part of its own, in place where it can be: what is healed or read from a checkpoint
is then written right into the model. The other values (counters, learning rates) are JSON in one
part of fixed size, `python.json`, brought up to date when the library asks for the state.

An optimizer makes its state in its first step. All members have to register the same parts from the
beginning, so `_Optimizer` takes a step with zero gradients, notes which tensors that made, and undoes
it: with some parameters at a time, because a device may have no room for a second state of them all. A step()
that fails without the gradients of all parameters gets them all at once.
Until the first real step those parts are zeros in the processor's memory, and python.json says that there
is no state yet.
Parameters that are frozen then have no parts, unless they were frozen after job.state() was called: to
keep the state of all of a frozen model would double what is sent and written.
"""
from __future__ import annotations

import contextlib
import ctypes
import json
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Set, Tuple

import torch

from antdt import _abi
from antdt.torch._memory import Form, PartMemory
from antdt.torch._trained import Trained
from antdt.torch._tree import Json, decode, encode, part_name

if TYPE_CHECKING:
    from antdt._member import Member

JSON_PART = "python.json"
_LEAST_JSON = 16 << 10
_PROBED_BYTES = 64 << 20  # of parameters with which an optimizer takes a step at a time


class _Entry:
    """One thing with a state_dict. `parts` are its tensors by name, the same ones for good."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.parts: Dict[str, PartMemory] = {}

    def tree(self) -> Json:
        """The state_dict as JSON; the parts follow its tensors."""
        raise NotImplementedError

    def take(self, tree: Json) -> None:
        """The parts and `tree` were replaced: the object becomes what they say."""
        raise NotImplementedError

    def _tensor(self, name: str) -> torch.Tensor:
        return self.parts[name].placed()


class _Module(_Entry):
    """Parameters and buffers, in place."""

    def __init__(self, name: str, module: torch.nn.Module) -> None:
        super().__init__(name)
        self.module = module
        self._names: Dict[Tuple[int, torch.Size, torch.dtype], str] = {}  # tied weights are one part
        self._begun = False
        self.tree()
        self._begun = True

    def tree(self) -> Json:
        self._names.clear()
        return encode(self.module.state_dict(), self.name, self._keep)

    def _keep(self, name: str, tensor: torch.Tensor) -> str:
        key = (tensor.data_ptr(), tensor.shape, tensor.dtype)
        if tensor.numel() > 0:
            name = self._names.setdefault(key, name)
        if name in self.parts:
            self.parts[name].follow(tensor)
        elif self._begun:
            raise TypeError(f"{name} was not in the module's state when the job began: make all "
                            f"parameters and buffers before the first epoch")
        else:
            self.parts[name] = PartMemory(name, tensor)
        return name

    def take(self, tree: Json) -> None:
        if "_extra_state" in json.dumps(tree):
            self.module.load_state_dict(decode(tree, self._tensor, self.module.state_dict()))


def _in_bounds(parameters: List[torch.Tensor]) -> Iterator[List[torch.Tensor]]:
    """All of them, some at a time: of _PROBED_BYTES at most, or one that is larger."""
    some: List[torch.Tensor] = []
    size = 0
    for p in parameters:
        own = p.numel() * p.element_size()
        if some and size + own > _PROBED_BYTES:
            yield some
            some, size = [], 0
        some.append(p)
        size += own
    yield some


class _Optimizer(_Entry):
    """An optimizer's state by the parameter's number, and its groups' options."""

    def __init__(self, name: str, optimizer: torch.optim.Optimizer, trained: Set[int]) -> None:
        """trained  ids of parameters that are trained at times, though they may be frozen now"""
        super().__init__(name)
        self.optimizer = optimizer
        self._frozen = {id(p) for p in self._parameters()  # what is kept of these is not known
                        if not p.requires_grad and id(p) not in trained and not optimizer.state.get(p)}
        for number, forms in enumerate(self._probe()):
            for key, form in forms.items():
                part = part_name(name, "state", number, key)
                self.parts[part] = PartMemory.to_come(part, form)
        for number, group in enumerate(optimizer.param_groups):
            for key, value in group.items():
                if isinstance(value, torch.Tensor):
                    part = part_name(name, "param_groups", number, key)
                    self.parts[part] = PartMemory(part, value.detach())

    def _parameters(self) -> List[torch.Tensor]:
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def _forms(self, parameter: torch.Tensor) -> Dict[str, Form]:
        """Of the tensors that the optimizer keeps for it."""
        values = self.optimizer.state.get(parameter, {})
        return {k: Form.of(v) for k, v in values.items() if isinstance(v, torch.Tensor)}

    def _probe(self) -> List[Dict[str, Form]]:
        """The state that a first step creates for each parameter; the step is undone."""
        optimizer, parameters = self.optimizer, self._parameters()
        if any(optimizer.state.get(p) for p in parameters):  # it has taken steps already
            return [self._forms(p) for p in parameters]
        gradients = [p.grad for p in parameters]
        try:
            for p in parameters:
                p.grad = None
            forms = self._tried([p for p in parameters if id(p) not in self._frozen])
        finally:
            for p, gradient in zip(parameters, gradients):
                p.grad = gradient
        return [forms.get(id(p), {}) for p in parameters]

    def _tried(self, trained: List[torch.Tensor]) -> Dict[int, Dict[str, Form]]:
        """What trial steps make for these, by the parameter's id."""
        parts, in_parts = list(_in_bounds(trained)), ""
        if len(parts) > 1:
            try:
                return self._made_in(parts)
            except Exception as error:  # perhaps its step() reads the gradients of all parameters
                in_parts = f"of some of the {len(trained)} parameters: {type(error).__name__}: {error}; of all: "
        try:
            return self._made_in([trained])
        except Exception as error:
            raise TypeError(
                f"job.state({self.name}=…): {type(self.optimizer).__name__} cannot take a step by itself, with "
                f"gradients that are zero ({in_parts}{type(error).__name__}: {error}), so its state cannot be "
                f"known beforehand. Use an optimizer whose step() needs no closure and takes dense gradients"
            ) from error

    def _made_in(self, parts: List[List[torch.Tensor]]) -> Dict[int, Dict[str, Form]]:
        """What steps with the gradients of one part at a time make."""
        forms: Dict[int, Dict[str, Form]] = {}
        for some in parts:
            with self._trial_step(some):
                forms.update((id(p), self._forms(p)) for p in some)
        return forms

    @contextlib.contextmanager
    def _trial_step(self, some: List[torch.Tensor]) -> Iterator[None]:
        """With the state that a step with zero gradients of these makes; it is undone behind that."""
        optimizer = self.optimizer
        others, options = dict(optimizer.state), [dict(group) for group in optimizer.param_groups]
        # Parameters, options that are tensors, and the counters that some optimizers have beside both.
        changed = [(p, p.detach().clone()) for p in some]
        changed += [(v, v.detach().clone()) for o in options for v in o.values() if isinstance(v, torch.Tensor)]
        numbers = {k: v for k, v in vars(optimizer).items() if isinstance(v, (int, float))}
        try:
            for p in some:
                p.grad = torch.zeros_like(p)
            # Not optimizer.step, which a schedule may have replaced in order to count.
            type(optimizer).step(optimizer)
            yield
        finally:
            with torch.no_grad():
                for tensor, value in changed:
                    tensor.copy_(value)
            for p in some:
                p.grad = None
            optimizer.state.clear()
            optimizer.state.update(others)
            vars(optimizer).update(numbers)
            for group, kept in zip(optimizer.param_groups, options):
                group.update(kept)

    def check_kept(self, name: str, parameter: torch.nn.Parameter) -> None:
        """RuntimeError if the optimizer keeps something of parameters, and this one was frozen."""
        if id(parameter) in self._frozen and any("/state/" in name for name in self.parts):
            raise RuntimeError(
                f"{name} was frozen when job.state was called and is trained now, and the state that "
                f"{type(self.optimizer).__name__} makes for it has no place in the job's: call "
                f"job.state({self.name}=…) before you freeze what is trained later")

    def _keep(self, name: str, tensor: torch.Tensor) -> str:
        if name not in self.parts:
            raise TypeError(f"the optimizer made {name} later than in its first step: such a state "
                            f"cannot be kept alike on all members. If it is of a parameter that was frozen "
                            f"when job.state was called, call job.state before you freeze")
        self.parts[name].follow(tensor)
        return name

    def tree(self) -> Json:
        state, groups = {}, []
        for number, p in enumerate(self._parameters()):
            if p in self.optimizer.state:
                name = part_name(self.name, "state", number)
                state[number] = encode(dict(self.optimizer.state[p]), name, self._keep)
        first = 0
        for number, group in enumerate(self.optimizer.param_groups):
            options = {k: v for k, v in group.items() if k != "params"}
            options = encode(options, part_name(self.name, "param_groups", number), self._keep)
            numbers = list(range(first, first + len(group["params"])))
            groups.append(dict(options, params=numbers))
            first += len(numbers)
        return {"state": {"$dict": [[n, s] for n, s in state.items()]}, "param_groups": groups}

    def take(self, tree: Json) -> None:
        state = dict(tree["state"]["$dict"])
        for number, p in enumerate(self._parameters()):
            if number in state:
                self.optimizer.state[p] = decode(state[number], self._tensor,
                                                 self.optimizer.state.get(p))
            else:
                self.optimizer.state.pop(p, None)
        for group, options in zip(self.optimizer.param_groups, tree["param_groups"]):
            found = decode(options, self._tensor, group)
            group.update({k: v for k, v in found.items() if k != "params"})


class _Other(_Entry):
    """Anything else with state_dict and load_state_dict; its tensors are copied."""

    def __init__(self, name: str, thing: Any) -> None:
        super().__init__(name)
        self.thing = thing
        self._begun = False
        self.tree()
        self._begun = True

    def tree(self) -> Json:
        return encode(self.thing.state_dict(), self.name, self._keep)

    def _keep(self, name: str, tensor: torch.Tensor) -> str:
        if name not in self.parts:
            if self._begun:
                raise TypeError(f"{name} was not in its state_dict when the job began")
            self.parts[name] = PartMemory(name, torch.empty(tensor.shape, dtype=tensor.dtype))
        self.parts[name].follow(tensor.to("cpu").clone(memory_format=torch.contiguous_format))
        return name

    def take(self, tree: Json) -> None:
        own = self.thing.state_dict()
        self.thing.load_state_dict(decode(tree, lambda name: self._tensor(name).clone(), own))


class _Generator:
    """A torch.Generator in the shape of the others."""

    def __init__(self, generator: torch.Generator) -> None:
        self.generator = generator

    def state_dict(self) -> Dict[str, Any]:
        return {"state": self.generator.get_state()}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self.generator.set_state(state["state"])


def _entry(name: str, thing: Any, trained: Set[int]) -> _Entry:
    if isinstance(thing, torch.nn.Module):
        return _Module(name, thing)
    if isinstance(thing, torch.optim.Optimizer):
        return _Optimizer(name, thing, trained)
    if isinstance(thing, torch.Generator):
        return _Other(name, _Generator(thing))
    if hasattr(thing, "state_dict") and hasattr(thing, "load_state_dict"):
        return _Other(name, thing)
    raise TypeError(f"job.state({name}=…): {type(thing).__name__} has no state_dict() and "
                    f"load_state_dict()")


def _listed(names: List[str]) -> str:
    return ", ".join(names) or "nothing"


class State:
    """All that job.state() was given, in that order."""

    def __init__(self) -> None:
        self._given: Dict[str, Any] = {}
        self._trained: Set[int] = set()  # ids of parameters that were when they were given
        self._of_modules: List[Trained] = []
        self._entries: List[_Entry] = []
        self._json: Optional["ctypes.Array[ctypes.c_char]"] = None

    def add(self, things: Dict[str, Any]) -> None:
        for name, thing in things.items():
            if name in self._given:
                raise ValueError(f"job.state({name}=…): there is a {name} already")
            self._given[name] = thing
            for group in thing.param_groups if isinstance(thing, torch.optim.Optimizer) else ():
                self._trained.update(id(p) for p in group["params"] if p.requires_grad)

    def follow(self, trained: Trained) -> None:
        """Which parameters are trained is a part of the state, too."""
        self._of_modules.append(trained)

    def check_kept(self, name: str, parameter: torch.nn.Parameter) -> None:
        """RuntimeError if the parameter is trained and an optimizer's state of it would not be kept."""
        for entry in self._entries:
            if isinstance(entry, _Optimizer):
                entry.check_kept(name, parameter)

    def modules(self) -> Iterator[torch.nn.Module]:
        return (v for v in self._given.values() if isinstance(v, torch.nn.Module))

    def holds(self, thing: Any) -> bool:
        return any(thing is v for v in self._given.values())

    def optimizers(self) -> Iterator[Tuple[str, torch.optim.Optimizer]]:
        return ((n, v) for n, v in self._given.items() if isinstance(v, torch.optim.Optimizer))

    def _parts(self) -> Iterator[PartMemory]:
        return (part for entry in self._entries for part in entry.parts.values())

    def begin(self, member: "Member") -> None:
        """Registers everything."""
        self._entries = [_entry(name, thing, self._trained) for name, thing in self._given.items()]
        text = self.text(0)
        # With the names that an optimizer adds in its first step, and room for values to change.
        longest = 4 * (len(text) + sum(64 + len(part.name) for part in self._parts()))
        size = _LEAST_JSON
        while size < longest:
            size *= 2
        self._json = ctypes.create_string_buffer(size)
        self._put(text)
        member.register(JSON_PART, _abi.BYTES, ctypes.addressof(self._json), size, (size,))
        for part in self._parts():
            part.register(member)

    def text(self, epochs: Optional[int]) -> bytes:
        """What is no tensor, as it is now; `epochs` bodies of the loop over epochs went into it, None: as
        many as nobody knows."""
        known = {} if epochs is None else {"epochs": epochs}
        tree = {entry.name: entry.tree() for entry in self._entries}
        for trained in self._of_modules:
            trained.look()
        frozen = [trained.frozen() for trained in self._of_modules]
        return json.dumps({"schema": 1, **known, "frozen": frozen, "state": tree},
                          separators=(",", ":")).encode()

    def _put(self, text: bytes) -> None:
        assert self._json is not None
        size = len(self._json)
        if len(text) > size:
            raise ValueError(
                f"the part of the state that is no tensors has grown to {len(text)} bytes of JSON, "
                f"and had room for {size} since the job began: keep histories and logs out of what "
                f"job.state() is given")
        self._json.raw = text.ljust(size)

    def bring_up_to_date(self, member: "Member", text: Optional[bytes] = None) -> None:
        """The registered parts become what the objects are now; what is no tensor, what `text` says if
        it is given."""
        self._put(self.text(None) if text is None else text)
        for part in self._parts():
            part.register(member)
            part.write_out()

    def replaced(self) -> Optional[int]:
        """The objects become what the registered parts are now. The number of epochs whose bodies are
        in that; None: it was written by an earlier release."""
        assert self._json is not None
        for part in self._parts():
            part.read_in()
        return self.take(self._json.raw)

    def take(self, text: bytes) -> Optional[int]:
        """What is no tensor becomes what `text` says; the same number."""
        said = json.loads(text)
        here, there = [entry.name for entry in self._entries], list(said["state"])
        if set(here) != set(there):
            raise RuntimeError(
                f"job.state was given {_listed(here)} here, and {_listed(there)} where the state comes from, "
                f"which is another member or a checkpoint: all members and all runs give the same")
        for entry in self._entries:
            entry.take(said["state"][entry.name])
        for trained, names in zip(self._of_modules, said.get("frozen", [])):
            trained.freeze(names)
        return said.get("epochs")
