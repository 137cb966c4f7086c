"""A build with HTTP/3 for a system that need not have its libraries: it is made, and runs, in a Debian 13 with backports."""

import fcntl
import functools
import importlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gatling import Server, certificate
from root import KEPT, add_backports, environment, inside, kept, make_root, pack, unpacked

TOP = Path(__file__).resolve().parent.parent.parent
BUILD_TIMEOUT_S = 1800
DEPS = ["make", "-s", "deps", "FOR=http3 check-http3 fuzz"]
LEAVE_ROOT = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")


def make_debian(tar):
    """Makes a Debian 13 with what a build with HTTP/3 and its unit tests take, and a curl with HTTP/3."""
    with tempfile.TemporaryDirectory(prefix="gatling-http3-") as path:
        make_root("trixie", path)
        add_backports(path)
        apt = ["apt-get", "-q", "install", "-y", "--no-install-recommends", "curl/trixie-backports"]
        for command in (DEPS, apt, ["apt-get", "clean"]):
            run([*inside(path, TOP, TOP), *command])
        pack(path, tar)


def run(command, **variables):
    """Runs a command, which is to succeed, and shows what it says otherwise."""
    done = subprocess.run(command, env=environment(DEBIAN_FRONTEND="noninteractive", **variables), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, timeout=BUILD_TIMEOUT_S)  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


class Http3:
    """A build with HTTP/3, and the Debian in which it runs. Its processes, ports and temporary files are those of this system."""

    def __init__(self, build):
        self.build, self.root = build, build / "debian"
        self.variables = {name: value for name, value in os.environ.items() if name in ("CI", "CCACHE", "CCACHE_DIR", "CCACHE_MAXSIZE")}
        self.corpus = KEPT.parent / "fuzz"  # what fuzzers have found, for the next time
        self.corpus.mkdir(parents=True, exist_ok=True)
        shared = {str(TOP), str(self.corpus), tempfile.gettempdir(), *filter(None, [os.environ.get("CCACHE_DIR")])}
        self.inside = inside(self.root, TOP, *sorted(shared))

    def make(self):
        """Builds it; several processes of pytest may ask for it at the same time."""
        self.build.mkdir(parents=True, exist_ok=True)
        with open(self.build / "lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            unpacked(kept("trixie-http3", make_debian), self.root)
            self.run(*DEPS)
            self.run("make", "-s", f"-j{os.cpu_count()}", f"BUILD={self.build}", "check-http3")

    def run(self, *command):
        """Runs a command in the checkout there, as root. Returns what it says."""
        return run([*self.inside, *command], **self.variables)

    def launcher(self, as_root=False):
        """Returns a command that runs another one there."""
        return [*self.inside, *(() if as_root else LEAVE_ROOT)]

    def server(self, root, *flags, as_root=False, variables=None, **options):
        """Returns the server; see Server for the arguments. variables: of its environment alone."""
        launcher = [*self.launcher(as_root), "env", *(f"{name}={value}" for name, value in (variables or {}).items())]
        return Server(self.build, root, *flags, as_root=True, launcher=launcher, **options)

    def serve(self, root, *flags, **options):
        """The same with a certificate, as HTTP/3 takes one."""
        cert, key = certificate()
        return self.server(root, "--tls-port", "0", "--cert", cert, "--key", key, *flags, **options)


@functools.cache
def made(build):
    """Returns the build with HTTP/3 in that directory. Skips the test if there can be none."""
    if os.geteuid() != 0:
        pytest.skip("takes root, to mount a Debian 13")
    http3 = Http3(build)
    try:
        http3.make()
    except ConnectionError as error:
        pytest.skip(f"no Debian 13 is kept, and none can be made: {error}")
    return http3


@functools.cache
def imported(venv, name):
    """Returns a module of these tests that takes packages of PyPI, which are in venv."""
    found = [str(path) for path in venv.glob("lib/python3*/site-packages")]
    sys.path[:0] = found
    try:
        return importlib.import_module(name)
    finally:
        for path in found:
            sys.path.remove(path)
