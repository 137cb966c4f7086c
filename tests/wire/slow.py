"""A disk that takes its time, or another machine that may not answer: bench/slowfiles.py over FUSE."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gatling import Root

PROGRAM = Path(__file__).resolve().parents[2] / "bench" / "slowfiles.py"


def refused(errors):
    """Skips the test if the kernel did not permit the mount: libfuse then tries fusermount3."""
    if re.search(r"^fuse.*(not permitted|Permission denied|fusermount3)", errors, re.MULTILINE):
        pytest.skip(f"mounting is not permitted here: {errors.splitlines()[0]}")
    pytest.fail(errors)


class Disk:
    """Shows the files of `source`, a Root, at a path."""

    def __init__(self, source, path, flags):
        self.source, self.path = source, path
        with tempfile.TemporaryFile("w+") as errors:
            self.process = subprocess.Popen([sys.executable, PROGRAM, *flags, source.path, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=errors, text=True)  # fmt: skip
            said = self.process.stdout.readline()
            if said != "mounted\n":
                self.process.communicate()
                errors.seek(0)
                refused(errors.read())

    def take(self, seconds):
        """From now on each lookup and each read takes so long."""
        print(seconds, file=self.process.stdin, flush=True)

    def hang(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.go_on()
        self.process.communicate()
        if self.process.returncode:  # it was killed
            subprocess.run(["umount", "--lazy", self.path], check=True)


def settled(path):
    """Makes a file old: one that has just changed is read again at the next look."""
    os.utime(path, (0, 0))


@contextlib.contextmanager
def slowed(files, *flags, path=None):
    """Yields a disk with these files, at path, or one of its own."""
    if not os.path.exists("/dev/fuse") or os.geteuid() != 0:
        pytest.skip("this takes FUSE and root")
    source, own = Root(files), None if path else Root()
    for name in source.path, *source.path.rglob("*"):
        settled(name)
    disk = Disk(source, path or own.path, flags)
    try:
        yield disk
    finally:  # or the test itself would hang
        disk.end()
    if own:
        own.remove()
    source.remove()
