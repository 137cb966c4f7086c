"""Measures HTTP/3 beside nginx and Caddy, and beside HTTP/2 of this server.

    http3.py BUILD [--turns N] [--seconds S]

BUILD is one with HTTP3=yes, whose httpbench makes the load.

The network is a loopback of its own, whose packets have 1500 bytes at most, as elsewhere: they may have 65,536 on that
of the system, which nginx makes use of. Takes root.

A server has one worker, on the first core; the load is on the others. All have the same certificate and no access log.
The servers take turns. The figures are the medians of the turns, of the server's processor time:

    8 x 16        microseconds for a request of 1 KiB, with 8 connections that have 16 under way each
    8 x 1         the same with one
    a connection  the same with a connection for each
    10 MB         seconds for a gigabyte
    idle          resident bytes of a connection that has been used once
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import servers
from processes import Process, end_on_signals

IDLE, OPENS_S, SETTLES_S = 1000, 6, 2
MEGABYTES = 10
MTU = 1500
# The arguments of httpbench for each row, the file, and by what the seconds of a request are multiplied.
ROWS = {
    "8 x 16": (["-c", 8, "-p", 16], "1k", 1e6),
    "8 x 1": (["-c", 8, "-p", 1], "1k", 1e6),
    "a connection": (["-c", 8, "-k", 1], "1k", 1e6),
    "10 MB": (["-c", 2, "-p", 1], "10m", 1e3 / MEGABYTES),
}


def enter_network():
    """Runs this program again, in a network namespace of its own."""
    if "GATLING_NETWORK" in os.environ:
        return
    os.environ["GATLING_NETWORK"] = "1"
    words = [sys.executable, *sys.argv]
    os.execvp("unshare", ["unshare", "--net", "sh", "-c", f'ip link set lo mtu {MTU} up && exec "$0" "$@"', *words])


class Contest:
    def __init__(self, seconds, running):
        self.seconds, self.running = seconds, running
        self.generator = set(running.cores[1:]) or set(running.cores)

    def load(self, *flags):
        command = [self.running.program("bench/httpbench"), "--insecure", "--json", "-", *flags]
        return Process(command, self.generator, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def cost(self, server, protocol, row):
        flags, file, unit = ROWS[row]
        self.load(protocol, *flags, "-n", 200, server.url(f"/{file}")).communicate()
        before = server.cpu_s()
        said = self.load(protocol, *flags, "-d", self.seconds, server.url(f"/{file}")).communicate()[0]
        result = json.loads(said)
        failed = sum(result["failed"].values())
        if failed or not result["answered"]:
            print(f"{server.name}, {protocol}, {row}: {failed} failed, {result['answered']} answered", file=sys.stderr)
        return (server.cpu_s() - before) / max(1, result["answered"]) * unit

    def idle(self, server, protocol):
        """The generator is stopped while all of its connections are open."""
        self.load(protocol, "-n", 200, "-c", 20, server.url("/1k")).communicate()
        time.sleep(SETTLES_S)
        before = server.resident()
        load = self.load(protocol, "-c", IDLE, "-d", OPENS_S + 1, server.url("/1k"))
        time.sleep(OPENS_S)
        os.killpg(load.pid, signal.SIGSTOP)
        time.sleep(SETTLES_S)
        grown = server.resident() - before
        os.killpg(load.pid, signal.SIGCONT)
        load.communicate()
        return grown / IDLE


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    enter_network()
    end_on_signals()
    servers.raise_descriptor_limit()
    found = {}
    contestants = [("gatling", "--http3"), ("nginx", "--http3"), ("caddy", "--http3"), ("gatling", "--http2")]
    with servers.Servers(options.build) as running:
        running.add_file("1k", 1024)
        running.add_file("10m", MEGABYTES * 1000 * 1000)
        contest = Contest(options.seconds, running)
        for _ in range(options.turns):
            for name, protocol in contestants:
                server = running.start(name, protocol="h3")
                for row in ROWS:
                    found.setdefault((row, name, protocol), []).append(contest.cost(server, protocol, row))
                found.setdefault(("idle", name, protocol), []).append(contest.idle(server, protocol))
                running.stop(server)
    print(f"{'':14}" + "".join(f"{name + ' ' + protocol[2:]:>16}" for name, protocol in contestants))
    for row in [*ROWS, "idle"]:
        medians = [statistics.median(found[row, *contestant]) for contestant in contestants]
        print(f"{row:14}" + "".join(f"{median:16.2f}" if median < 1000 else f"{median:16.0f}" for median in medians))


if __name__ == "__main__":
    os.umask(0o022)
    main()
