"""A PyTorch program as a member of a job: its orders become loops.

`epochs`, `steps` and `evaluate` are generators and calls that take orders from libantdt until there is
one that is not theirs. What needs no program (the state is wanted or was replaced, a step is void, a
phase ended) is answered in `_peek`. The handle is opened by the first of them, when job.state() has
been told everything.
"""
from __future__ import annotations

import atexit
import os
import sys
import time
import traceback
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import torch

from antdt import _abi
from antdt._abi import Error
from antdt._member import Evaluation, Member, Options, Order
from antdt.torch._batch import MicroBatch
from antdt.torch._bodies import Bodies
from antdt.torch._checks import Checks
from antdt.torch._evaluation import Metric, evaluate_alone
from antdt.torch._loader import Loader
from antdt.torch._metrics import Evaluated, Sums
from antdt.torch._modules import Modules
from antdt.torch._state import State
from antdt.torch._step import Step

_LONGEST_REPORT = 2000  # characters of an exception that the job records
_LONGEST_FAREWELL = 5.0  # seconds until the job has heard of it


@dataclass(frozen=True)
class Regroup:
    """Given to job.on("regroup", fn): the members of the job from now on."""

    generation: int
    rank: int
    size: int
    step: int


class Job:
    """Made by init(). One thread uses it, the one that trains."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.in_job = "ANTDT_SOCKET" in os.environ
        self._handle: Optional[Member] = None
        self._begun = False  # the handle has been told of the state
        self._state = State()
        self._modules = Modules(self._state)
        self._loaders: Dict[bool, Loader] = {}  # the newest to train on, and (True) to evaluate on
        self._callbacks: Dict[str, List[Callable[[Regroup], None]]] = {"regroup": []}
        self._order = Order(0)  # the last one: where the job stands
        self._regrouped = 0     # the generation that callbacks have heard of
        self._applied = False   # the order to apply is in hand, and done but for its answer
        self._complete = False  # the last phase that ended was complete
        self._epochs_trained = 0
        self._bodies = Bodies(self._state)
        self._sizes: Tuple[int, ...] = ()  # of micro-batches, rising
        self._adjust: Optional[str] = None
        self._left: Optional[int] = None
        self._last_evaluation: Optional[Evaluation] = None  # as it was known when this member left
        self._broken: Optional[BaseException] = None  # what ends the program
        self._checked: set = set()
        self._checks = Checks()
        self._ended = False  # the program has ended the training
        self._watch_the_end()

    # ------------------------------------------------------------------- what is trained

    def ddp(self, module: torch.nn.Module, *, bucket_mb: float = 25.0, overlap: bool = True,
            buffers: bool = True) -> torch.nn.Module:
        """The module's gradients are summed over all members. Returns the module itself.

        bucket_mb  gradients are summed in pieces of so many megabytes
        overlap    while the last backward of a step goes on; False: after it
        buffers    the running statistics of BatchNorm and other buffers are averaged over the
                   members in each step; False: no forward changes any of them
        """
        if self._begun:
            raise RuntimeError("job.ddp comes before the first epoch")
        self._modules.add(module, int(bucket_mb * (1 << 20)), overlap, buffers)
        return module

    def state(self, **things: Any) -> None:
        """What has to be alike on all members, and is in a checkpoint: modules, optimizers, schedules,
        a GradScaler, generators that go on alike, anything with state_dict and load_state_dict."""
        if self._begun:
            raise RuntimeError("job.state comes before the first epoch")
        self._state.add(things)

    def on(self, event: str, call: Callable[[Regroup], None]) -> None:
        """`call` hears of an event: "regroup", the members of the job have changed."""
        if event not in self._callbacks:
            raise ValueError(f'job.on("{event}", …): there is "regroup"')
        self._callbacks[event].append(call)

    def declare(self, *, adjust: Optional[str] = None, sizes: Sequence[int] = ()) -> None:
        """What this program can do; before the first epoch.

        adjust  what the job may change of a member's part, as [batch] adjust in job.toml says it; a job
                that says otherwise is refused
        sizes   the sizes of micro-batches that are compiled, or fit. A part is computed in micro-batches
                of the greatest at most, each padded to the next size by repeating its last record:
                mb.mask is 0 there
        """
        self._sizes = tuple(sorted(set(sizes)))
        if self._sizes and self._sizes[0] < 1:
            raise ValueError(f"job.declare(sizes={list(sizes)}): a micro-batch has 1 record or more")
        self._adjust = adjust

    # ------------------------------------------------------------------- where it stands

    @property
    def rank(self) -> int:
        """This member's, from 0; it changes with the membership. In a job it is known from the first
        epoch on."""
        self._check_known("rank")
        return self._order.rank

    @property
    def size(self) -> int:
        """How many members there are, as far as `rank` is known."""
        self._check_known("size")
        return max(1, self._order.size)

    def _check_known(self, name: str) -> None:
        if self.in_job and self._order.kind == 0:
            raise RuntimeError(
                f"job.{name} is known from the first epoch on, when this worker is a member of the job, and "
                f"changes with the membership (job.on). Before, job.worker names it: {self.worker}")

    @property
    def step(self) -> int:
        """Steps that are in the state."""
        return self._order.step + (1 if self._applied else 0)

    @property
    def epoch(self) -> int:
        return self._order.epoch

    @property
    def worker(self) -> str:
        """Its name for the whole job, as "w0"."""
        return os.environ.get("ANTDT_WORKER_ID", "w0")

    @property
    def run_dir(self) -> str:
        """The directory for files of the run; "" outside a job."""
        return self._connect(0).run_dir if self.in_job else ""

    @property
    def config(self) -> Dict[str, Any]:
        """job.toml with all defaults; {} outside a job."""
        return self._connect(0).config if self.in_job else {}

    # ------------------------------------------------------------------- loops

    def epochs(self) -> Iterator[int]:
        """The epochs that are left, from 0. When they are through the job is done. Where this member
        is to leave a job that goes on, the program exits."""
        if not self.in_job:
            for epoch in range(self._options.epochs):
                yield epoch
                if self._left is not None or self._ended:
                    break
                if self._epochs_trained <= epoch:
                    raise RuntimeError("an epoch ended before its steps did: go through "
                                       "job.steps(loader) to its end")
            self._peek()
            return
        self._open(0)
        while True:
            order = self._peek()
            if order is None:
                return
            if order.kind != _abi.PHASE_BEGIN:
                raise RuntimeError("a new epoch was asked for within the steps of one: go through "
                                   "job.steps(loader) to its end")
            body = self._bodies.begin(order.epoch)
            yield body
            self._bodies.end()
            if body == order.epoch and self._handle is not None and self._handle.in_hand is order:
                what = ("evaluates after each epoch: call job.evaluate(loader, metric)"
                        if order.evaluation else "trains: call job.steps(loader)")
                raise RuntimeError(f"the body of the loop over job.epochs() passed over a phase; "
                                   f"this job {what}")

    def steps(self, loader: Loader) -> Iterator[Step]:
        """The steps of an epoch in which this member takes part."""
        self._check_loader(loader, "steps")
        self._open(len(loader))
        phase = None
        while True:
            order = self._peek()
            if order is None or (phase is not None and order.phase != phase) or order.evaluation:
                return
            if self.in_job and not self._bodies.are_of(order.epoch):
                return
            if phase is None:
                self._check(self._checks.length, loader, "records")
                self._check(self._checks.declared, self._adjust)
            if order.kind == _abi.PHASE_BEGIN:
                self._begin_phase(order, loader)
            elif phase is None:
                self._begin_loader(order, loader)
            phase = order.phase
            if order.kind == _abi.PHASE_BEGIN:
                continue
            step = Step(self, loader)
            yield step
            if not step.finished and self._left is None:
                raise RuntimeError("a step was left without step.apply(optimizer)")

    def evaluate(self, loader: Loader, metric: Metric) -> Optional[Evaluated]:
        """Evaluates the model where the job does, after an epoch; what all members found together. None
        where the job does not evaluate now, or goes back to a checkpoint before it has. Outside a job
        all of the loader's records are evaluated.

        metric  returns Sums of a micro-batch; gradients are off
        """
        self._check_loader(loader, "evaluate")
        order = self._peek()
        self._checks.say_if_never_evaluated(self.config, self._order.rank)
        here = order is not None and (not self.in_job or self._bodies.are_of(order.epoch))
        if order is None or not here or order.kind != _abi.PHASE_BEGIN or not order.evaluation:
            return None if self.in_job else evaluate_alone(loader, metric,
                                                              self._options.micro_batch or 32)
        self._check(self._checks.length, loader, "eval_records")
        epoch, phase = order.epoch, order.phase
        while order is not None and order.phase == phase:
            if order.kind == _abi.PHASE_BEGIN:
                self._begin_phase(order, loader)
            else:
                self._evaluate_one(order, loader, metric)
            order = self._peek()
        found = self._last_evaluation if self._left is not None else self._member.evaluated()
        if found is None or found.epoch != epoch:
            return None
        return Evaluated(found.records, found.log_loss, found.accuracy, found.auc, found.named)

    def end_training(self, reason: str) -> None:
        """The training ends for all members with the steps that are in the model; a call by one
        member is enough. It follows step.apply and all that belongs to the step, as a schedule's, or the
        steps of an epoch. The epoch is evaluated if the job evaluates and something of it was trained;
        then the loops end as after the last epoch, and the job is done. What is left of the epoch counts
        as skipped, for this reason."""
        if not isinstance(reason, str) or not reason:
            raise TypeError(f"job.end_training({reason!r}): give the reason, a text that is not empty")
        if self._left is not None:
            return
        if self._order.kind == 0 or self._handle is None:
            raise RuntimeError("job.end_training comes after the first epoch has begun")
        busy = (_abi.COMPUTE, _abi.REDUCE, _abi.EVALUATE)
        in_hand = self._handle.in_hand
        if in_hand is None or in_hand.kind not in busy:
            self._ended = True
            self._handle.end_training(reason)
            in_hand = self._peek()
        if in_hand is not None and in_hand.kind in busy:
            raise self._failing(RuntimeError(
                "job.end_training: a step is under way, whose records would be lost; call it after "
                "step.apply(…)"))

    def close(self) -> None:
        """Ends this member's part."""
        for loader in self._loaders.values():
            loader.close()
        if self._handle is not None:
            self._handle.close()

    # ------------------------------------------------------------------- opening, ending

    @property
    def _member(self) -> Member:
        self._open(0)
        assert self._handle is not None
        return self._handle

    def _connect(self, records: int) -> Member:
        """The handle. The job hears of this member by the first order that it asks for."""
        if self._handle is None:
            options = self._options
            if not self.in_job and options.records == 0:
                options = Options(**{**options.__dict__, "records": records})
            self._handle = Member(options)
        return self._handle

    def _open(self, records: int) -> None:
        if self._begun:
            return
        self._modules.check_held()
        handle = self._connect(records)
        self._state.begin(handle)
        self._begun = True
        self._modules.begin()
        handle.leave_on_terminate()

    def _check_loader(self, loader: Any, call: str) -> None:
        if not isinstance(loader, Loader):
            raise self._failing(TypeError(
                f"job.{call} was given a {type(loader).__name__}, and in a job the job says which records "
                f"are in a batch: give adt.Loader(dataset, collate_fn=…, num_workers=…)"))

    def _check(self, check: Callable[..., Optional[str]], *of: Any) -> None:
        wrong = check(self._member, *of)
        if wrong is not None:
            raise self._failing(RuntimeError(wrong))

    def _watch_the_end(self) -> None:
        """The job hears why the program ends, also where nobody asked it."""
        before = sys.excepthook

        def heard(kind: Any, error: Any, trace: Any) -> None:
            self._broken = self._broken or error
            before(kind, error, trace)

        sys.excepthook = heard
        atexit.register(self._at_exit, os.getpid())

    def _at_exit(self, process: int) -> None:
        if self._handle is None or self._handle.closed or os.getpid() != process:
            return
        if self._broken is None and self._ended:
            self._broken = RuntimeError("the program ended before the evaluation that follows: call "
                                        "job.evaluate(loader, metric) after job.end_training(…)")
        self._fail(self._broken or RuntimeError("the program ended in the middle of the job"))

    def _failing(self, error: BaseException) -> BaseException:
        self._fail(error)
        return error

    def _fail(self, error: BaseException) -> None:
        """This member's part ends; the job records why, and the others go on."""
        if self._handle is None or self._handle.closed:
            return
        frames = traceback.extract_tb(error.__traceback__)
        where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
        text = f"{type(error).__name__}: {error}{where}"
        try:
            deadline = time.monotonic() + _LONGEST_FAREWELL
            while self._order.kind != 0 and time.monotonic() < deadline:
                if self._handle.in_hand is not None:
                    self._handle.failed(text[:_LONGEST_REPORT])
                order = self._handle.next_within(100)
                if order is not None and order.kind == _abi.LEAVE:
                    break
        except Error:
            pass  # what ends the program is `error`
        self._left = 1
        self.close()

    def _leave(self, order: Order) -> None:
        self._left = order.code
        assert self._handle is not None
        self._last_evaluation = self._handle.evaluated()
        self.close()
        if order.text and order.code != 0:
            print(f"antdt: {order.text}", file=sys.stderr, flush=True)
        # 0: the job is done. A process that joined too late for that has trained nothing of it.
        if order.code != 0 or not (self._complete or self._ended):
            raise SystemExit(order.code)

    # ------------------------------------------------------------------- orders

    def _peek(self) -> Optional[Order]:
        """The order in hand, or the next, that a loop has to do something about; None at the end."""
        if self._left is not None:
            return None
        member = self._member
        if self._applied:
            self._applied = False
            self._modules.clear()
            member.done()
        while True:
            order = member.in_hand or member.next()
            if order.kind == _abi.LEAVE:
                self._leave(order)
                return None
            self._order = order
            if not self._answered_by_itself(order):
                if order.kind == _abi.PHASE_BEGIN:
                    self._bodies.phase_begins(order)
                if not self._passes_over(order):
                    return order

    def _passes_over(self, order: Order) -> bool:
        """Behind the end of the training nothing is trained: a phase breaks off, or has nothing left."""
        if not self._ended or order.kind != _abi.PHASE_BEGIN or order.evaluation:
            return False
        self._member.done()
        return True

    def _answered_by_itself(self, order: Order) -> bool:
        if order.kind == _abi.STATE_WANTED:
            if order.evaluation:  # as where the evaluation ends, below
                self._modules.discard_buffers()
            self._state.bring_up_to_date(self._member, self._bodies.text())
        elif order.kind == _abi.STATE_REPLACED:
            self._bodies.replaced(self._state.replaced())
            self._modules.clear()
        elif order.kind == _abi.DISCARD:
            self._modules.discard_buffers()
            self._modules.clear()
        elif order.kind == _abi.PHASE_END:
            self._complete = order.complete
            if order.complete and not order.evaluation:
                self._epochs_trained = order.epoch + 1
            if order.evaluation:  # a module left in training mode has changed its buffers
                self._modules.discard_buffers()
        else:
            return False
        self._member.done()
        return True

    def _order_in_step(self) -> Optional[Order]:
        """The order to compute or to reduce; None once the step is void."""
        if self._left is not None:
            return None
        member = self._member
        order = member.in_hand or member.next()
        while order.kind == _abi.STATE_WANTED:
            self._answered_by_itself(order)
            order = member.next()
        if order.kind in (_abi.COMPUTE, _abi.REDUCE):
            self._order = order
            return order
        if order.kind == _abi.LEAVE:
            self._leave(order)
        return None  # _peek answers it

    def _begin_phase(self, order: Order, loader: Loader) -> None:
        if order.generation != self._regrouped:
            self._regrouped = order.generation
            for call in self._callbacks["regroup"]:
                call(Regroup(order.generation, order.rank, order.size, order.step))
        self._complete = False
        self._begin_loader(order, loader)
        self._member.done()

    def _begin_loader(self, order: Order, loader: Loader) -> None:
        before = self._loaders.get(order.evaluation)
        self._loaders[order.evaluation] = loader
        if before is not None and all(before is not used for used in self._loaders.values()):
            before.close()  # a program may make one for each evaluation
        loader.begin(self._member, order)

    def _evaluate_one(self, order: Order, loader: Loader, metric: Metric) -> None:
        try:
            with torch.no_grad():
                batch = MicroBatch(loader.fetch(order), order.records)
                sums = Sums.of(metric(batch), len(batch))
            self._member.done_evaluate(sums.records, sums.loss, sums.correct, *sums.bins(), sums.named)
        except BaseException as error:
            self._fail(error)
            raise

    # ------------------------------------------------------------------- for Step

    def _reduce(self, weight: float) -> Optional[Order]:
        """Answers the order to reduce; the order to apply, or None if the step is void."""
        member = self._member
        self._modules.finish(member, self._order.size, weight)
        member.wait()
        member.done()
        while True:
            order = member.next()
            if order.kind == _abi.STATE_WANTED:
                self._answered_by_itself(order)
                continue
            if order.kind == _abi.LEAVE:
                self._leave(order)
            return order if order.kind == _abi.APPLY else None

    def _divide(self, weight: float) -> None:
        self._applied = True
        self._bodies.applied()
        self._modules.apply(weight)

    def _check_optimizers(self, optimizers: Sequence[torch.optim.Optimizer]) -> None:
        for optimizer in optimizers:
            if id(optimizer) in self._checked:
                continue
            if not self._state.holds(optimizer):
                raise RuntimeError("step.apply: the optimizer is not in job.state(opt=…), so a member "
                                   "that joins would not get its state")
            for p in (p for group in optimizer.param_groups for p in group["params"]):
                if p.requires_grad and not self._modules.know(p):
                    raise RuntimeError(
                        f"step.apply: the optimizer has a parameter of shape {tuple(p.shape)} that is "
                        f"in no module given to job.ddp, so its gradients would not be summed")
            self._checked.add(id(optimizer))
