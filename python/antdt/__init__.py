"""AntDT for Python programs. `antdt.torch` trains PyTorch modules (docs/python.md)."""
from antdt._abi import Error
from antdt._version import __version__
from antdt.checkpoint import Checkpoint, newest_checkpoint

__all__ = ["Checkpoint", "Error", "__version__", "newest_checkpoint"]
