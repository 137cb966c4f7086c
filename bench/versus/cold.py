"""Measures how much clients of a hot file are delayed by others, whose files are on a slow disk
where each lookup and each read takes a while (slowfiles.py).

    cold.py BUILD [--delay SECONDS] [--rate N] [--seconds N] [--rounds N] [--servers NAME,...]

A client requests 1 KB that is in memory, 1,000 times a second: alone; while others request N images
of 60 KB a second for the first time, from a fast disk; and from a slow disk. Linux with FUSE, as
root.
"""

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import processes
import servers

SLOWFILES = Path(__file__).resolve().parents[1] / "slowfiles.py"
IMAGE = 60_000
HOT_RATE = 1000
DIRECTORIES = 32  # FUSE looks up only one name in a directory at a time
WAIT_S = 30  # for the last image


@contextlib.contextmanager
def mounted(directory, mountpoint):
    """Mounts the directory. Yields a function that sets how many seconds the disk takes from then
    on."""
    mountpoint.mkdir(exist_ok=True)
    command = [sys.executable, SLOWFILES, directory, mountpoint]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        if process.stdout.readline() != "mounted\n":
            sys.exit("cold: this takes FUSE, root and the package python3-pyfuse3")
        yield lambda seconds: print(seconds, file=process.stdin, flush=True)
    finally:
        process.stdin.close()
        process.wait()


class Images:
    """Requests the images, each over its own connection, until the end."""

    def __init__(self, server, names, rate):
        self.server, self.names, self.rate = server, names, rate
        self.waits_s, self.failed = [], 0
        self.threads = []

    def ask(self, name):
        started = time.monotonic()
        try:
            with socket.create_connection(("127.0.0.1", self.server.port), WAIT_S) as s:
                s.sendall(f"GET /{name} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
                answer = b"".join(iter(lambda: s.recv(65536), b""))
            whole = answer.startswith(b"HTTP/1.1 200 ") and len(answer.partition(b"\r\n\r\n")[2]) == IMAGE
        except OSError:
            whole = False
        if whole:
            self.waits_s.append(time.monotonic() - started)
        else:
            self.failed += 1

    def run(self, seconds):
        begun = time.monotonic()
        for n in range(int(self.rate * seconds)):
            time.sleep(max(0, begun + n / self.rate - time.monotonic()))
            thread = threading.Thread(target=self.ask, args=(next(self.names),))
            thread.start()
            self.threads.append(thread)
        for thread in self.threads:
            thread.join()


def measure(running, server, images, seconds):
    """Returns percentiles in ms, as a dictionary."""
    output = running.directory / "result.json"
    command = [running.build / "bench" / "httpbench", "-c", 16, "-R", HOT_RATE, "-d", seconds, "--json", output, server.url("/hot")]
    beside = threading.Thread(target=images.run, args=(seconds,)) if images else None
    if beside:
        beside.start()
    processes.run(list(map(str, command)), stdout=subprocess.DEVNULL)
    if beside:
        beside.join()
    result = json.loads(output.read_text())
    if result["failed"] and sum(result["failed"].values()):
        print(f"cold: {server.name}: requests for the hot file have failed: {result['failed']}")
    return {p: (value or float("nan")) / 1e6 for p, value in result["durations"]["whole"]["percentiles_ns"].items()}


def name(n):
    return f"{n % DIRECTORIES}/{n}.jpg"


def compare(running, server_name, arguments):
    count = int(2 * arguments.rate * arguments.seconds * arguments.rounds) + 1
    source = running.directory / f"files-{server_name}"
    source.mkdir()
    content = os.urandom(IMAGE)
    for n in range(count):
        (source / str(n % DIRECTORIES)).mkdir(exist_ok=True)
        (source / name(n)).write_bytes(content)
    (source / "hot").write_bytes(os.urandom(1000))
    names = map(name, range(count))
    ways = {"alone": None, "beside images from a fast disk": 0, "from a slow disk": arguments.delay}
    with mounted(source, running.directory / f"slow-{server_name}") as take:
        running.root = running.directory / f"slow-{server_name}"
        server = running.start(server_name)
        found, images = {way: [] for way in ways}, None
        measure(running, server, None, 1)
        for _ in range(arguments.rounds):
            for way, delay in ways.items():
                take(delay or 0)
                images = Images(server, names, arguments.rate) if delay is not None else None
                found[way].append(measure(running, server, images, arguments.seconds))
        running.stop(server)
    for way, runs in found.items():
        p50, p99 = (statistics.median(run[p] for run in runs) for p in ("50", "99"))
        print(f"{server_name:8} {way:30} p50 {p50:8.2f} ms, p99 {p99:8.2f} ms")
    took = statistics.median(images.waits_s) if images.waits_s else float("nan")
    print(f"{server_name:8} the last {len(images.waits_s)} images: half of them within {took:.2f} s, {images.failed} failed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--delay", type=float, default=0.02, help="seconds of each call")
    parser.add_argument("--rate", type=int, default=100, help="images a second")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--servers", default="gatling,nginx")
    arguments = parser.parse_args()
    processes.end_on_signals()
    with servers.Servers(arguments.build) as running:
        for name in servers.those_installed(arguments.servers.split(","), "cold"):
            compare(running, name, arguments)


if __name__ == "__main__":
    main()
