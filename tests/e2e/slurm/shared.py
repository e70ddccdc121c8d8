"""Lets the tests of this folder import what all end-to-end tests share."""

import pathlib
import sys

E2E = pathlib.Path(__file__).resolve().parents[1]
sys.path[1:1] = [str(E2E), str(E2E / "store")]
