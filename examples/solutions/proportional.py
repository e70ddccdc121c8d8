#!/usr/bin/env python3
"""A solution of one's own: each worker's part of the global batch follows its speed.

job.toml:

    [control]
    solution = "command"
    command = ["python3", "proportional.py"]

AntDT writes a view of the job on standard input, one line of JSON, and waits for one
line with the answer (docs/own-solution.md). What is written to standard error is in
RUN/solution.log.
"""

import json
import sys

WORTH_IT = 1.1  # the step has to become so much shorter


def decide(view):
    """The actions for this view, and why."""
    workers = view["workers"]
    if not workers or not all(w["measured"] and not w["changing"] for w in workers):
        return [], ""
    speed = {w["worker"]: w["samples_per_second"] for w in workers}
    part = {w["worker"]: w["samples_a_step"] for w in workers}
    now = max(part[w] / speed[w] for w in speed)
    best = sum(part.values()) / sum(speed.values())
    if now < WORTH_IT * best:
        return [], ""
    slowest = max(speed, key=lambda w: part[w] / speed[w])
    # In proportion is enough: AntDT rounds, so that the sum is the global batch and the
    # rules of [batch] hold.
    shares = {w: round(1000 * s / max(speed.values()) * max(part.values()) / 1000)
              for w, s in speed.items()}
    action = {"kind": "adjust-batch", "shares": shares, "because_of": slowest}
    return [action], f"a step takes {now:.3f} s, and could take {best:.3f} s"


def main():
    for line in sys.stdin:
        view = json.loads(line)
        actions, reason = decide(view)
        print(json.dumps({"view": view["view"], "actions": actions, "reason": reason}), flush=True)


if __name__ == "__main__":
    main()
