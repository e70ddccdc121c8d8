"""Unit tests of the package, under Debian's PyTorch and under PyPI's."""
import unittest

import python_jobs
from under_each_torch import UnderEachTorch


@python_jobs.needs_torch
class Units(UnderEachTorch, unittest.TestCase):
    folder = "units"


if __name__ == "__main__":
    unittest.main()
