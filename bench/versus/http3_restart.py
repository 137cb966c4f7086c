"""Counts what clients of HTTP/3 lose while a server is restarted again and again, beside nginx.

    http3_restart.py BUILD [--restarts N]

The options are those of http3.py, as are the servers. A load keeps 200 connections and makes 500 requests a second on
them; another makes 200 requests a second, each on a connection of its own. A server is restarted once a second:

take-over    gatling --take-over, beside the one that runs; with 1, 2, 3 and 4 workers in turn
reload       nginx -s reload, with quic_bpf
"""

import argparse
import collections
import contextlib
import json
import os
import signal
import time

import http3
import servers
from processes import end_on_signals
from restart import number_in, taken_over

SECONDS_MORE = 3  # of the load: before the first restart, and after the last one
KEPT = ["-R", 500, "-c", 200]
NEW = ["-R", 200, "-c", 200, "-k", 1]


@contextlib.contextmanager
def take_over(running):
    """Yields the port and a function that restarts the server once."""
    port = servers.free_port()

    def command(workers):
        return running.command("gatling", port, workers, file=None, once=False, listen="", protocol="h3", production=True)

    with taken_over(running, command) as restart:
        yield port, restart


@contextlib.contextmanager
def reload(running):
    server = running.start("nginx", protocol="h3")
    pid = running.directory / f"nginx-{server.port}.pid"
    yield server.port, lambda: os.kill(number_in(pid), signal.SIGHUP)
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
    options = parser.parse_args()
    servers.raise_descriptor_limit()
    end_on_signals()
    with servers.Servers(options.build) as running:
        running.add_file("1k", 1024)
        contest = http3.Contest(0, running)
        for name, way in (("take-over", take_over), ("reload", reload)):
            for kind, counts in zip(("kept", "new"), measure(contest, way, options.restarts)):
                words = ", ".join(f"{n} {why.replace('_', ' ')}" for why, n in counts.most_common())
                print(f"{name:12}{kind:6}{sum(counts.values()):8} requests: {words}", flush=True)


if __name__ == "__main__":
    os.umask(0o022)
    main()
