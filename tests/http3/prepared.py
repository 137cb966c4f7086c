"""The files of the server that the tests over HTTP/3 share: those of served.py, what an owner says, and what compression takes."""

import gzip

import served

MISSING = b"<p>none here"
TEXT = b"a { color: red }\n" * 1000
PACKED = b"this is the precompressed copy\n" * 100

FILES = served.FILES | {
    "404.html": MISSING,
    "text.css": TEXT,
    "packed.js": b"1;" * 5000,
    "packed.js.gz": gzip.compress(PACKED),
    "_redirects": b"/old /small.bin 301\n/alias /small.bin 200\n",
    "_headers": b"/small.bin\n  X-Own: of the owner\n",
}
