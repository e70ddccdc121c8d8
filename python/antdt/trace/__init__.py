"""The tracer of scripts that know nothing of AntDT (docs/torchrun): where the time of their steps
goes, which collective each rank is in, and where it stands when the ranks hang.

site/sitecustomize.py brings it into the script's process. Nothing here imports PyTorch by itself, and
nothing may break the script: what fails is said once, and the script is not measured from then on.
"""
