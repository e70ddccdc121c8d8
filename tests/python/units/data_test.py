"""Data sets of files: any record at any time, indexes that are used again, found out and shared."""
import gzip
import io
import multiprocessing
import os
import pathlib
import pickle
import random
import resource
import shutil
import subprocess
import tarfile
import tempfile
import unittest
from unittest import mock

from antdt import Error
from antdt.data import Folder, Lines, Parquet, WebDataset
from antdt.data import _folder, _open_files, _webdataset

try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    pyarrow = None


class DataTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.dir = pathlib.Path(temporary.name) / "data"
        self.dir.mkdir()
        self.cache = pathlib.Path(temporary.name) / "cache"
        environment = mock.patch.dict(os.environ, XDG_CACHE_HOME=str(self.cache))
        environment.start()
        self.addCleanup(environment.stop)

    def write(self, name, data):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def indexes(self, folder=None):
        folder = folder or self.cache / "antdt" / "index"
        return [path for path in folder.iterdir() if path.suffix in (".idx", ".pyidx")]

    def assert_read_anywhere(self, dataset, wanted):
        """In any order, in a process that was forked, and as a copy that was pickled."""
        self.assertEqual(len(dataset), len(wanted))
        order = random.Random(3).sample(range(len(wanted)), len(wanted))
        self.assertEqual([dataset[i] for i in order], [wanted[i] for i in order])
        self.assertEqual(dataset.__getitems__(order), [wanted[i] for i in order])
        self.assertEqual(dataset[-1], wanted[-1])
        copy = pickle.loads(pickle.dumps(dataset))
        self.assertEqual(copy[order[0]], wanted[order[0]])
        self.assertEqual(copy.fingerprint, dataset.fingerprint)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            self.assertEqual(pool.map(dataset.__getitem__, order, chunksize=3),
                             [wanted[i] for i in order])
        for outside in (len(wanted), -len(wanted) - 1):
            with self.assertRaisesRegex(IndexError, f"no record {outside}: there are {len(wanted)}"):
                dataset[outside]

    def assert_found_out(self, opened, wanted):
        """Each byte of the index that changed makes another, and nothing else is read meanwhile."""
        (path,) = self.indexes()
        good = path.read_bytes()
        for at in range(3, len(good), max(1, len(good) // 9)):
            path.write_bytes(good[:at] + bytes([good[at] ^ 4]) + good[at + 1:])
            self.assertEqual(opened()[0], wanted)
            self.assertEqual(path.read_bytes(), good)
        path.write_bytes(good[:len(good) // 2])
        self.assertEqual(opened()[0], wanted)
        self.assertEqual(path.read_bytes(), good)


    def assert_few_files_are_open(self, dataset, wanted):
        """Of more files than the process may have, each is read twice."""
        order = [*random.Random(3).sample(range(len(wanted)), len(wanted)), *range(len(wanted))]
        context = multiprocessing.get_context("fork")
        limits = resource.RLIMIT_NOFILE, (96, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        with context.Pool(1, initializer=resource.setrlimit, initargs=limits) as pool:
            self.assertEqual(pool.apply(dataset.__getitems__, (order,)), [wanted[i] for i in order])


class LinesTest(DataTest):
    def test_any_line_of_plain_and_packed_files(self):
        wanted = [f"line {i} äöü" for i in range(300)]
        text = "".join(f"{line}\n" for line in wanted).encode()
        paths = [self.write("a.gz", gzip.compress(text)), self.write("b.txt", b"\nfour\r\nlast")]
        wanted += ["", "four", "last"]
        if shutil.which("zstd"):
            paths.append(self.dir / "c.zst")
            subprocess.run(["zstd", "-q", "-o", paths[-1]], input=b"in zstd\n", check=True)
            wanted.append("in zstd")
        self.assert_read_anywhere(Lines(paths), wanted)
        self.assertEqual(Lines(paths[0], encoding=None)[7], wanted[7].encode())

    def test_an_index_beside_the_data_serves_whoever_finds_it(self):
        path = self.write("a.gz", gzip.compress(b"one\ntwo\n"))
        first = Lines(path, index="beside")
        self.assertFalse(self.cache.exists())
        (made,) = self.indexes(self.dir / ".antdt-index")
        moved = self.dir.rename(self.dir.parent / "moved")
        before = (moved / ".antdt-index" / made.name).stat().st_mtime_ns
        again = Lines(moved / "a.gz", index="beside")
        self.assertEqual((again[1], again.fingerprint), ("two", first.fingerprint))
        (made,) = self.indexes(moved / ".antdt-index")
        self.assertEqual(made.stat().st_mtime_ns, before)

    def test_a_damaged_index_is_found_out(self):
        path = self.write("a.gz", gzip.compress(b"one\ntwo\n"))
        Lines(path)
        self.assert_found_out(lambda: Lines(path), "one")

    def test_lines_that_changed_since_they_were_opened_are_not_read_by_another_process(self):
        path = self.write("a.txt", b"one\ntwo\n")
        dataset = Lines(path)
        path.write_bytes(b"zero\none\ntwo\n")
        with multiprocessing.get_context("fork").Pool(1) as pool:
            with self.assertRaisesRegex(RuntimeError, f"the data of Lines .{path}. have changed since"):
                pool.apply(dataset.__getitem__, (1,))

    def test_what_is_wrong_is_said(self):
        path = self.write("cut.gz", gzip.compress(b"one\ntwo\n")[:-5])
        with self.assertRaisesRegex(Error, "cut.gz cannot be unpacked"):
            Lines(path)
        with self.assertRaisesRegex(Error, "none"):
            Lines(self.dir / "none")
        with self.assertRaisesRegex(ValueError, "\"cache\" or \"beside\""):
            Lines(path, index="here")
        with self.assertRaisesRegex(ValueError, "names no file"):
            Lines([])


class WebDatasetTest(DataTest):
    def tar(self, name, members):
        with tarfile.open(self.dir / name, "w") as tar:
            for member, data in members:
                info = tarfile.TarInfo(member)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        return self.dir / name

    def test_neighbours_whose_names_begin_alike_are_a_sample(self):
        long_name = "x" * 150
        paths = [self.tar("a.tar", [("s/0.jpg", b"J0"), ("s/0.seg.png", b"P0"), ("s/1.jpg", b""),
                                    (f"{long_name}.cls", b"7")]),
                 self.tar("b.tar", [("s/1.jpg", b"another")])]
        wanted = [{"__key__": "s/0", "jpg": b"J0", "seg.png": b"P0"}, {"__key__": "s/1", "jpg": b""},
                  {"__key__": long_name, "cls": b"7"}, {"__key__": "s/1", "jpg": b"another"}]
        self.assert_read_anywhere(WebDataset(paths), wanted)
        self.assertEqual(WebDataset(paths, decode=lambda sample: sample["__key__"])[2], long_name)

    def test_there_may_be_more_tars_than_files_may_be_open(self):
        dataset = WebDataset([self.tar(f"{i}.tar", [("0.txt", b"%d" % i)]) for i in range(200)])
        self.assert_few_files_are_open(dataset, [{"__key__": "0", "txt": b"%d" % i} for i in range(200)])

    def test_a_tar_that_is_opened_again_is_the_one_that_it_was(self):
        paths = [self.tar(f"{i}.tar", [("0.txt", b"%d" % i)]) for i in range(2)]
        with mock.patch.object(_open_files, "_MOST", 1):
            dataset = WebDataset(paths)
            self.assertEqual([dataset[i]["txt"] for i in (0, 1, 0, 1)], [b"0", b"1", b"0", b"1"])
            self.tar("0.tar", [("0.txt", b"7")])
            os.utime(paths[0], ns=(0, 10**18))
            with self.assertRaisesRegex(ValueError, "0.tar has changed while it was in use"):
                dataset[0]

    def test_a_tar_that_changed_before_it_was_opened_first_is_not_read(self):
        paths = [self.tar(f"{i}.tar", [("0.txt", b"%d" % i)]) for i in range(2)]
        for place in ("cache", "beside"):
            dataset = WebDataset(paths, index=place)
            self.assertEqual(dataset[0]["txt"], b"0")
            before = paths[1].read_bytes()
            self.tar("1.tar", [("9.txt", b"9"), ("0.txt", b"1")])
            os.utime(paths[1], ns=(0, 10**18))
            for _ in range(2):
                with self.assertRaisesRegex(ValueError, "1.tar has changed while it was in use.*Put back"):
                    dataset[1]
            paths[1].write_bytes(before)
            self.assertEqual(dataset[1]["txt"], b"1")

    def test_a_tar_that_is_replaced_while_it_is_opened_is_not_read(self):
        paths = [self.tar(f"{i}.tar", [("0.txt", b"%d" % i)]) for i in range(2)]
        dataset = WebDataset(paths)
        self.assertEqual(dataset[0]["txt"], b"0")
        opened = os.open

        def replaced(path, flags):
            self.tar("1.tar", [("9.txt", b"9"), ("0.txt", b"1")])
            os.utime(paths[1], ns=(0, 10**18))
            return opened(path, flags)
        with mock.patch.object(_webdataset.os, "open", replaced):
            with self.assertRaisesRegex(ValueError, "1.tar has changed while it was in use"):
                dataset[1]

    def test_a_tar_that_was_touched_is_read_on(self):
        paths = [self.tar(f"{i}.tar", [("0.txt", b"%d" % i)]) for i in range(2)]
        with mock.patch.object(_open_files, "_MOST", 1), \
                mock.patch.object(_open_files, "state_of", wraps=_open_files.state_of) as looked:
            dataset = WebDataset(paths)
            self.assertEqual([dataset[i]["txt"] for i in (0, 1)], [b"0", b"1"])
            self.assertEqual(looked.call_count, 0)
            for path in paths:
                os.utime(path, ns=(0, 10**18))
            self.assertEqual([dataset[i]["txt"] for i in (0, 1, 0, 1)], [b"0", b"1", b"0", b"1"])
            self.assertEqual(looked.call_count, 2, "contents are read once for each change")

    def test_the_tar_is_scanned_once(self):
        path = self.tar("a.tar", [("0.txt", b"zero"), ("1.txt", b"one")])
        first = WebDataset(path)
        with mock.patch.object(_webdataset, "_build", side_effect=AssertionError("a scan")):
            self.assertEqual(WebDataset(path)[1]["txt"], b"one")
            with self.assertRaisesRegex(AssertionError, "a scan"):
                WebDataset(path, index="beside")
        self.tar("a.tar", [("0.txt", b"ZERO"), ("1.txt", b"one"), ("2.txt", b"two")])
        again = WebDataset(path)
        self.assertEqual((len(again), again[0]["txt"]), (3, b"ZERO"))
        self.assertNotEqual(again.fingerprint, first.fingerprint)
        with self.assertRaisesRegex(RuntimeError, "the data of WebDataset .*a.tar. have changed since"):
            first[1]

    def test_a_damaged_index_is_found_out(self):
        path = self.tar("a.tar", [("0.txt", b"zero"), ("1.txt", b"one")])
        WebDataset(path)
        self.assert_found_out(lambda: WebDataset(path), {"__key__": "0", "txt": b"zero"})

    def test_an_index_beside_the_data_serves_whoever_finds_it(self):
        path = self.tar("a.tar", [("0.txt", b"zero")])
        first = WebDataset(path, index="beside")
        self.assertFalse(self.cache.exists())
        moved = self.dir.rename(self.dir.parent / "moved")
        with mock.patch.object(_webdataset, "_build", side_effect=AssertionError("a scan")):
            again = WebDataset(moved / "a.tar", index="beside")
        self.assertEqual((again[0]["txt"], again.fingerprint), (b"zero", first.fingerprint))

    def test_what_is_wrong_is_said(self):
        whole = self.tar("a.tar", [("0.txt", b"z" * 2000)]).read_bytes()
        with self.assertRaisesRegex(ValueError, "cut.tar"):
            WebDataset(self.write("cut.tar", whole[:1500]))
        with self.assertRaisesRegex(ValueError, "a.tar.gz is packed.*unpack it"):
            WebDataset(self.write("a.tar.gz", gzip.compress(whole)))
        with self.assertRaisesRegex(ValueError, "text.tar is no whole tar"):
            WebDataset(self.write("text.tar", b"hello" * 500))
        with self.assertRaisesRegex(ValueError, "sample 0 has two members .txt"):
            WebDataset(self.tar("two.tar", [("0.txt", b""), ("0.txt", b"")]))
        self.assertEqual(self.indexes(), [])


class FolderTest(DataTest):
    def test_files_are_records_and_folders_classes(self):
        for name in ("dog/2.jpg", "cat/b/1.jpg", "cat/9.jpg", ".hidden/3.jpg", "dog/.4.jpg", "note.txt"):
            self.write(name, name.encode())
        dataset = Folder(self.dir)
        self.assertEqual(dataset.classes, ["cat", "dog"])
        self.assert_read_anywhere(dataset, [(b"cat/9.jpg", 0), (b"cat/b/1.jpg", 0),
                                            (b"dog/2.jpg", 1), (b"note.txt", -1)])
        self.assertEqual(dataset.path(2), str(self.dir / "dog/2.jpg"))
        images = Folder(self.dir, extensions=[".JPG"], load=os.path.basename)
        self.assertEqual([images[i] for i in range(len(images))],
                         [("9.jpg", 0), ("1.jpg", 0), ("2.jpg", 1)])

    def test_the_folder_is_listed_again_when_a_file_came(self):
        self.write("a/1", b"")
        Folder(self.dir)
        with mock.patch.object(_folder, "_build", side_effect=AssertionError("a listing")):
            self.assertEqual(len(Folder(self.dir)), 1)
        self.write("a/2", b"")
        os.utime(self.dir / "a", ns=(0, 10**18))  # a clock may be too coarse to tell them apart
        self.assertEqual(len(Folder(self.dir)), 2)

    def test_data_that_changed_since_they_were_opened_are_not_read_under_other_numbers(self):
        self.write("a/1", b"one")
        self.write("b/3", b"three")
        dataset = Folder(self.dir)
        copy = pickle.dumps(dataset)
        os.utime(self.dir / "a", ns=(0, 10**18))  # the same listing at another time
        with multiprocessing.get_context("fork").Pool(1) as pool:
            self.assertEqual(pool.apply(dataset.__getitem__, (1,)), (b"three", 1))
        self.write("a/2", b"two")
        os.utime(self.dir / "a", ns=(0, 2 * 10**18))
        with multiprocessing.get_context("fork").Pool(1) as pool:
            with self.assertRaisesRegex(RuntimeError, f"the data of Folder .{self.dir}. have changed since"):
                pool.apply(dataset.__getitem__, (1,))
        for read in (dataset.path, dataset.__getitem__, pickle.loads(copy).__getitem__):
            with self.assertRaisesRegex(RuntimeError, "Put back what was there"):
                read(1)
        (self.dir / "a" / "2").unlink()
        os.utime(self.dir / "a", ns=(0, 10**18))
        self.assertEqual(dataset[1], (b"three", 1))

    def test_a_folder_that_comes_and_holds_no_record_changes_nothing(self):
        self.write("a/1.jpg", b"one")
        dataset = Folder(self.dir, extensions=[".jpg"])
        self.write("out/log.txt", b"")
        (self.dir / "a" / "empty").mkdir()
        for folder in (self.dir, self.dir / "a"):
            os.utime(folder, ns=(0, 10**18))
        self.assertEqual(dataset[0], (b"one", 0))
        again = Folder(self.dir, extensions=[".jpg"])
        self.assertEqual((again.fingerprint, again.classes), (dataset.fingerprint, ["a"]))
        copy = shutil.copytree(self.dir, self.dir.parent / "copy")
        self.assertEqual(Folder(copy, extensions=[".jpg"]).fingerprint, dataset.fingerprint)

    def test_what_records_are_called_and_which_class_they_have_makes_the_fingerprint(self):
        found = set()
        for i, name in enumerate(("a/1", "a/2", "b/1", "1", "a/b/1")):
            folder = f"of{i}"
            self.write(f"{folder}/{name}", b"")
            found.add(Folder(self.dir / folder).fingerprint)
        self.assertEqual(len(found), 5)

    def test_paths_are_of_an_index_that_is_opened_once(self):
        self.write("a/1", b"")
        self.write("a/2", b"")
        dataset = Folder(self.dir)
        with mock.patch.object(_folder, "cached", wraps=_folder.cached) as opened:
            self.assertEqual([dataset.path(i) for i in (0, 1, -1)],
                             [str(self.dir / "a" / name) for name in ("1", "2", "2")])
            dataset[0]
        self.assertEqual(opened.call_count, 1)

    def test_a_link_that_leads_back_is_no_endless_way(self):
        self.write("a/1", b"")
        (self.dir / "a" / "back").symlink_to(self.dir)
        self.assertEqual(len(Folder(self.dir)), 1)

    def test_what_is_wrong_is_said(self):
        with self.assertRaisesRegex(NotADirectoryError, "none is no directory"):
            Folder(self.dir / "none")


class ParquetTest(DataTest):
    @unittest.skipUnless(pyarrow, "no pyarrow")
    def test_any_row(self):
        def table(first, count):
            return pyarrow.table({"x": list(range(first, first + count)),
                                  "name": [f"n{i}" if i % 3 else None for i in range(count)]})
        paths = [self.dir / "a.parquet", self.dir / "b.parquet"]
        pyarrow.parquet.write_table(table(0, 100), paths[0], row_group_size=7)
        pyarrow.parquet.write_table(table(100, 20), paths[1])
        wanted = table(0, 100).to_pylist() + table(100, 20).to_pylist()
        self.assert_read_anywhere(Parquet(paths), wanted)
        self.assertEqual(Parquet(paths, columns=["x"], index="beside")[103], {"x": 103})
        with self.assertRaisesRegex(ValueError, "no column y; it has x, name"):
            Parquet(paths, columns=["y"])
        pyarrow.parquet.write_table(pyarrow.table({"z": [1]}), paths[1])
        with self.assertRaisesRegex(ValueError, "b.parquet has the columns z"):
            Parquet(paths)
        with self.assertRaisesRegex(ValueError, "no.parquet is no whole Parquet file"):
            Parquet(self.write("no.parquet", b"hello"))

    @unittest.skipUnless(pyarrow, "no pyarrow")
    def test_there_may_be_more_files_than_may_be_open(self):
        paths = [self.dir / f"{i}.parquet" for i in range(200)]
        for i, path in enumerate(paths):
            pyarrow.parquet.write_table(pyarrow.table({"x": [i]}), path)
        self.assert_few_files_are_open(Parquet(paths), [{"x": i} for i in range(200)])

    @unittest.skipUnless(pyarrow, "no pyarrow")
    def test_a_file_that_changed_before_it_was_opened_first_is_not_read(self):
        paths = [self.dir / f"{i}.parquet" for i in range(3)]
        for i, path in enumerate(paths):
            pyarrow.parquet.write_table(pyarrow.table({"x": [i]}), path)
        dataset = Parquet(paths)
        self.assertEqual(dataset[0], {"x": 0})
        pyarrow.parquet.write_table(pyarrow.table({"x": [7]}), paths[1])
        paths[2].write_bytes(paths[2].read_bytes()[:-5])
        for path in paths:
            os.utime(path, ns=(0, 10**18))
        for i in (1, 2):
            with self.assertRaisesRegex(ValueError, f"{i}.parquet has changed while it was in use"):
                dataset[i]

    @unittest.skipIf(pyarrow, "pyarrow is there")
    def test_without_pyarrow_it_says_what_to_install(self):
        with self.assertRaisesRegex(ImportError, "pip install pyarrow"):
            Parquet(self.write("a.parquet", b"PAR1"))


if __name__ == "__main__":
    unittest.main()
