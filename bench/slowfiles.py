"""A read-only file system that shows a directory as if it were on a slow disk: the first lookup of
a name and the first read of a file take a while; then the kernel remembers both. With --far it is
as if it were on another machine: all that it is asked takes that long.

    slowfiles.py [--far] [--remembered SECONDS] DIRECTORY MOUNTPOINT

Linux with FUSE, as root. Prints a line when it is mounted. Each line of its standard input is the
number of seconds that a lookup or read takes from then on, initially 0; at its end the directory is
unmounted.
"""

import argparse
import os
import sys
from pathlib import Path

import pyfuse3
import trio

FOREVER_S = 1e6


class SlowFiles(pyfuse3.Operations):
    """The operations. remembered: for how many seconds the kernel remembers a name."""

    def __init__(self, directory, remembered, far):
        super().__init__()
        self.remembered = remembered
        self.far = far
        self.delay = 0
        self.paths = {pyfuse3.ROOT_INODE: Path(directory)}
        self.inodes = {Path(directory): pyfuse3.ROOT_INODE}

    def attributes(self, path):
        entry, st = pyfuse3.EntryAttributes(), path.lstat()
        entry.st_ino = self.inodes.setdefault(path, len(self.inodes) + 1)
        self.paths[entry.st_ino] = path
        for name in ("st_mode", "st_nlink", "st_uid", "st_gid", "st_size", "st_mtime_ns", "st_atime_ns"):
            setattr(entry, name, getattr(st, name))
        entry.st_ctime_ns = st.st_mtime_ns  # a copy that was just made may look old
        entry.entry_timeout = entry.attr_timeout = self.remembered
        return entry

    async def lookup(self, parent, name, ctx=None):
        await trio.sleep(self.delay)
        path = self.paths[parent] / os.fsdecode(name)
        if path.exists():
            return self.attributes(path)
        missing = pyfuse3.EntryAttributes()  # st_ino is 0: there is no such file, which is remembered, too
        missing.entry_timeout = self.remembered
        return missing

    async def travel(self):
        if self.far:
            await trio.sleep(self.delay)

    async def getattr(self, inode, ctx=None):
        await self.travel()
        return self.attributes(self.paths[inode])

    async def opendir(self, inode, ctx):
        await self.travel()
        return inode

    async def readdir(self, fh, start_id, token):
        await trio.sleep(self.delay)
        for i, name in enumerate(sorted(os.listdir(self.paths[fh]))[start_id:], start_id + 1):
            if not pyfuse3.readdir_reply(token, os.fsencode(name), self.attributes(self.paths[fh] / name), i):
                return

    async def open(self, inode, flags, ctx):
        await self.travel()
        return pyfuse3.FileInfo(fh=inode, keep_cache=True)

    async def read(self, fh, off, size):
        await trio.sleep(self.delay)
        with open(self.paths[fh], "rb") as file:
            return os.pread(file.fileno(), size, off)


def read_delays(files):
    for line in sys.stdin:
        files.delay = float(line)


async def serve(files):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pyfuse3.main)
        print("mounted", flush=True)
        await trio.to_thread.run_sync(read_delays, files)
        nursery.cancel_scope.cancel()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--far", action="store_true", help="all that it is asked takes as long")
    parser.add_argument("directory", type=Path)
    parser.add_argument("mountpoint")
    parser.add_argument("--remembered", type=float, default=FOREVER_S, metavar="SECONDS", help="how long the kernel remembers a name")
    arguments = parser.parse_args()
    files = SlowFiles(arguments.directory.resolve(), arguments.remembered, arguments.far)
    pyfuse3.init(files, arguments.mountpoint, {*pyfuse3.default_options, "allow_other", "fsname=slowfiles"})
    try:
        trio.run(serve, files)
    finally:
        pyfuse3.close()


if __name__ == "__main__":
    main()
