"""Counts what clients lose while a server is restarted again and again.

    restart.py BUILD [--restarts N] [--delay MS] [--only WAY,...]

Clients open 500 connections a second for one request each, and keep 200 open, on which they make
500 requests a second. A request is lost if its connection is refused or reset, or ends before the
whole answer has come. If the server closes a connection without a request under way, nothing is
lost. The ways to restart are:

take-over    gatling --take-over, beside the one that runs; with 1, 2, 3 and 4 workers in turn
activation   the sockets belong to another process (LISTEN_FDS), here this one: SIGTERM, then a new gatling, with
             --limit drain-delay=1, which is longer than clients pause
stop         SIGTERM, then a new gatling, which binds the port again
reload       nginx -s reload
upgrade      nginx: USR2 to the master, and QUIT when the new one serves

With a delay (as root), the clients are in a network namespace at that round-trip time.
"""

import argparse
import asyncio
import collections
import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import distance
import processes
import servers

BODY = b"x" * 1024
NEW_A_SECOND, KEPT, PAUSE_S = 500, 200, (0.05, 0.75)
REQUEST_S, END_S, START_S = 20, 30, 10
WORKERS = 2
WAYS = ("take-over", "activation", "stop", "reload", "upgrade")


# --- clients, in their own process ---


async def ask(reader, writer):
    """Makes a request. Returns whether the server keeps the connection open."""
    writer.write(b"GET /1k HTTP/1.1\r\nHost: a\r\n\r\n")
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 ") or await reader.readexactly(len(BODY)) != BODY:
        raise ValueError(head.split(b"\r\n", 1)[0].decode("latin-1"))
    return b"connection: close" not in head.lower()


class Clients:
    def __init__(self, host, port):
        self.address = host, port
        self.counts = {"new": collections.Counter(), "kept": collections.Counter()}
        self.seconds, self.stopping = [], False

    @contextlib.contextmanager
    def counted(self, kind):
        """Counts how a request ends."""
        try:
            yield
            self.counts[kind]["answered"] += 1
        except asyncio.IncompleteReadError as error:
            self.counts[kind]["short" if error.partial else "closed"] += 1
            raise
        except (OSError, ValueError, asyncio.TimeoutError) as error:
            self.counts[kind][type(error).__name__] += 1
            raise

    async def begin(self):
        begun = time.monotonic()
        with contextlib.suppress(OSError, ValueError, asyncio.TimeoutError, asyncio.IncompleteReadError), self.counted("new"):
            reader, writer = await asyncio.wait_for(asyncio.open_connection(*self.address), REQUEST_S)
            try:
                await asyncio.wait_for(ask(reader, writer), REQUEST_S)
            finally:
                writer.close()
            self.seconds.append(time.monotonic() - begun)

    async def keep(self):
        while not self.stopping:
            with contextlib.suppress(OSError, ValueError, asyncio.TimeoutError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.wait_for(asyncio.open_connection(*self.address), REQUEST_S)
                kept = True
                while kept and not self.stopping and not reader.at_eof():
                    with self.counted("kept"):
                        kept = await asyncio.wait_for(ask(reader, writer), REQUEST_S)
                    await asyncio.sleep(random.uniform(*PAUSE_S))
                writer.close()

    async def run(self):
        kept = [asyncio.create_task(self.keep()) for _ in range(KEPT)]
        begun, new = time.monotonic(), set()
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(sys.stdin, stop.set)
        print("ready", flush=True)
        for number in itertools.count():
            if stop.is_set():
                break
            task = asyncio.create_task(self.begin())
            new.add(task)
            task.add_done_callback(new.discard)
            await asyncio.sleep(max(0, begun + number / NEW_A_SECOND - time.monotonic()))
        self.stopping = True
        await asyncio.gather(*new, *kept)
        ranked = sorted(self.seconds)
        print(json.dumps({**self.counts, "p99 ms": 1e3 * ranked[len(ranked) * 99 // 100], "max ms": 1e3 * ranked[-1]}))


@contextlib.contextmanager
def clients(host, port, away, found):
    """Runs clients beside the block, and adds their results to the dictionary found."""
    command = [*(("ip", "netns", "exec", distance.NAME) if away else ()), sys.executable, __file__, "--clients", host, port]
    with processes.Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        yield
        process.stdin.write("stop\n")
        process.stdin.flush()
        found.update(json.loads(process.stdout.readline()))


# --- servers ---


class Gatling:
    """A gatling process with the command, which serves when the object has been made."""

    def __init__(self, command, **options):
        command = [*command, "--limit", "drain-delay=1"]
        self.process = processes.Process(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options)
        said = []
        for line in self.process.stderr:
            said.append(line)
            if "gatling: serving" in line:
                return
        sys.exit(f"restart: gatling does not start: {''.join(said)}")

    def end(self, number=None):
        if number:
            self.process.send_signal(number)
        self.process.wait(END_S)
        self.process.stop()
        self.process.stderr.close()


@contextlib.contextmanager
def taken_over(running, command_of):
    """Yields a function that restarts the server once; command_of(workers) is its command."""
    path, workers = running.directory / "socket", itertools.cycle((2, 1, 4, 3))
    current = Gatling([*command_of(WORKERS), "--take-over", path])

    def restart():
        nonlocal current
        new = Gatling([*command_of(next(workers)), "--take-over", path])
        current.end()
        current = new

    yield restart
    current.end(signal.SIGINT)


def command(running, port, workers=WORKERS):
    return [running.build / "gatling", "-c", running.root, "-p", port, "-n", "-j", workers]


def take_over(running, port):
    return taken_over(running, lambda workers: command(running, port, workers))


@contextlib.contextmanager
def activation(running, port):
    with contextlib.ExitStack() as stack:
        numbers = []
        for _ in range(WORKERS):
            s = stack.enter_context(socket.socket())
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            s.bind(("0.0.0.0", port))
            s.listen(4096)
            numbers.append(s.fileno())
        redirections = " ".join(f"{3 + i}<&{fd}" for i, fd in enumerate(numbers))
        prefix = ["bash", "-c", f'LISTEN_PID=$$ LISTEN_FDS={WORKERS} exec "$0" "$@" {redirections}']
        current = Gatling([*prefix, *command(running, port)], pass_fds=numbers)

        def restart():
            nonlocal current
            current.end(signal.SIGTERM)
            current = Gatling([*prefix, *command(running, port)], pass_fds=numbers)

        yield restart
        current.end(signal.SIGINT)


@contextlib.contextmanager
def stop(running, port):
    current = Gatling(command(running, port))

    def restart():
        nonlocal current
        current.end(signal.SIGTERM)
        current = Gatling(command(running, port))

    yield restart
    current.end(signal.SIGINT)


@contextlib.contextmanager
def nginx(running, port, restart):
    path, pid = running.directory / "nginx.conf", running.directory / f"nginx-{port}.pid"
    text = servers.configuration("nginx", port, running.root, running.directory, workers=WORKERS, production=True)
    path.write_text(text.replace("127.0.0.1", "0.0.0.0").replace("daemon off", "daemon on"))
    processes.run([shutil.which("nginx"), "-c", path])  # it must be a daemon for an upgrade
    try:
        wait_for(pid.exists)
        yield lambda: restart(pid)
    finally:
        os.kill(number_in(pid), signal.SIGTERM)


def wait_for(condition):
    deadline = time.monotonic() + START_S
    while not condition():
        if time.monotonic() > deadline:
            sys.exit("restart: it does not happen")
        time.sleep(0.01)


def number_in(path):
    return int(path.read_text())


def reload(running, port):
    return nginx(running, port, lambda pid: os.kill(number_in(pid), signal.SIGHUP))


def upgrade(running, port):
    def restart(pid):
        old, before = number_in(pid), pid.with_name(pid.name + ".oldbin")
        os.kill(old, signal.SIGUSR2)
        wait_for(lambda: before.exists() and pid.exists() and pid.read_text().strip() not in ("", str(old)))
        time.sleep(0.2)  # for which the manual recommends checking the new one
        os.kill(old, signal.SIGQUIT)
        wait_for(lambda: not before.exists())

    return nginx(running, port, restart)


STARTS = {"take-over": take_over, "activation": activation, "stop": stop, "reload": reload, "upgrade": upgrade}


def measure(running, way, restarts, away):
    """Returns the results of the clients."""
    found, port = {}, servers.free_port()
    with STARTS[way](running, port) as restart:
        with clients(distance.NEAR if away else "127.0.0.1", port, away, found):
            for _ in range(restarts):
                time.sleep(0.5)
                restart()
            time.sleep(1)
    return found


def show(way, delay, restarts, found):
    words = []
    for kind in ("new", "kept"):
        counts = collections.Counter(found[kind])
        answered = counts.pop("answered", 0)
        reasons = ", ".join(f"{name} {n}" for name, n in sorted(counts.items()))
        words.append(f"{answered:6} {kind} answered, {sum(counts.values())} lost{f' ({reasons})' if reasons else ''}")
    print(f"{way:10} {delay:3.0f} ms, {restarts} restarts: {'; '.join(words)}; new p99 {found['p99 ms']:.0f} ms, most {found['max ms']:.0f} ms",
          flush=True)  # fmt: skip


def main():
    if sys.argv[1:2] == ["--clients"]:
        servers.raise_descriptor_limit()
        asyncio.run(Clients(sys.argv[2], int(sys.argv[3])).run())
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--restarts", type=int, default=25)
    parser.add_argument("--delay", type=float, default=0, help="milliseconds there and back")
    parser.add_argument("--only", default=",".join(WAYS))
    arguments = parser.parse_args()
    processes.end_on_signals()
    servers.raise_descriptor_limit()
    if arguments.delay and (os.geteuid() != 0 or not os.path.exists("/dev/net/tun")):
        sys.exit("restart: a delay takes Linux, root and /dev/net/tun")
    ways = [way for way in arguments.only.split(",") if way not in ("reload", "upgrade") or servers.installed("nginx")]
    with servers.Servers(arguments.build) as running:
        (running.root / "1k").write_bytes(BODY)
        with distance.distance(arguments.delay / 1000) if arguments.delay else contextlib.nullcontext():
            for way in ways:
                show(way, arguments.delay, arguments.restarts, measure(running, way, arguments.restarts, bool(arguments.delay)))


if __name__ == "__main__":
    main()
