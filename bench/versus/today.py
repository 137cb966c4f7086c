"""Runs a command in a Debian with today's servers and their OpenSSL, whatever this system has.

    today.py COMMAND...

It is of RELEASE, with what "make deps FOR='versus delay http3 revisits'" installs, and in ROOT. The command
runs in this checkout, as root; its processes, network and temporary files are those of this system.
The kernels that "make delay" boots are those of KERNELS.

"make versus" and its like run in it, so that they compare with what a server of today can do.
"""

import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.append(str(TOP / "tests"))

from root import REGISTRY, environment, inside, kept, make_root, pack, unpacked

RELEASE, KERNELS = "forky", "trixie"
DEPS = ["make", "-s", "deps", "FOR=versus delay http3 revisits"]
KERNELS_LIST = "etc/apt/sources.list.d/kernels.list"
ROOT = TOP / "build" / "today" / "debian"


def run(path, *words):
    command = [*inside(path, TOP, TOP), *words]
    subprocess.run(command, env=environment(DEBIAN_FRONTEND="noninteractive"), stdin=subprocess.DEVNULL, check=True)


def make(tar):
    with tempfile.TemporaryDirectory(prefix="gatling-today-") as path:
        make_root(RELEASE, path)
        run(path, *DEPS)
        run(path, "apt-get", "clean")
        # not before: packages are to be those of the release
        Path(path, KERNELS_LIST).write_text(f"deb [check-valid-until=no] {REGISTRY}/debian {KERNELS} main\n")
        run(path, "apt-get", "-q", "update")
        pack(path, tar)


def main():
    if os.geteuid() != 0:
        sys.exit("today: takes root; with HERE=1 make takes the servers of this system")
    ROOT.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(ROOT.parent / "lock", os.O_CREAT | os.O_RDWR)  # until the command ends: one measures at a time
    os.set_inheritable(lock, True)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        unpacked(kept(f"{RELEASE}-today", make), ROOT)
        kernels = Path(ROOT, KERNELS_LIST)
        kernels.rename(f"{kernels}.off")
        try:
            run(ROOT, *DEPS)  # they may be others than when it was made
        finally:
            Path(f"{kernels}.off").rename(kernels)
    except (ConnectionError, FileNotFoundError, subprocess.CalledProcessError) as error:
        sys.exit(f"today: no Debian {RELEASE} can be made: {error}; with HERE=1 make takes the servers of this system")
    command = [*inside(ROOT, TOP, TOP, tempfile.gettempdir()), *sys.argv[1:]]
    os.execvpe(command[0], list(map(str, command)), environment())


if __name__ == "__main__":
    main()
