"""A sandbox or a container may refuse any system call. A server that cannot do without it says so, and does not start; any
other serves all the same, or says what it cannot do. It never hangs, and ends when it is told to."""

import os
import sys
from pathlib import Path

import pytest

from gatling import Connection, Root, Server, certificate, eventually, trusting

pytestmark = pytest.mark.clear
TEXT, LARGE = b"a line of text\n" * 300, os.urandom(3_000_000)
FILES = {"index.html": b"hello", "text.txt": TEXT, "large.bin": LARGE, "folder/a.txt": b"a"}
ANSWERS = {"/": (200, b"hello"), "/text.txt": (200, TEXT), "/large.bin": (200, LARGE), "/folder/": (200, None), "/none": (404, None)}

# What a server makes, as strace(1) shows it, but for what any program makes before it begins, and epoll_wait, with which the
# worker ends; and setitimer, as an example of one that it does not make.
CALLS = """accept4 access bind capget capset chdir clone clone3 close_range epoll_create1 epoll_ctl fadvise64 fchdir fcntl
fstatfs futex getcwd getdents64 getegid geteuid getpid getppid getrandom getsockname getsockopt getuid ioctl kill
landlock_add_rule landlock_create_ruleset landlock_restrict_self listen lseek madvise openat2 pipe2 poll prctl preadv2 prlimit64
pselect6 readlink readlinkat recvfrom recvmsg rseq rt_sigaction rt_sigprocmask rt_sigtimedwait sched_getaffinity seccomp sendfile
sendmsg sendto set_robust_list setgroups setitimer setpgid setpriority setsockopt setuid shutdown socket socketpair splice statx
sysinfo tgkill uname unshare wait4 writev""".split()
ASSUMED = {"getpid", "setpgid"}  # nothing refuses them; the C library signals threads, and tests find a server, by what they say


@pytest.fixture(scope="module")
def root():
    root = Root(FILES)
    yield root
    root.remove()


def is_right(port, tls, path):
    status, content = ANSWERS[path]
    try:
        with Connection(("127.0.0.1", port), tls=tls) as c:
            answer = c.get(path)
    except (AssertionError, OSError):
        return False
    return answer.status == status and content in (None, answer.body)


def is_compressed(port):
    with Connection(("127.0.0.1", port)) as c:
        return c.get("/text.txt", "Accept-Encoding: gzip")["Content-Encoding"] == "gzip"


@pytest.mark.parametrize("error", ["EPERM", "ENOSYS"])
@pytest.mark.parametrize("call", sorted({*CALLS} - ASSUMED))
def test_without_a_call_a_server_works_or_says_why_not(plain, root, call, error):
    launcher = (sys.executable, str(Path(__file__).with_name("refuse.py")), call, error)
    cert, key = certificate()
    try:
        server = Server(plain, root, "-j", "1", "--cert", cert, "--key", key, "--tls-port", "0", launcher=launcher)
    except AssertionError as failed:  # its messages
        assert "gatling: cannot " in str(failed) or call == "futex", failed
        return
    with server:
        ports = ((server.plain_port, None), (server.tls_port, trusting()))
        wrong = [(path, port) for path in ANSWERS for port, tls in ports for _ in range(2) if not is_right(port, tls, path)]
        assert not wrong or server.errors, wrong
        if not wrong:
            eventually(lambda: is_compressed(server.plain_port))


def tasks_of(uid):
    """Returns how many threads the processes of a user have."""
    found = (path for path in Path("/proc").glob("[0-9]*") if path.stat().st_uid == uid)
    return sum(1 for path in found for _ in (path / "task").iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="takes a server of another user")
def test_the_owner_is_told_that_no_thread_can_be_started(plain, root):
    alone = {"user": 64_321, "group": 64_321, "extra_groups": []}
    with Server(plain, root, "-j", "1", **alone):
        tasks = tasks_of(alone["user"])
    with Server(plain, root, "-j", "1", launcher=("prlimit", f"--nproc={tasks}"), **alone) as server:
        assert server.get("/folder/").status == 503
        said = "gatling: cannot start a thread: Resource temporarily unavailable: what takes one is answered with 503"
        eventually(lambda: any(line.startswith(said) for line in server.errors))
