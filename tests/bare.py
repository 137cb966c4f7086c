"""README's first commands, as it prints them, on a Debian that has nothing but make and git.

    python3 tests/bare.py bookworm trixie    the first until it serves, the others to their end ("make bare-check"); takes root
"""

import contextlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TOP / "tests/wire")]

from gatling import children  # noqa: E402
from root import environment, inside, make_root  # noqa: E402

RELEASES = ("bookworm", "trixie")


def commands():
    """Returns the first three lines of README that are to be typed: they serve, run the tests, and run all of them."""
    return re.findall("^    (.+)$", (TOP / "README").read_text(), re.MULTILINE)[:3]


def clone(path):
    """Clones this checkout, with what is not committed."""
    subprocess.run(["git", "clone", "-q", "--no-hardlinks", TOP, path], check=True)
    files = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=TOP, check=True, stdout=subprocess.PIPE)
    there = b"\0".join(name for name in files.stdout.split(b"\0") if name and os.path.lexists(os.path.join(TOP, os.fsdecode(name))))
    subprocess.run(["rsync", "-a", "--from0", "--files-from=-", f"{TOP}/", f"{path}/"], input=there, check=True)


class Bare:
    """A directory with such a Debian, and a checkout in it."""

    def __init__(self, release):
        self.made = tempfile.TemporaryDirectory(prefix=f"gatling-bare-{release}-")  # pylint: disable=consider-using-with
        self.path = Path(self.made.name)
        make_root(release, self.path)
        self.path.chmod(0o755)
        clone(self.path / "root/gatling")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.made.cleanup()

    @contextlib.contextmanager
    def running(self, command, **variables):
        """Runs the command in the checkout, as root; ends all that it has started."""
        entered = [*inside(self.path, "/root/gatling", apart=True), "sh", "-c", command]
        with subprocess.Popen(entered, env=environment(**variables), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as process:  # fmt: skip
            try:
                yield process
            finally:
                # The first process of the namespace: it is gone when all others are.
                for first in children(process.pid) if process.poll() is None else []:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(first, 9)
                process.stdout.read()

    def serve(self, command):
        """Runs the command until it serves; returns what it has said, and the page."""
        said = []
        with self.running(command, PORT="0") as process:
            while not said or "gatling: serving" not in said[-1]:
                said.append(process.stdout.readline())
                assert said[-1], "".join(said)
            port = re.search(r"http://\S+?:(\d+)/", said[-1])[1]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
                return "".join(said), answer.read()


def site(command, path):
    """Writes the page that the command serves."""
    root = path / re.search("ROOT=/([^ ]+)", command)[1]
    root.mkdir(parents=True, exist_ok=True)  # it is there when a test is run again
    (root / "index.html").write_text("it works")


def main():
    run, *checks = commands()
    failed = 0
    for release in sys.argv[1:] or RELEASES:
        with Bare(release) as bare:
            site(run, bare.path)
            started = time.monotonic()
            said, page = bare.serve(run)
            assert page == b"it works", said
            print(f"{release}: {shlex.quote(run)} serves after {time.monotonic() - started:.0f} s", flush=True)
            for check in checks:
                started = time.monotonic()
                with bare.running(check) as process:
                    for line in process.stdout:
                        print(f"{release}: {line}", end="", flush=True)
                    status = process.wait()
                print(f"{release}: {shlex.quote(check)}: status {status} after {time.monotonic() - started:.0f} s", flush=True)
                failed |= status
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
