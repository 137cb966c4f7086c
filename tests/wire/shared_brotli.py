"""A decoder of brotli with a dictionary (RFC 9842, section 4): that of a libbrotlidec of 1.1 or later, of this system or of the Debian 13 of tests/http3."""

import ctypes
import ctypes.util
import functools
from pathlib import Path

HEADER = bytes.fromhex("ff444342")
RAW, DONE = 0, 1
MOST = 1 << 23  # bytes of content
LIBRARIES = "usr/lib/*/libbrotli{}.so.1"


@functools.cache
def library(root):
    """Returns libbrotlidec of that Debian, or of this system; None: it has none that knows dictionaries."""
    found = [next(root.glob(LIBRARIES.format(name)), None) for name in ("common", "dec")] if root else ["libbrotlicommon.so.1", ctypes.util.find_library("brotlidec")]
    try:
        ctypes.CDLL(found[0], mode=ctypes.RTLD_GLOBAL)
        loaded = ctypes.CDLL(found[1])
        loaded.BrotliDecoderAttachDictionary.restype = ctypes.c_int
    except (OSError, AttributeError, TypeError):
        return None
    loaded.BrotliDecoderCreateInstance.restype = ctypes.c_void_p
    return loaded


def decompress(stream, dictionary, build):
    """Returns the content of a stream, which is to be whole and nothing more. build: the one that has made it."""
    decoder = library(None) or library(Path(build) / "debian")
    state = ctypes.c_void_p(decoder.BrotliDecoderCreateInstance(None, None, None))
    assert decoder.BrotliDecoderAttachDictionary(state, RAW, ctypes.c_size_t(len(dictionary)), dictionary)
    out = ctypes.create_string_buffer(MOST)
    left, at = ctypes.c_size_t(len(stream)), ctypes.c_char_p(stream)
    room, to = ctypes.c_size_t(MOST), ctypes.c_void_p(ctypes.addressof(out))
    result = decoder.BrotliDecoderDecompressStream(state, ctypes.byref(left), ctypes.byref(at), ctypes.byref(room), ctypes.byref(to), None)
    decoder.BrotliDecoderDestroyInstance(state)
    assert result == DONE and not left.value, "not one whole stream of brotli"
    return out.raw[: MOST - room.value]
