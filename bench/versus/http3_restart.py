"""Counts what clients of HTTP/3 lose while a server is restarted again and again, beside nginx.

    http3_restart.py BUILD [--restarts N] [--own ROOT] [--others ROOT]

The options are those of http3.py, as are the servers. A load keeps 200 connections and makes 500 requests a second on
them; another makes 200 requests a second, each on a connection of its own. A server is restarted once a second:

take-over    gatling --take-over, beside the one that runs; with 1, 2, 3 and 4 workers in turn
reload       nginx -s reload, with quic_bpf
"""

import argparse
import collections
import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time

import http3
import servers
from processes import Process, end_on_signals

SECONDS_MORE = 3  # of the load: before the first restart, and after the last one
END_S = 60
KEPT = ["-R", 500, "-c", 200]
NEW = ["-R", 200, "-c", 200, "-k", 1]


class Gatling:
    """A process that serves when the object has been made."""

    def __init__(self, running, port, workers):
        command = running.command("gatling", port, workers, file=None, once=False, listen="", protocol="h3", production=True)
        command += ["--take-over", running.directory / "socket", "--limit", "drain-delay=1"]
        self.process = Process(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = []
        for line in self.process.stderr:
            said.append(line)
            if "gatling: serving" in line:
                return
        sys.exit(f"http3_restart: gatling does not start: {''.join(said)}")

    def end(self, number=None):
        if number:
            self.process.send_signal(number)
        self.process.wait(END_S)
        self.process.stop()
        self.process.stderr.close()


@contextlib.contextmanager
def take_over(running):
    """Yields the port and a function that restarts the server once."""
    port, workers = servers.free_port(), itertools.cycle((2, 1, 4, 3))
    current = Gatling(running, port, next(workers))

    def restart():
        nonlocal current
        new = Gatling(running, port, next(workers))
        current.end()
        current = new

    yield port, restart
    current.end(signal.SIGINT)


@contextlib.contextmanager
def reload(running):
    server = running.start("nginx", protocol="h3")

    def restart():
        pid = next(running.directory.glob("nginx*.pid")).read_text()
        os.kill(int(pid), signal.SIGHUP)

    yield server.port, restart
    running.stop(server)


def count(said):
    """Returns a counter of how the requests of a load have ended."""
    found = json.loads(said)
    return collections.Counter({"answered": found["answered"], **{why: n for why, n in found["failed"].items() if n}})


def measure(contest, way, restarts):
    with way(contest.running) as (port, restart):
        url = f"https://127.0.0.1:{port}/1k"
        loads = [contest.load("--http3", *flags, "-d", restarts + 2 * SECONDS_MORE, url) for flags in (KEPT, NEW)]
        next_s = time.monotonic() + SECONDS_MORE
        for _ in range(restarts):
            time.sleep(max(0, next_s - time.monotonic()))
            restart()
            next_s = max(time.monotonic(), next_s + 1)
        return [count(load.communicate()[0]) for load in loads]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--restarts", type=int, default=100)
    parser.add_argument("--own")
    parser.add_argument("--others")
    options = parser.parse_args()
    servers.raise_descriptor_limit()
    end_on_signals()
    with servers.Servers(options.build, options.own, options.others) as running:
        running.add_file("1k", 1024)
        contest = http3.Contest(0, running)
        for name, way in (("take-over", take_over), ("reload", reload)):
            for kind, counts in zip(("kept", "new"), measure(contest, way, options.restarts)):
                words = ", ".join(f"{n} {re.sub('_', ' ', why)}" for why, n in counts.most_common())
                print(f"{name:12}{kind:6}{sum(counts.values()):8} requests: {words}", flush=True)


if __name__ == "__main__":
    os.umask(0o022)
    main()
