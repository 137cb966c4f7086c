"""Fresh Debian systems in directories, which are kept as tars, and commands that run in them. Takes root, and mmdebstrap."""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

KEPT = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "gatling-check", "roots")
KEPT_DAYS = 7
REGISTRY = "http://deb.debian.org"
SUITES = f"{REGISTRY}/debian {{0}}", f"{REGISTRY}/debian {{0}}-updates", f"{REGISTRY}/debian-security {{0}}-security"
# What a machine needs to reach the registries of packages from where it is.
REACHES = re.compile(r"(?i).*(proxy|cert|ca_bundle)")
# Its arguments: the root, a directory in it, directories to share, --, and what takes the place of this shell.
ENTER = """
root=$1 directory=$2
shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs none mnt
while [ "$1" != -- ]; do
	mkdir -p "./$1"
	mount --bind "$1" "./$1"
	shift
done
shift
pivot_root . mnt
cd "$directory"
umount -l /mnt
exec "$@"
"""


def reachable():
    with contextlib.suppress(OSError):
        with urllib.request.urlopen(f"{REGISTRY}/debian/dists/trixie/InRelease", timeout=20):
            return True
    return False


def kept(name, make):
    """Returns the tar of that name, which make(path) makes; anew when it is KEPT_DAYS old, unless the registry cannot be reached."""
    tar = KEPT / f"{name}.tar"
    if not tar.exists() or (time.time() - tar.stat().st_mtime > KEPT_DAYS * 86400 and reachable()):
        if not reachable():
            raise ConnectionError(f"{REGISTRY} cannot be reached")
        KEPT.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=KEPT) as new:
            make(Path(new, "root.tar"))
            os.rename(f"{new}/root.tar", tar)
    return tar


def unpack(tar, path):
    subprocess.run(["tar", "-C", path, "--exclude=./dev/*", "-xf", tar], check=True)
    Path(path, "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")  # as the installer writes it
    for source in ("etc/resolv.conf", "usr/local/share/ca-certificates"):
        subprocess.run(["cp", "-rT", f"/{source}", Path(path, source)], check=False)


def unpacked(tar, path):
    """Unpacks a tar, unless what is there is of the same one. Only one process may do so at a time."""
    stamp, made = Path(path, "unpacked"), str(tar.stat().st_mtime_ns)
    if stamp.exists() and stamp.read_text() == made:
        return
    shutil.rmtree(path, ignore_errors=True)
    Path(path).mkdir(parents=True)
    unpack(tar, path)
    Path(path).chmod(0o755)
    stamp.write_text(made)


def pack(path, tar):
    subprocess.run(["tar", "-C", path, "--exclude=./dev/*", "-cf", tar, "."], check=True)


def make_root(release, path):
    """Unpacks a Debian with make and git, and with the suites that its installer enables."""

    def bootstrap(tar):
        # the index of a mirror that is behind is "expired"; that of a release which is still tested, after a week
        lines = [f"deb [check-valid-until=no] {suite.format(release)} main" for suite in SUITES]
        subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", "--dpkgopt=force-unsafe-io", "--include=make,git", release, tar, *lines],
                       check=True)  # fmt: skip

    unpack(kept(release, bootstrap), path)


def add_backports(path, release="trixie"):
    Path(path, "etc/apt/sources.list.d/backports.list").write_text(f"deb {REGISTRY}/debian {release}-backports main\n")


def inside(path, directory, *shared, apart=False):
    """Returns a command that becomes the one after it, as root, in the directory of the root at path. shared: directories of
    this system that are there, too, at their own paths. apart: with processes of its own, which end with the first."""
    processes = ["--pid", "--fork", "--kill-child"] if apart else []
    return ["unshare", "--mount", *processes, "sh", "-euc", ENTER, "sh", path, directory, *shared, "--"]


def environment(**more):
    """Returns the environment of a shell in a root."""
    passed = {name: value for name, value in os.environ.items() if REACHES.match(name)}
    return passed | {"HOME": "/root", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM": "dumb", **more}
