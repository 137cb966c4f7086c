"""The files of a server that the tests over HTTP/3 share; they do not change them."""

import gzip
import random

SMALL = bytes(range(256)) * 4
BIG = random.Random(1).randbytes(3_000_000)
MISSING = b"<p>none here"
TEXT = b"a { color: red }\n" * 1000
PACKED = b"this is the precompressed copy\n" * 100

FILES = {
    "index.html": b"<h1>hello</h1>\n",
    "small.bin": SMALL,
    "big.bin": BIG,
    "empty.txt": b"",
    "dir/index.html": b"in dir",
    "list/file.txt": b"x",
    "404.html": MISSING,
    "text.css": TEXT,
    "packed.js": b"1;" * 5000,
    "packed.js.gz": gzip.compress(PACKED),
    "_redirects": b"/old /small.bin 301\n/alias /small.bin 200\n",
    "_headers": b"/small.bin\n  X-Own: of the owner\n",
}
