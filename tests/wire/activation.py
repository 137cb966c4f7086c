"""Servers that get their sockets from a service manager, as sd_listen_fds(3) says."""

import contextlib
import os
import socket

from gatling import Server

LAUNCHER = 'LISTEN_PID=$$ exec "$0" "$@"'


@contextlib.contextmanager
def listener(family=socket.AF_INET, address=("127.0.0.1", 0)):
    with socket.socket(family) as s:
        s.bind(address)
        s.listen(100)
        yield s


def activated(build, root, *sockets, names="", environment=None, flags=("-j", "2"), launcher=(), **options):
    """Starts a server that gets the sockets as descriptors from 3 on. launcher: a command that runs it."""
    own = [s.fileno() for s in sockets]

    def order():
        high = [os.dup2(fd, 100 + i) for i, fd in enumerate(own)]
        for i, fd in enumerate(high):
            os.dup2(fd, 3 + i, inheritable=True)
        for fd in high:
            os.close(fd)

    variables = [f"LISTEN_FDS={len(own)}", f"LISTEN_FDNAMES={names}", *(environment or [])]
    launcher = (*launcher, "env", *variables, "sh", "-c", LAUNCHER)
    return Server(build, root, *flags, address=(), launcher=launcher, preexec_fn=order, pass_fds=range(3, 3 + len(own)), **options)
