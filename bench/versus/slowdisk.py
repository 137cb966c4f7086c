"""Makes the disk of a directory slow for some processes, by control groups.

Linux only, as root; with version 1 (Documentation/admin-guide/cgroup-v1/blkio-controller.rst) or 2
(cgroup-v2.rst) of control groups.
"""

import contextlib
import os
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")


def disk_of(directory):
    """Returns the major and minor number of the whole disk, as "254:0"."""
    device = os.stat(directory).st_dev
    path = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
    if (path / "partition").exists():
        path = path.parent
    return (path / "dev").read_text().strip()


class NoSlowDisk(Exception):
    """This machine cannot limit a disk; the text is the reason."""


class SlowDisk:
    """A group of processes that may read at most bytes_s a second from the directory's disk; for
    "with". Raises NoSlowDisk. Its processes must have ended by the end."""

    def __init__(self, directory, bytes_s):
        one = (CGROUPS / "blkio").is_dir()
        self.group = CGROUPS / ("blkio" if one else "") / f"gatling-{os.getpid()}"
        try:
            disk = disk_of(directory)
            if not one:
                (CGROUPS / "cgroup.subtree_control").write_text("+io")
            self.group.mkdir()
            if one:
                (self.group / "blkio.throttle.read_bps_device").write_text(f"{disk} {bytes_s}")
            else:
                (self.group / "io.max").write_text(f"{disk} rbps={bytes_s}")
        except OSError as error:
            self.close()
            raise NoSlowDisk(str(error)) from error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        with contextlib.suppress(FileNotFoundError):
            self.group.rmdir()

    def add(self, processes):
        for pid in processes:
            (self.group / "cgroup.procs").write_text(str(pid))
