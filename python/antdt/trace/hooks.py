"""The hooks: PyTorch's functions with a measurement around them.

A step is from one step of the optimizer to the next; a rank's own time is what is left of it when the
time for data and the waiting in collectives is taken away. Collectives are those of torch.distributed,
and the reduction of DistributedDataParallel's gradients, which C++ does: what backward takes after its
last gradient is computed is waiting.
"""
import functools
import inspect
import sys
import time
import weakref

from ._tracer import TRACER

# Those in which all ranks of a group wait for one another.
_COLLECTIVES = (
    "all_reduce", "all_reduce_coalesced", "reduce", "broadcast", "all_gather",
    "all_gather_into_tensor", "_all_gather_base", "all_gather_coalesced", "gather", "scatter",
    "reduce_scatter", "reduce_scatter_tensor", "_reduce_scatter_base", "all_to_all",
    "all_to_all_single", "barrier", "monitored_barrier", "all_gather_object", "gather_object",
    "broadcast_object_list", "scatter_object_list", "_broadcast_coalesced")
# Whose tensor has the same size on all ranks, so that it tells one call from another.
_SIZED = {"all_reduce", "reduce", "broadcast", "all_gather_into_tensor", "reduce_scatter_tensor"}
_PAIRS = ("send", "recv", "batch_isend_irecv")
_NAMES = {"_broadcast_coalesced": "broadcast of buffers"}

# A Work -> its call, while the script has it and its wait is still to come: an id would be used again.
_works = weakref.WeakKeyDictionary()
_dtypes = {}  # torch.float32 -> "float32"


def _size(args, kwargs):
    tensor = args[0] if args else kwargs.get("tensor")
    try:
        dtype = tensor.dtype
        name = _dtypes.get(dtype)
        if name is None:
            name = _dtypes[dtype] = str(dtype).replace("torch.", "")
        return f" {name}[{tensor.numel()}]"
    except AttributeError:
        return ""


# ------------------------------------------------------------------------------ collectives

class _Groups:
    """Process groups by name: "" is all ranks, others are their ranks."""

    def __init__(self, c10d):
        self._c10d = c10d
        self._names = weakref.WeakKeyDictionary()  # a group that is gone is no other one's name

    def name_of(self, group):
        """None: this rank is not in it."""
        c10d = self._c10d
        member = c10d.GroupMember
        if group is None or group is member.WORLD:
            return ""
        if group is member.NON_GROUP_MEMBER or isinstance(group, int):
            return None
        name = self._names.get(group)
        if name is None:
            name = self._names[group] = ",".join(map(str, sorted(self._ranks(group))))
        return name

    def _ranks(self, group):
        c10d = self._c10d
        if group is c10d._get_default_group():
            return ()
        ranks = getattr(c10d, "get_process_group_ranks", None)
        return ranks(group) if ranks is not None else list(c10d._pg_group_ranks[group])

    def forget(self):
        self._names.clear()


def _position_of_group(function, name):
    """Where `group` is among the positional arguments; None: nowhere."""
    if name == "_broadcast_coalesced":
        return 0
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return None
    return names.index("group") if "group" in names else None


def _wrap_collective(function, name, groups):
    position = _position_of_group(function, name)
    sized = name in _SIZED
    shown = _NAMES.get(name, name)

    @functools.wraps(function)
    def collective(*args, **kwargs):
        if not TRACER.measures():
            return function(*args, **kwargs)
        try:
            group = kwargs.get("group")
            if group is None and position is not None and position < len(args):
                group = args[position]
            label = groups.name_of(group)
            if label is None:
                return function(*args, **kwargs)
            title = shown + _size(args, kwargs) if sized else shown
            call = TRACER.enter(title, label, sys._getframe(1))
        except Exception as error:
            TRACER.give_up(error)
            return function(*args, **kwargs)
        try:
            result = function(*args, **kwargs)
        except BaseException:
            TRACER.failed = True
            TRACER.leave()
            raise
        TRACER.failed = False
        TRACER.leave()
        if result is not None and hasattr(result, "wait"):
            try:
                _works[result] = call
            except TypeError:
                pass  # a Work of the script's own: its wait has no number
        return result

    collective.__antdt__ = True
    return collective


def _wrap_pair(function, name):
    """One rank waits for one other: waiting, but no collective with a number."""

    @functools.wraps(function)
    def pair(*args, **kwargs):
        if not TRACER.measures():
            return function(*args, **kwargs)
        TRACER.wait_for(None)
        try:
            return function(*args, **kwargs)
        finally:
            TRACER.leave()

    pair.__antdt__ = True
    return pair


def _wrap_wait(work):
    original = work.wait

    @functools.wraps(original)
    def wait(self, *args, **kwargs):
        if not TRACER.measures():
            return original(self, *args, **kwargs)
        try:
            call = _works.pop(self, None)
        except TypeError:
            call = None
        TRACER.wait_for(call)
        try:
            result = original(self, *args, **kwargs)
        except BaseException:
            TRACER.failed = True
            TRACER.leave()
            raise
        TRACER.leave()
        return result

    work.wait = wait


def _wrap_init(module, groups):
    original = module.init_process_group

    @functools.wraps(original)
    def init_process_group(*args, **kwargs):
        result = original(*args, **kwargs)
        try:
            import torch
            groups.forget()
            TRACER.start(module.get_rank(), module.get_world_size(), torch.__version__)
        except Exception as error:
            print(f"antdt: this script is not measured: {error}", file=sys.stderr)
        return result

    module.init_process_group = init_process_group


def patch_collectives(module):
    """torch.distributed.distributed_c10d, before torch.distributed takes its names over."""
    if not hasattr(module, "init_process_group"):
        return
    groups = _Groups(module)
    for name in _COLLECTIVES:
        function = getattr(module, name, None)
        if callable(function) and not hasattr(function, "__antdt__"):
            setattr(module, name, _wrap_collective(function, name, groups))
    for name in _PAIRS:
        function = getattr(module, name, None)
        if callable(function):
            setattr(module, name, _wrap_pair(function, name))
    work = getattr(module, "Work", None)
    if work is None:
        import torch._C._distributed_c10d as native
        work = getattr(native, "Work", None)
    if work is not None:
        _wrap_wait(work)
    _wrap_init(module, groups)
    # Of C++: DDP takes it from torch.distributed when it is called.
    package = sys.modules.get("torch.distributed")
    native = getattr(package, "_broadcast_coalesced", None)
    if native is not None and not hasattr(native, "__antdt__"):
        package._broadcast_coalesced = _wrap_collective(native, "_broadcast_coalesced", groups)


# --------------------------------------------------------------------------------- gradients

class _Backward:
    """The backward of this moment, if it ends with the reduction of DDP's gradients.

    DDP waits for the reduction in a callback of autograd, which it queues when the last of its gradients is there.
    Ours is queued earlier, before any gradient of DDP's is accumulated, and therefore runs first: when all
    gradients are computed. From then on backward waits.
    """

    def __init__(self):
        self.entered = False
        self.within = 0      # backwards that this one runs, as checkpoints of activations do
        self._frame = None   # of the script; None: there is none, or the callback is queued
        self._of = None

    def begins(self, frame):
        self._frame, self._of, self.entered = frame, frame, False

    def queue(self, *_):
        """Before a gradient is accumulated."""
        if self._frame is None or self.within > 0:  # a callback belongs to the innermost backward
            return
        self._frame = None
        sys.modules["torch.autograd"].Variable._execution_engine.queue_callback(self._computed)

    def _computed(self):
        if self._of is not None:
            self.entered = True
            TRACER.enter("DDP backward", "", self._of)

    def ends(self):
        """Whether it was queued."""
        queued = self._frame is None
        self._frame = self._of = None
        if self.entered:
            TRACER.leave()
        return queued


_backward = _Backward()


def patch_autograd(module):
    """torch.autograd: backward ends with the reduction, which begins when all gradients are there."""
    original = module.backward
    by_root = False  # the parameters that are watched got no gradient: the loss is watched, which costs more

    @functools.wraps(original)
    def backward(tensors, *args, **kwargs):
        nonlocal by_root
        if not (TRACER.ddp_forward and TRACER.measures()):
            _backward.within += 1
            try:
                return original(tensors, *args, **kwargs)
            finally:
                _backward.within -= 1
        TRACER.ddp_forward = False
        _backward.begins(sys._getframe(1))
        handle = None
        if by_root:
            try:
                root = tensors if hasattr(tensors, "register_hook") else tensors[0]
                handle = root.register_hook(_backward.queue)
            except Exception:
                pass  # nothing is known of this one: it counts as computing
        try:
            result = original(tensors, *args, **kwargs)
        except BaseException:
            TRACER.failed = TRACER.failed or _backward.entered
            raise
        finally:
            by_root = not _backward.ends() or by_root
            if handle is not None:
                handle.remove()
        return result

    module.backward = backward


def _watch_gradients(ddp):
    """Of one parameter, which is enough if it gets a gradient: the last, as that comes first."""
    parameters = [p for p in ddp.module.parameters() if p.requires_grad]
    node = parameters[-1].expand_as(parameters[-1]).grad_fn.next_functions[0][0]
    node.register_prehook(_backward.queue)


def patch_ddp(module):
    """torch.nn.parallel.distributed: which backward reduces."""
    ddp = module.DistributedDataParallel
    original_init, original = ddp.__init__, ddp.forward

    @functools.wraps(original_init)
    def init(self, *args, **kwargs):
        original_init(self, *args, **kwargs)
        if TRACER.on:
            try:
                _watch_gradients(self)
            except Exception:
                pass  # the loss will be watched

    @functools.wraps(original)
    def forward(self, *args, **kwargs):
        result = original(self, *args, **kwargs)
        if TRACER.on and module.torch.is_grad_enabled():
            TRACER.ddp_forward = bool(getattr(self, "require_backward_grad_sync", False))
        return result

    ddp.__init__ = init
    ddp.forward = forward
    package = sys.modules.get("torch.distributed")
    native = getattr(package, "_broadcast_coalesced", None)
    if native is not None and not hasattr(native, "__antdt__"):
        groups = _Groups(sys.modules["torch.distributed.distributed_c10d"])
        package._broadcast_coalesced = _wrap_collective(native, "_broadcast_coalesced", groups)


# ---------------------------------------------------------------------------- steps and data

def _wrap_step(cls):
    original = cls.step
    if hasattr(original, "__antdt__"):
        return

    @functools.wraps(original)
    def step(self, *args, **kwargs):
        result = original(self, *args, **kwargs)
        if TRACER.measures():
            try:
                TRACER.stepped(self)
            except Exception as error:
                TRACER.give_up(error)
        return result

    step.__antdt__ = True
    cls.step = step


def patch_optimizer(module):
    """torch.optim.optimizer: each class's step, when its first optimizer is made."""
    base = module.Optimizer
    original = base.__init__

    @functools.wraps(original)
    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        try:
            _wrap_step(type(self))
        except Exception as error:
            print(f"antdt: steps of {type(self).__name__} are not measured: {error}",
                  file=sys.stderr)

    base.__init__ = init


def _samples_in(batch, depth=3):
    """The first tensor's first dimension; None if there is no tensor."""
    if isinstance(batch, (list, tuple)):
        values = batch
    else:
        shape = getattr(batch, "shape", None)
        if shape is not None:
            return int(shape[0]) if len(shape) > 0 else None
        if not hasattr(batch, "values"):
            return None
        values = batch.values()
    if depth == 0:
        return None
    for value in values:
        found = _samples_in(value, depth - 1)
        if found is not None:
            return found
    return None


def patch_dataloader(module):
    """torch.utils.data.dataloader: what the next batch takes, and how large it is."""
    base = module._BaseDataLoaderIter
    original = base.__next__

    @functools.wraps(original)
    def following(self):
        if not TRACER.measures():
            return original(self)
        began = time.perf_counter()
        batch = original(self)
        try:
            # Without gradients it is an evaluation, whose samples are not trained on.
            trains = module.torch.is_grad_enabled()
            TRACER.fetched(time.perf_counter() - began, _samples_in(batch) if trains else None)
        except Exception as error:
            TRACER.give_up(error)
        return batch

    base.__next__ = following
