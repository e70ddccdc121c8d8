"""When a training ends before its last epoch, as EarlyStopping would have it."""
from __future__ import annotations

from typing import Callable, List, Optional

import antdt.torch as adt


def end_if(job: adt.Job, until: Optional[Callable[[List[adt.Evaluated]], Optional[str]]],
           found: List[adt.Evaluated]) -> None:
    """Ends the training if `until` gives a reason; it is given a list of its own."""
    why = until(list(found)) if until is not None else None
    if why is not None and not isinstance(why, str):
        raise TypeError(f"until gave {why!r}: why the training ends now, a text, or None where it goes on")
    if why is not None:
        job.end_training(why)
