"""Where libantdt is, for the package and for the tracer. The tracer's folder is also installed by itself
(share/antdt/trace), and runs in processes that are not ours, so this file imports nothing of the package.
"""
import ctypes
import os

ABI_VERSION = 1
_NAME = "libantdt.so.1"


def candidates():
    """Possible paths, in the order in which they are tried."""
    told = os.environ.get("ANTDT_LIBRARY")
    if told:
        return [told]  # and nowhere else
    above = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if os.path.exists(os.path.join(above, "_version.py")):  # it is the package
        places = [os.path.join(above, "lib", _NAME),  # in a wheel
                  os.path.join(os.path.dirname(os.path.dirname(above)), "build", "lib", _NAME)]  # source tree
    else:
        places = [os.path.join(os.path.dirname(os.path.dirname(above)), "lib", _NAME)]  # of an installation
    # Beside the agent of this host; where the dynamic linker finds it.
    return [place for place in places + [os.environ.get("ANTDT_AGENT_LIBRARY", ""), _NAME] if place]


def _declare(library, path, functions, whose):
    """The functions get their types. ImportError where the library is of another release."""
    missing = [name for name in functions if not hasattr(library, name)]
    for name, (result, arguments) in functions.items():
        if name not in missing:
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    release = "%s is of another release than this %s" % (path, whose)
    if "antdt_abi_version" in missing or library.antdt_abi_version() != ABI_VERSION:
        raise ImportError("%s: its C interface is not of version %d. Install both of the same release"
                          % (release, ABI_VERSION))
    if missing:
        raise ImportError("%s: it has no %s. Install both of the same release"
                          % (release, ", ".join(missing)))


def load(functions, whose):
    """The library. functions: name -> (type of the result, types of the arguments), with
    antdt_abi_version among them; `whose` they are, in an error. ImportError says where it was looked for."""
    tried = []
    for path in candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            tried.append("%s: %s" % (path, error))
            continue
        _declare(library, path, functions, whose)
        return library
    raise ImportError("libantdt is not found. Install AntDT, or set ANTDT_LIBRARY to the path of "
                      "libantdt.so, for a worker in roles.worker.env of its job.toml. Tried:\n  " +
                      "\n  ".join(tried))
