"""job.toml files of the end-to-end tests."""

import json


def domains(of="workers", **members):
    """A [[domain]] of each name, with these workers, or hosts."""
    return "".join(f'[[domain]]\nname = "{name}"\n{of} = {json.dumps(ids)}\n'
                   for name, ids in members.items())


def ctr(train, evaluation, workers=2, model="deepfm", epochs=2, batch=256, lr=1e-3,
        optimizer="adam", extra=""):
    return f"""
schema = 1
[job]
name = "e2e"
epochs = {epochs}
seed = 7
[roles.worker]
count = {workers}
command = ["antdt-trainer"]
[data]
format = "criteo"
paths = ["{train}"]
eval_paths = ["{evaluation}"]
hash_buckets = 16384
[batch]
global = {batch}
[trainer]
model = "{model}"
sync = "allreduce"
optimizer = "{optimizer}"
lr = {lr}
{extra}
"""


def mnist(directory, workers=2, epochs=3):
    return f"""
schema = 1
[job]
name = "mnist"
epochs = {epochs}
seed = 3
[roles.worker]
count = {workers}
command = ["antdt-trainer"]
[data]
format = "idx"
paths = ["{directory}/train-images-idx3-ubyte"]
labels = ["{directory}/train-labels-idx1-ubyte"]
eval_paths = ["{directory}/t10k-images-idx3-ubyte"]
eval_labels = ["{directory}/t10k-labels-idx1-ubyte"]
[batch]
global = 128
[trainer]
model = "mlp"
sync = "allreduce"
optimizer = "adam"
lr = 1e-3
hidden = [256]
"""


# [control] and [[inject]]: the last of four workers at a third of the others' speed.
SLOW = """
[control]
solution = "{solution}"
mode = "act"
transient_window = "1s"
persistent_window = "5s"
[[inject]]
workers = ["*"]
delay_per_sample = "600us"
[[inject]]
workers = ["w3"]
slowdown = 3.0
"""
