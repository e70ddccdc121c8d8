"""Data sets of files, each record of which is found by an index: for adt.Loader, or any map-style use.

    from antdt.data import Lines

    loader = adt.Loader(Lines(["a.jsonl.gz", "b.jsonl.zst"], index="beside"), collate_fn=f)

An index is built in one pass when a data set is opened for the first time, and kept in the user's cache
(index="cache") or in a directory `.antdt-index` beside the data (index="beside"), where all hosts that
share the data find it. docs/data.md.
"""
from antdt.data._folder import Folder
from antdt.data._lines import Lines
from antdt.data._parquet import Parquet
from antdt.data._progress import progress
from antdt.data._webdataset import WebDataset

__all__ = ["Folder", "Lines", "Parquet", "WebDataset", "progress"]
