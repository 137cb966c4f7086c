"""Makes a server small compared to its clients, on the same machine (Linux, root), so that they are
not the limit.

    with smaller.Share(0.25) as share, smaller.steered_loopback({1}):
        share.add(server.processes())

If something is not allowed, a line on stderr says so, and the measurement continues without it.
"""

import contextlib
import os
import sys
from pathlib import Path

PERIOD_US = 5000
LOOPBACK = Path("/sys/class/net/lo/queues/rx-0/rps_cpus")


def complain(what, error):
    print(f"{Path(sys.argv[0]).stem}: {what}: {error}", file=sys.stderr)


class Share:
    """A group of processes that share that many processors (cgroups(7), version 1 or 2)."""

    def __init__(self, processors):
        self.quota_us, self.group = round(processors * PERIOD_US), None

    def __enter__(self):
        unified = Path("/sys/fs/cgroup/cgroup.controllers").exists()
        parent = Path("/sys/fs/cgroup") / ("" if unified else "cpu")
        group = parent / f"gatling-{os.getpid()}"
        try:
            if unified:
                (parent / "cgroup.subtree_control").write_text("+cpu")
            group.mkdir()
            self.group = group
            if unified:
                (group / "cpu.max").write_text(f"{self.quota_us} {PERIOD_US}")
            else:
                (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (group / "cpu.cfs_quota_us").write_text(str(self.quota_us))
        except OSError as error:
            complain("the server gets whole cores, and the clients may be the limit", error)
            self.__exit__()
        return self

    def __exit__(self, *_):
        if self.group:
            with contextlib.suppress(OSError):
                for pid in (self.group / "cgroup.procs").read_text().split():
                    (self.group.parent / "cgroup.procs").write_text(pid)
                self.group.rmdir()
        self.group = None

    def add(self, processes):
        for pid in processes if self.group else ():
            try:
                (self.group / "cgroup.procs").write_text(str(pid))
            except OSError as error:
                complain(f"process {pid} is not limited", error)


@contextlib.contextmanager
def steered_loopback(cores):
    """Makes these cores receive what arrives over the loopback interface, as if it came from
    another machine. Otherwise each side pays, when it sends, for what the kernel does for the
    other."""
    before = None
    try:
        before = LOOPBACK.read_text()
        LOOPBACK.write_text(f"{sum(1 << core for core in cores):x}")
    except OSError as error:
        complain("each side also pays for what the other one receives", error)
    try:
        yield
    finally:
        if before is not None:
            with contextlib.suppress(OSError):
                LOOPBACK.write_text(before)
