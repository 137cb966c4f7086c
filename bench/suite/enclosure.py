"""Runs what guests.boot() runs, but without a guest: in namespaces of the running kernel, and in
real time.

Linux, as root."""

import shutil
import subprocess

import processes
from guests import GuestError, Missing, fill_root

DEVICES = {"null": 3, "zero": 5, "urandom": 9}
TAIL = 400  # bytes of the command's output

ENTER = """
mount --bind "$0" "$0"
exec unshare --pid --fork --kill-child --root="$0" --mount-proc /bin/sh -c "$1"
"""
EACH_LINE = """
cd /
PATH=/bin
while read -r name command; do
	$command >/out/$name </dev/null 2>&1
	echo $? >/out/$name.status
done </plan
"""


def delays_packets(tc):
    """Returns whether this kernel has netem, and this process may use it."""
    command = ["unshare", "--net", tc, "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
    return shutil.which(command[0]) and subprocess.run(command, capture_output=True, check=False).returncode == 0


def run_enclosed(files, plan, directory, limit_s):
    """Runs the plan with files as its root, and ends all processes that it has started. Returns
    {name: (status, text)}. Raises GuestError and Missing."""
    root = directory / "root"
    root.mkdir()
    fill_root(root, files, plan)
    (root / "out").mkdir()
    for name, minor in DEVICES.items():
        processes.run(["mknod", "-m", "666", root / "dev" / name, "c", "1", str(minor)])
    command = ["unshare", "--mount", "--net", "/bin/sh", "-e", "-c", ENTER, str(root), EACH_LINE]
    try:
        done = processes.run(command, limit_s, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except FileNotFoundError as error:
        raise Missing(f"{command[0]} is not there") from error
    except subprocess.TimeoutExpired as expired:
        raise GuestError(f"still running after {limit_s} s", b"") from expired
    if done.returncode:
        raise GuestError(f"ended early: {done.stdout[-TAIL:]}", b"")
    return {path.stem: (int(path.read_text()), path.with_suffix("").read_text()) for path in (root / "out").glob("*.status")}
