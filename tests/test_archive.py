"""Every damaged or hostile file is refused, quickly and without allocating what it asks for."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
import time
import zipfile

import numpy as np
import pytest

from o2td import archive
from o2td.errors import FormatError, InputError, O2TDError

ARRAYS = {
    "theta": np.arange(3.0),
    "count": np.array([1, 2]),
    "on": np.array(True),
    "no": np.ones(0),
}


@pytest.fixture
def path(tmp_path):
    target = tmp_path / "state.npz"
    archive.save(target, "test", {"step": 3, "name": "π"}, ARRAYS)
    return target


def seal(data: bytes) -> bytes:
    """Give hostile content the digest that belongs to it: a digest is no signature."""
    return data[:-64] + hashlib.sha256(data[:-64]).hexdigest().encode()


def craft(path, members, document=None, compression=zipfile.ZIP_STORED, mode=stat.S_IFREG | 0o644):
    """A file with a right digest and any content; `members` maps names to bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as made:
        made.comment = b"0" * 64
        base = {"format": "o2td", "version": 1, "kind": "test", "header": {}, "arrays": {}}
        header = json.dumps(base | (document or {})) if not isinstance(document, str) else document
        for name, data in {"header.json": header.encode(), **members}.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.external_attr = (stat.S_IFREG | 0o644 if name == "header.json" else mode) << 16
            info.compress_type = compression
            info.create_system = 3
            made.writestr(info, data)
    path.write_bytes(seal(stream.getvalue()))
    return path


def npy(array, **options):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, **options)
    return stream.getvalue()


def refused(path, match=None):
    began = time.perf_counter()
    with pytest.raises(FormatError, match=match):
        archive.load(path, "test")
    assert time.perf_counter() - began < 1.0


def test_what_is_saved_comes_back(path):
    header, arrays = archive.load(path, "test")
    assert header == {"step": 3, "name": "π"}
    assert list(arrays) == sorted(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape


def test_the_same_content_gives_the_same_bytes(path, tmp_path):
    archive.save(tmp_path / "b.npz", "test", {"name": "π", "step": 3}, ARRAYS)
    assert (tmp_path / "b.npz").read_bytes() == path.read_bytes()


def test_numpy_reads_it_without_pickle(path):
    with np.load(path, allow_pickle=False) as loaded:
        np.testing.assert_array_equal(loaded["theta"], ARRAYS["theta"])


def test_every_single_bit_flip_is_refused(path):
    whole = path.read_bytes()
    for place in range(len(whole)):
        data = bytearray(whole)
        data[place] ^= 1 << (place % 8)
        path.write_bytes(data)
        with pytest.raises(FormatError):
            archive.load(path, "test")


def test_every_truncation_and_any_appended_byte_is_refused(path):
    whole = path.read_bytes()
    for length in range(0, len(whole), 3):
        path.write_bytes(whole[:length])
        with pytest.raises(FormatError):
            archive.load(path, "test")
    for extra in (b"\0", b"x" * 100):
        path.write_bytes(whole + extra)
        with pytest.raises(FormatError):
            archive.load(path, "test")


def test_pickles_and_object_arrays_are_refused_and_run_nothing(tmp_path):
    canary = tmp_path / "ran"

    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(canary),))

    data = npy(np.array([Bomb()], dtype=object), allow_pickle=True)
    listed = {"arrays": {"a": {"dtype": "|O", "shape": [1]}}}
    refused(craft(tmp_path / "a.npz", {"a.npy": data}, listed), "plain numbers")
    refused(craft(tmp_path / "b.npz", {"a.npy": data[10:]}, listed))
    assert not canary.exists()


@pytest.mark.parametrize(
    "name", ["/etc/a.npy", "../a.npy", "a/../b.npy", "a..b.npy", "a.pkl", "a\n.npy"]
)
def test_names_that_leave_the_folder_are_refused(tmp_path, name):
    refused(craft(tmp_path / "a.npz", {name: npy(np.ones(1))}), "not allowed")


def test_symbolic_links_are_refused(tmp_path, path):
    refused(craft(tmp_path / "a.npz", {"a.npy": b"/etc"}, mode=stat.S_IFLNK | 0o777), "regular")
    link = tmp_path / "link.npz"
    link.symlink_to(path)
    refused(link, "symbolic link")


def test_what_is_no_file_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    refused(tmp_path / "fifo", "regular")
    with pytest.raises((InputError, FormatError)):
        archive.load(tmp_path, "test")
    with pytest.raises(InputError, match="no such file"):
        archive.load(tmp_path / "absent", "test")


def test_a_zip_bomb_is_refused(tmp_path):
    bomb = npy(np.zeros(10_000_000))
    listed = {"arrays": {"a": {"dtype": "<f8", "shape": [10_000_000]}}}
    made = craft(tmp_path / "a.npz", {"a.npy": bomb}, listed, zipfile.ZIP_DEFLATED)
    refused(made, "compressed")


@pytest.mark.parametrize("shape", [(10**15,), (2**40, 2**40), (3,), (-1,)])
def test_declared_sizes_are_checked_before_allocation(tmp_path, shape):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    listed = {"arrays": {"a": {"dtype": "<f8", "shape": list(shape)}}}
    refused(craft(tmp_path / "a.npz", {"a.npy": stream.getvalue() + b"\0" * 8}, listed))


def test_a_size_declared_in_the_directory_must_be_the_members_own(tmp_path, path):
    whole = bytearray(path.read_bytes())
    place = whole.rindex(b"PK\x01\x02") + 20
    whole[place : place + 8] = b"\xff\xff\xff\x7f" * 2
    path.write_bytes(seal(bytes(whole)))
    refused(path)


def test_members_must_be_those_of_the_header(tmp_path):
    one = {"arrays": {"a": {"dtype": "<f8", "shape": [1]}}}
    refused(craft(tmp_path / "a.npz", {"b.npy": npy(np.ones(1))}, one), "members")
    refused(craft(tmp_path / "b.npz", {}, one), "members")
    refused(craft(tmp_path / "c.npz", {"a.npy": npy(np.ones(2))}, one), "header lists")
    refused(craft(tmp_path / "d.npz", {"a.npy": npy(np.ones(1), version=(2, 0))}, one), "version")


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"version": 2}, "newer"),
        ({"version": 10**30}, "newer"),
        ({"version": True}, "version"),
        ({"version": "1"}, "version"),
        ({"format": "other"}, "header"),
        ({"kind": "learner"}, "expected 'test'"),
        ({"header": []}, "incomplete"),
        ({"arrays": 3}, "incomplete"),
        ("[" * 100_000, ""),
        ("{}", "header"),
        ("not json", ""),
    ],
)
def test_headers_that_are_not_ours_are_refused(tmp_path, document, why):
    refused(craft(tmp_path / "a.npz", {}, document), why or None)


def test_repeated_members_are_refused(tmp_path):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        made.comment = b"0" * 64
        made.writestr("header.json", "{}")
        with pytest.warns(UserWarning, match="Duplicate"):
            made.writestr("header.json", "{}")
    (tmp_path / "a.npz").write_bytes(seal(stream.getvalue()))
    refused(tmp_path / "a.npz", "repeated")


def test_files_beyond_the_limit_are_not_read(path):
    with pytest.raises(FormatError, match="max_bytes"):
        archive.load(path, "test", max_bytes=100)


def test_a_failed_write_leaves_the_old_file_and_no_other(path, monkeypatch):
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(O2TDError, match="No space left"):
        archive.save(path, "test", {}, ARRAYS)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_what_cannot_be_stored_is_refused(tmp_path):
    with pytest.raises(InputError, match="dtype"):
        archive.save(tmp_path / "a", "test", {}, {"a": np.array([None])})
    with pytest.raises(InputError, match="array name"):
        archive.save(tmp_path / "a", "test", {}, {"../a": np.ones(1)})
    with pytest.raises(InputError, match="JSON"):
        archive.save(tmp_path / "a", "test", {"f": print}, {})
    assert not list(tmp_path.iterdir())
