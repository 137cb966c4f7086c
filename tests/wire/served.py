"""The files of servers that tests share; they do not change them."""

import random

SMALL = bytes(range(256)) * 4
BIG = random.Random(1).randbytes(3_000_000)

FILES = {
    "index.html": b"<h1>hello</h1>\n",
    "small.bin": SMALL,
    "big.bin": BIG,
    "empty.txt": b"",
    "dir/index.html": b"in dir",
    "list/file.txt": b"x",
}
