"""Drops files from memory."""

import ctypes
import mmap
import os

import pytest

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p


def in_memory(path):
    """Returns how many pages of a file are in memory. preadv2(RWF_NOWAIT) would make the kernel
    read ahead; mincore(2) does not."""
    size = os.path.getsize(path)
    pages = (ctypes.c_ubyte * (-(-size // mmap.PAGESIZE)))()
    file = os.open(path, os.O_RDONLY)
    at = LIBC.mmap(None, ctypes.c_size_t(size), mmap.PROT_READ, mmap.MAP_SHARED, file, ctypes.c_long(0))
    os.close(file)
    assert LIBC.mincore(ctypes.c_void_p(at), ctypes.c_size_t(size), pages) == 0
    LIBC.munmap(ctypes.c_void_p(at), ctypes.c_size_t(size))
    return sum(page & 1 for page in pages)


def make_cold(path, stir=lambda: None):
    """Drops a file from memory; skips the test if that is impossible. Linux frees what a socket has
    sent only with later traffic on the same processor: stir() makes some."""
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    for _ in range(100):
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        if not in_memory(path):
            break
        stir()
    os.close(file)
    if in_memory(path):
        pytest.skip("files of this file system stay in memory")
