"""Makes every call of a server, and every allocation, fail in turn, and tests whether the server
survives:

    python3 tests/faults/faults.py build/check/epoll [--seconds N] [--only CALL,...]

One server lives through all of it; the preloaded faults.c reads its orders from a file. After each
fault, the server must answer a mix of requests (mix.py) as if nothing had happened."""

import argparse
import collections
import contextlib
import ctypes
import errno
import functools
import itertools
import mmap
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(TOP / "tests/wire"), str(TOP / "tests/faults")]

# pylint: disable=wrong-import-position
from gatling import Root, Server, certificate, eventually  # noqa: E402
from mix import ERROR, HANGING, RIGHT, WRONG, Mix, Place, password_hash, tell_whom  # noqa: E402
from mutations import BALANCER  # noqa: E402
from upstream import Upstream  # noqa: E402

PLACES = 40
CACHE = "8M"  # full soon: each change of _headers makes new entries
TIMEOUT_S = 2  # of the server; a client is given up after PATIENCE_S of silence
PATIENCE_S = 8
ALWAYS = 1 << 40
ALWAYS_PATIENCE_S = 0.3  # while a call always fails, no answer is expected
CALLS_MAX, NAME = 64, 16
FINDINGS_MAX = 500
THREADS = 4  # that a server with one worker may start later

ALLOCATORS = ("malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc")
# Errors that the kernel may return. accept4(2) is called again at once after EINTR and
# ECONNABORTED.
ERRORS = {
    **{name: ("ENOMEM",) for name in ALLOCATORS},
    "accept4": ("EMFILE", "ENFILE", "ENOMEM", "ENOBUFS", "ECONNABORTED", "EINTR", "EPERM", "EPROTO", "EAGAIN"),
    "dup": ("EMFILE", "ENOMEM"),
    "close": ("EIO", "EINTR", "ENOSPC"),
    "connect": ("ECONNREFUSED", "EADDRNOTAVAIL", "ENETUNREACH", "ENOMEM"),
    "epoll_ctl": ("ENOMEM", "ENOSPC"),
    "epoll_wait": ("EINTR",),
    "epoll_pwait2": ("EINTR", "ENOSYS"),
    "fcntl": ("EINVAL", "EAGAIN"),
    "fdopendir": ("ENOMEM",),
    "fstat": ("EIO", "ENOMEM"),
    "fstatat": ("EIO", "ENOMEM"),
    "getsockname": ("ENOBUFS",),
    "getsockopt": ("ENOBUFS",),
    "ioctl": ("EINVAL", "ENOTTY"),
    "open": ("EMFILE", "ENFILE", "ENOMEM", "EIO"),
    "openat": ("EMFILE", "ENFILE", "ENOMEM", "EIO", "EINTR"),
    "openat2": ("EMFILE", "ENFILE", "ENOMEM", "EIO", "EAGAIN"),
    "pipe2": ("EMFILE", "ENFILE"),
    "poll": ("ENOMEM", "EINTR"),
    "posix_fadvise": ("EINVAL",),
    "pread": ("EIO", "EINTR", "ENOMEM"),
    "preadv2": ("EIO", "EINTR", "EAGAIN", "EOPNOTSUPP"),
    "read": ("EIO", "EINTR", "ECONNRESET", "EAGAIN"),
    "readdir": ("EIO",),
    "readlinkat": ("EIO", "ENOMEM"),
    "recv": ("ECONNRESET", "ENOMEM", "EINTR", "ETIMEDOUT", "EAGAIN"),
    "recvmmsg": ("ECONNREFUSED", "ENOMEM", "EINTR", "EAGAIN"),
    "recvmsg": ("ECONNRESET", "ENOMEM", "EAGAIN"),
    "send": ("EPIPE", "ECONNRESET", "ENOBUFS", "ENOMEM", "EINTR", "EAGAIN"),
    "sendfile": ("EIO", "EPIPE", "ENOMEM", "EINVAL", "EAGAIN", "EINTR"),
    "sendmsg": ("EPIPE", "ECONNRESET", "ENOBUFS", "ENOMEM", "EINTR", "EAGAIN"),
    "setsockopt": ("EINVAL", "ENOMEM", "ENOPROTOOPT"),
    "shutdown": ("ENOTCONN",),
    "socket": ("EMFILE", "ENOMEM"),
    "splice": ("EINVAL", "ENOMEM", "ECONNRESET", "EPIPE", "EAGAIN"),
    "write": ("ENOSPC", "EIO", "EINTR", "EPIPE", "EAGAIN"),
    "writev": ("ENOSPC", "EIO", "EPIPE", "EINTR", "EAGAIN"),
}
SHORTENED = ("read", "write", "writev", "pread", "preadv2", "recv", "send", "sendmsg", "sendfile", "splice")
# Every length up to 300, then some around the sizes that are read, framed and sealed at once.
LENGTHS = [*range(1, 301), *(512 << n | 1 for n in range(8)), *(512 << n for n in range(8)), 1000, 16383, 16408, 65043, 65044, 65131, 65132]


class Shared(ctypes.Structure):
    """The same as in faults.c."""

    _fields_ = [("name", (ctypes.c_char * NAME) * CALLS_MAX), ("called", ctypes.c_int64 * CALLS_MAX)] + [
        (name, ctypes.c_int64) for name in ("armed", "error", "length", "first", "times", "hits", "unused")
    ]


class Fault:
    """A fault: the first call that fails, counted from 1, and how many fail. length: that of a
    short transfer; otherwise error is used."""

    def __init__(self, call, error, first, times, length=0):
        self.call, self.error, self.first, self.times, self.length = call, error, first, times, length

    def __repr__(self):
        what = self.error or f"at most {self.length} bytes"
        how = "always" if self.times == ALWAYS else f"{self.times} from call {self.first} on"
        return f"{self.call}: {what}, {how}"


class Faulty:
    """A server whose calls can be made to fail. serve(root, *flags, variables=...) starts one with these variables of the environment,
    by default the one of the build; mix(server) makes the requests."""

    def __init__(self, build, serve=None, mix=Mix):
        with contextlib.ExitStack() as undone:
            self._begin(build, serve or functools.partial(serve_here, build), mix, undone)
            self.undone = undone.pop_all()

    def _begin(self, build, serve, mix, undone):
        self.directory = Path(tempfile.mkdtemp(prefix="gatling-faults-"))
        undone.callback(shutil.rmtree, self.directory)
        self.directory.chmod(0o755)
        library, orders, self.log = (self.directory / name for name in ("faults.so", "orders", "log"))
        shutil.copy(build / "tests/faults.so", library)
        orders.write_bytes(bytes(ctypes.sizeof(Shared)))
        self.log.touch()
        for path in (orders, self.log):
            path.chmod(0o666)
        with open(orders, "r+b") as file:
            self.shared = Shared.from_buffer(mmap.mmap(file.fileno(), 0))
        self.root = Root({"index.html": b"no place", "small.bin": b"no place"})
        undone.callback(self.root.remove)
        hashed = password_hash()
        self.upstream = undone.enter_context(Upstream(tell_whom))
        self.places = [Place(self.root, number, hashed, self.upstream.address) for number in range(PLACES)]
        cert, key = certificate()
        preload = {"LD_PRELOAD": str(library), "FAULTS": str(orders),
                   "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}  # fmt: skip
        self.server = serve(self.root, "-j", "1", "-T", str(TIMEOUT_S), "--cert", cert, "--key", key, "--tls-port", "0", "--log", "combined",
                            "--log-file", self.log, "--upstream", self.upstream.address, "--limit", f"cache={CACHE}", "--proxy-protocol", BALANCER,
                            variables=preload)  # fmt: skip
        self.mix = mix(self.server)
        names = (bytes(name).rstrip(b"\0").decode() for name in self.shared.name)
        self.numbers = {name: number for number, name in enumerate(names) if name}

    def arm(self, fault):
        s, number = self.shared, self.numbers[fault.call]
        s.armed = s.hits = 0
        self.forget_calls()
        s.error = getattr(errno, fault.error) if fault.error else 0
        s.length, s.first, s.times = fault.length, fault.first, fault.times
        s.armed = number + 1

    def disarm(self):
        self.shared.armed = 0
        return self.shared.hits

    def unused(self):
        """Returns the bytes that malloc(3) keeps in the server, and that nothing is in."""
        self.shared.unused = -1
        with self.server.connect():
            eventually(lambda: self.shared.unused != -1)
        return self.shared.unused

    def forget_calls(self):
        ctypes.memset(ctypes.addressof(self.shared) + Shared.called.offset, 0, Shared.called.size)

    def calls(self):
        return {name: self.shared.called[number] for name, number in self.numbers.items()}

    def end(self):
        with self.undone:
            if self.server.process.poll() is None:
                self.server.stop()  # a sanitizer reports its findings now, too


def serve_here(build, root, *flags, variables):
    with environment(variables):
        return Server(build, root, *flags)


@contextlib.contextmanager
def environment(values):
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def plan(calls):
    """Returns all faults for these numbers of calls of each function, in a mixed order that is
    always the same: those that last come early, each followed by another one."""
    lasting = [Fault(call, error, 1, ALWAYS) for call, errors in ERRORS.items() if calls[call] for error in errors]
    single = [Fault(call, error, n, times) for call, errors in ERRORS.items() for error in errors
              for n in range(1, calls[call] + 1) for times in (1, 2)]  # fmt: skip
    short = [Fault(call, None, 1, ALWAYS, length) for call in SHORTENED if calls[call] for length in LENGTHS]
    short += [Fault(call, None, n, 1, length) for call in SHORTENED for n in range(1, calls[call] + 1)
              for length in (1, 7, 100)]  # fmt: skip
    rest = single + short
    random.Random(1).shuffle(rest)
    return [fault for pair in zip(lasting, rest) for fault in pair] + rest[len(lasting) :]


def plan_for_threads(whole):
    """A server starts a thread for its first task, so each of these faults needs its own server."""
    if not whole:
        return [Fault("pthread_create", "EAGAIN", 1, ALWAYS)]
    return [Fault("pthread_create", "EAGAIN", n, times) for n in range(1, THREADS + 1) for times in (1, ALWAYS)]


class Survey:
    """tried, hit: numbers of faults; met: requests under a fault, by verdict."""

    def __init__(self, say):
        self.say = say
        self.faulty = self.place = None
        self.tried, self.hit, self.met, self.findings = collections.Counter(), collections.Counter(), collections.Counter(), []
        self.statuses = collections.Counter()

    def start(self, faulty):
        self.faulty, self.place = faulty, itertools.cycle(faulty.places)

    def end(self):
        try:
            self.faulty.end()
        except AssertionError as error:
            self.found("at the end", error)

    def found(self, fault, what):
        self.findings.append((fault, what))
        self.say(f"{fault}: {what}")

    def alive(self, fault):
        if self.faulty.server.process.poll() is None:
            return True
        self.faulty.server.kill()  # so that all its output is read
        self.found(fault, "the server has ended:\n" + "\n".join(self.faulty.server.errors[-60:]))
        return False

    def ask_all(self):
        """Makes the requests of each place. Returns the maximum numbers of calls for a mix."""
        most = collections.Counter()
        for place in self.faulty.places:
            place.change()
            self.faulty.forget_calls()
            for request, verdict, answer in self.faulty.mix.ask(place, PATIENCE_S):
                assert verdict == RIGHT, (request, verdict, answer)
            most |= collections.Counter(self.faulty.calls())
        return most

    def judge(self, fault, outcomes):
        lasts = fault.times == ALWAYS and fault.error and fault.call != "pthread_create"
        for request, verdict, answer in outcomes:
            self.met[verdict] += 1
            if verdict == ERROR:
                self.statuses[answer.status] += 1
            if verdict == WRONG or (verdict == HANGING and not lasts):
                self.found(fault, f"{verdict}: {request}: {answer}")

    def recovers(self, fault):
        """Tests whether a place that was not used meanwhile is served as before."""
        outcomes = self.faulty.mix.ask(next(self.place), PATIENCE_S)
        if self.faulty.server.process.poll() is not None:
            return
        bad = [outcome for outcome in outcomes if outcome[1] != RIGHT]
        for request, verdict, answer in bad[:3]:
            self.found(fault, f"afterwards {verdict}: {request}: {answer}")

    def try_fault(self, fault):
        place = next(self.place)
        place.change()
        patience = PATIENCE_S if fault.times != ALWAYS or not fault.error else ALWAYS_PATIENCE_S
        self.faulty.arm(fault)
        if fault.call == "pthread_create":
            patience = PATIENCE_S  # nothing waits for a missing thread
        outcomes = self.faulty.mix.ask(place, patience)
        hits = self.faulty.disarm()
        self.tried[fault.call] += 1
        self.hit[fault.call] += hits > 0
        self.judge(fault, outcomes)
        if not self.alive(fault):
            return False
        if hits:
            self.recovers(fault)
        return self.alive(fault)

    def compare(self, before):
        """Looks for descriptors that are open although all connections are closed. Memory is left
        to the sanitizer."""
        with contextlib.suppress(AssertionError):
            eventually(lambda: self.faulty.server.descriptors() <= before, 5)
        now = self.faulty.server.descriptors()
        if now > before:
            self.found("at the end", f"{now} descriptors are open, before there were {before}")

    def run(self, faults, until):
        """Tries faults one after the other until the time is over or the server ends. Returns the
        remaining ones."""
        begun = last = time.monotonic()
        while faults and time.monotonic() < until:
            fault, faults = faults[0], faults[1:]
            if not self.try_fault(fault):
                break
            if time.monotonic() - last > 60:
                last = time.monotonic()
                self.say(f"{self.tried.total()} faults in {last - begun:.0f} s, {len(faults)} left, "
                         f"{len(self.findings)} findings")  # fmt: skip
        return faults


def survey(make, seconds=None, only=(), say=print, tries=lambda fault: True):
    """Tries all faults for which tries(fault) is true on servers of make(), or as many as there is time for. Returns the survey."""
    faults, until = None, float("inf")
    s = Survey(say)
    while faults is None or (faults and len(s.findings) < FINDINGS_MAX and time.monotonic() < until):
        s.start(make())
        try:
            calls = s.ask_all()
            before = s.faulty.server.descriptors()
            if faults is None:
                say(f"calls of a mix: {dict(calls)}")
                faults = [fault for fault in plan(calls) if (not only or fault.call in only) and tries(fault)]
                until = time.monotonic() + (seconds or until)
            faults = s.run(faults, until)
            if s.faulty.server.process.poll() is None:
                s.ask_all()
                s.compare(before)
        finally:
            s.end()
    for fault in plan_for_threads(seconds is None) if not only or "pthread_create" in only else ():
        s.start(make())
        try:
            s.try_fault(fault)
        finally:
            s.end()
    return s


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--seconds", type=float, help="stop after so long (default: when everything has failed once)")
    parser.add_argument("--only", default="", help="the calls that fail: NAME,...; allocations or calls: all of those")
    options = parser.parse_args()
    begun = time.monotonic()
    calls = [call for call in ERRORS if call not in ALLOCATORS]
    groups = {"allocations": ALLOCATORS, "calls": [*calls, "pthread_create"], "": ()}
    only = groups.get(options.only, options.only.split(","))
    s = survey(functools.partial(Faulty, options.build.resolve()), options.seconds, only, say=lambda text: print(text, flush=True))
    for call in s.tried:
        print(f"{call}: {s.tried[call]} faults, {s.hit[call]} hit")
    print(f"{s.tried.total()} faults, of which {s.hit.total()} hit, in {time.monotonic() - begun:.0f} s; requests meanwhile: "
          f"{dict(s.met)}; errors: {dict(s.statuses)}; findings: {len(s.findings)}")  # fmt: skip
    sys.exit(bool(s.findings))


if __name__ == "__main__":
    main()
