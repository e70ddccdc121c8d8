"""Unit tests of the hooks that trace ranks, under Debian's PyTorch and under PyPI's."""
import unittest

import python_jobs
from under_each_torch import UnderEachTorch


@python_jobs.needs_torch
class TraceUnits(UnderEachTorch, unittest.TestCase):
    folder = "trace_units"


if __name__ == "__main__":
    unittest.main()
