"""The release; the same as in CMakeLists.txt, which a test compares."""
__version__ = "0.1.0"
