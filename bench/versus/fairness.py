"""Measures how much a greedy address delays others: a client that requests 1 KiB 50 times a second,
alone and beside it.

    fairness.py BUILD [--seconds N] [--rounds N] [--servers NAME,...] [--only CASE,...]

connections  15,000 connections from one address, each asking for 1 KiB again and again
pipelines    50 connections with 64 requests under way each
downloads    500 downloads of 1 GB, each read at 100 KB/s
streams      one connection of HTTP/2 with 100 streams, asking for 1 KiB again and again (h2load)
floods       what floods.py has, each from 8 connections of HTTP/2

A server has one worker, on the first core, and production settings. The clients are on the others,
where the client that is measured has priority (SCHED_FIFO). It has its own address and speaks
HTTP/1.1. nginx does not, on a port where it speaks HTTP/2 without TLS; there it is left out. Each
round measures the client alone, and beside the case. It also measures it, beside the case, at a
twin: the same server again, used by nobody else, with priority on its core. Delays there are due to
the kernel, to system calls under way, and to the load of the machine, not to the order in which the
server handles clients.

The medians of the rounds are shown: times in ms; the p99 beside the case in relation to that alone
and to that of the twin; requests without an answer; the processors that the server used, and how
much its memory grew.
"""

import argparse
import contextlib
import functools
import json
import math
import os
import select
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import floods
import processes
import servers

KB, GB = 1024, 10**9
RATE, GREEDY, GOOD = 50, "127.8.0.1", "127.9.0.1"
DOWNLOADS, READ_BYTES_S, READS_S = 500, 100_000, 20


def read_slowly(port):
    """Downloads slowly, in its own process. The connections read in turn, so that requests reach
    the server evenly."""
    request = b"GET /1g HTTP/1.1\r\nHost: a\r\n\r\n"
    held = []
    for _ in range(DOWNLOADS):
        s = servers.bound_socket(GREEDY)
        s.connect(("127.0.0.1", port))
        s.sendall(request)
        s.setblocking(False)
        held.append(s)
    piece, begun, turns = READ_BYTES_S // READS_S, time.monotonic(), 0
    while True:
        for i, s in enumerate(held):
            with contextlib.suppress(BlockingIOError):
                s.recv(piece)
            due = begun + (turns + i / DOWNLOADS) / READS_S
            if i % 16 == 0:
                time.sleep(max(0, due - time.monotonic()))
        turns += 1


def httpbench(running, server, *words):
    return [running.program("bench/httpbench"), *words, server.url("/1k")]


@contextlib.contextmanager
def program(running, command):
    output = running.directory / "greedy"
    with open(output, "wb") as file, processes.Process(command, greedy_cores(running), stdout=file, stderr=file) as process:
        yield
        if process.poll() is not None:
            sys.exit(f"fairness: it ended early: {' '.join(map(str, command))}\n{output.read_text()}")


def stay_awake(core):
    """Uses a core in its own process when nobody else does. A virtual processor that sleeps takes
    milliseconds to wake up, which would be most of what is measured."""
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with contextlib.suppress(OSError):  # sched(7): where sessions share the processors, this one comes last
        os.setsid()
        Path("/proc/self/autogroup").write_text("19")
    while True:
        os.sched_yield()  # otherwise a busy server would wait until the next tick, 4 ms


def greedy_cores(running):
    return set(running.cores[1:] or running.cores)


def connections(running, server):
    return program(running, httpbench(running, server, "-c", 15000, "--ramp", 2, "-d", 600, "--source", GREEDY + "/32"))


def pipelines(running, server):
    return program(running, httpbench(running, server, "-c", 50, "-p", 64, "-d", 600, "--source", GREEDY + "/32"))


@contextlib.contextmanager
def forked(running, work, *arguments):
    """Runs work in a process on the cores of the greedy clients."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, greedy_cores(running))
    with processes.forked(work, *arguments):
        os.sched_setaffinity(0, before)
        yield


def downloads(running, server):
    return forked(running, read_slowly, server.port)


def streams(running, server):
    return program(running, ["h2load", "-c", 1, "-m", 100, "-D", 600, server.url("/1k")])


def flood(name, running, server):
    return forked(running, floods.attack, server.port, name, GREEDY)


# name: the attack, the protocol, seconds until it has its full effect
CASES = {
    "connections": (connections, "http", 5),
    "pipelines": (pipelines, "http", 1),
    "downloads": (downloads, "http", 5),
    "streams": (streams, "h2c", 1),
    **{name: (functools.partial(flood, name), "h2c", 1) for name in floods.FLOODS},
}


def measure(running, server, seconds, *flags):
    """Measures a client with a new connection for every fifth request. flags: more options of
    httpbench. Returns p50 and p99 in ms, and how many requests had no answer."""
    output = running.directory / "good.json"
    command = ["chrt", "-f", 1, *httpbench(running, server, "-R", RATE, "-c", 16, "-k", 5, "-d", seconds, "--json", output,
                                           "--source", GOOD + "/32", *flags)]  # fmt: skip
    with processes.Process(command, greedy_cores(running), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        words = process.communicate()[1]
        if process.returncode not in (0, 1):
            sys.exit(f"fairness: {words.decode()}")
    found = json.loads(output.read_text())
    whole = found["durations"]["whole"]["percentiles_ns"]
    times = {f"p{p}": (whole[str(p)] or math.inf) / 1e6 for p in (50, 99)}  # null: it reached the timeout
    return {**times, "failed": found["sent"] - found["answered"]}


def put_first(server, first=True):
    """Gives a server priority over all other processes on its core, or takes it back: Linux 6.18 does not end one that has
    it as long as the kernel has other work to do on that core."""
    for pid in server.processes():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            for thread in os.listdir(f"/proc/{pid}/task"):
                os.sched_setscheduler(int(thread), os.SCHED_FIFO if first else os.SCHED_OTHER, os.sched_param(int(first)))


TIMES = [("alone", "p50"), ("alone", "p99"), ("twin", "p99"), ("beside", "p50"), ("beside", "p99")]


def print_heads():
    print(f"{'':11}{'alone':^14}{'twin':>7}{'beside':^14}{'p99, of':>16}\n"
          f"{'':11}" + "".join(f"{key:>7}" for _, key in TIMES) + f"{'alone':>8}{'twin':>8}{'failed':>7}{'cpu':>5}{'MB':>5}")  # fmt: skip


def compare(running, name, case, arguments):
    """Prints a row with the medians of the rounds."""
    greedy, protocol, rise_s = CASES[case]
    if protocol == "h2c" and name == "nginx":
        return
    found, used = {"alone": [], "beside": [], "twin": []}, []
    server, twin = (running.start(name, protocol=protocol, production=True) for _ in range(2))
    put_first(twin)
    before = server.resident()
    most = before
    for i in range(arguments.rounds):
        found["alone"].append(measure(running, server, arguments.seconds))
        with greedy(running, server):
            time.sleep(rise_s)
            for which in ("beside", "twin") if i % 2 == 0 else ("twin", "beside"):
                begun, cpu = time.monotonic(), server.cpu_s()
                found[which].append(measure(running, twin if which == "twin" else server, arguments.seconds))
                used.append((server.cpu_s() - cpu) / (time.monotonic() - begun))
                most = max(most, server.resident())
    put_first(twin, False)
    for each in (server, twin):
        running.stop(each)

    def ratio(which):
        return statistics.median(b["p99"] / a["p99"] for a, b in zip(found[which], found["beside"]))

    def time_ms(which, key):
        found_ms = statistics.median(row[key] for row in found[which])
        return f"{found_ms:7.2f}" if found_ms < 100 else f"{found_ms:7.0f}"

    times = "".join(time_ms(*each) for each in TIMES)
    print(f"  {name:9}{times}{ratio('alone'):8.1f}{ratio('twin'):8.1f}{sum(row['failed'] for row in found['beside']):7}"
          f"{statistics.median(used):5.2f}{(most - before) / 1e6:5.0f}", flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--only", default="connections,pipelines,downloads,streams,floods", help="CASE,...")
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--servers", default="gatling,nginx,h2o")
    arguments = parser.parse_args()
    processes.end_on_signals()
    servers.raise_descriptor_limit()
    names = servers.those_installed(arguments.servers.split(","), "fairness")
    with servers.Servers(arguments.build) as running:
        running.add_file("1k", KB)
        for name, size in (("10m", 10 * KB * KB), ("1g", GB)):
            with open(running.root / name, "wb") as big:
                big.truncate(size)
        print_heads()
        with contextlib.ExitStack() as awake:
            for core in running.cores:
                awake.enter_context(processes.forked(stay_awake, core))
            for case in (c for only in arguments.only.split(",") for c in (floods.FLOODS if only == "floods" else [only])):
                print(case, flush=True)
                for name in names:
                    compare(running, name, case, arguments)


if __name__ == "__main__":
    main()
