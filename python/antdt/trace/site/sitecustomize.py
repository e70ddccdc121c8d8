"""Runs at the start of each Python interpreter of a traced job (the agent puts this folder first in
PYTHONPATH): waits for PyTorch's modules to be imported, and then lets the tracer into them.

Where PyTorch is never imported this costs one name lookup an import. Nothing that goes wrong here
reaches the program. The sitecustomize that would have run without this one runs all the same.
"""
import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = "_antdt_trace"


def _run_the_other_one():
    """The user's or the system's own sitecustomize, which this file hides."""
    path = [p for p in sys.path if os.path.abspath(p or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _hooks():
    """The tracer, by its place: the program may have another `antdt` of its own, or none."""
    if _PACKAGE not in sys.modules:
        folder = os.path.dirname(_HERE)
        spec = importlib.util.spec_from_file_location(
            _PACKAGE, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder])
        package = importlib.util.module_from_spec(spec)
        sys.modules[_PACKAGE] = package
        spec.loader.exec_module(package)
    return importlib.import_module(_PACKAGE + ".hooks")


def _complain(error):
    print(f"antdt: this script is not measured: {type(error).__name__}: {error}", file=sys.stderr)


class _Loader:
    """The module's own loader, after which the tracer sees the module."""

    def __init__(self, loader, patch):
        self._loader = loader
        self._patch = patch

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        try:
            if module.__spec__ is not None:
                module.__spec__.loader = self._loader
            module.__loader__ = self._loader
            getattr(_hooks(), self._patch)(module)
        except Exception as error:  # the program goes on without being measured
            _complain(error)


class _Finder:
    WATCHED = {"torch.distributed.distributed_c10d": "patch_collectives",
               "torch.optim.optimizer": "patch_optimizer",
               "torch.utils.data.dataloader": "patch_dataloader",
               "torch.autograd": "patch_autograd",
               "torch.nn.parallel.distributed": "patch_ddp"}

    def find_spec(self, name, path=None, target=None):
        patch = self.WATCHED.get(name)
        if patch is None:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, patch)
                return spec
        return None


if os.environ.get("ANTDT_TRACE") == "1":
    try:
        sys.meta_path.insert(0, _Finder())
    except Exception as error:
        _complain(error)
_run_the_other_one()
