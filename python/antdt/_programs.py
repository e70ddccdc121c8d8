"""The programs that a wheel brings: each console script becomes the program."""
import os
import pathlib
import sys


def _become(name: str) -> int:
    path = pathlib.Path(__file__).resolve().parent / "bin" / name
    try:
        os.execv(path, [str(path), *sys.argv[1:]])
    except OSError as error:
        print(f"{name}: cannot start {path}: {error.strerror}. Only a wheel (scripts/wheel) brings "
              f"the programs", file=sys.stderr)
    return 1


def antdt() -> int:
    return _become("antdt")


def antdtd() -> int:
    return _become("antdtd")


def antdt_jobd() -> int:
    return _become("antdt-jobd")


def antdt_instrument() -> int:
    return _become("antdt-instrument")


def antdt_server() -> int:
    return _become("antdt-server")


def antdt_shim() -> int:
    return _become("antdt-shim")
