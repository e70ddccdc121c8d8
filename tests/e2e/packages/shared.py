"""Lets the tests of this folder import what all end-to-end tests share."""

import pathlib
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1]))
