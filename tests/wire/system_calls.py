"""Which system calls a server makes."""

import collections
import re
import signal
import subprocess

from gatling import eventually


def calls_of(server, path, function, *flags):
    """Counts the system calls of a server while a function runs. path: the file they are written
    to."""
    command = ["strace", "-f", "-qq", "-p", str(server.pid), "-o", str(path), *flags]
    with subprocess.Popen(command) as strace:
        try:
            eventually(lambda: all(tracer(server, thread) == strace.pid for thread in server.thread_ids()))
            function(server)
        finally:
            strace.send_signal(signal.SIGINT)
    return collections.Counter(re.findall(r"^\d+ +(\w+)\(", path.read_text(), re.MULTILINE))


def tracer(server, thread):
    with open(f"/proc/{server.pid}/task/{thread}/status", encoding="ascii") as status:
        return int(re.search(r"TracerPid:\s*(\d+)", status.read()).group(1))
