"""Other frameworks' loops on antdt.torch (docs/python.md)."""
