"""Measures what hostile clients of QUIC and HTTP/3 (floods_http3.py) cost a server and its other clients: gatling, nginx
and Caddy in turns, with one worker each.

    hostile_http3.py BUILD [--only FLOOD,...] [--seconds N] [--rounds N] [--servers NAME,...]

BUILD is that of http3.py; the servers have production settings (servers.py). A client requests
1 KiB 50 times a second, over HTTPS and then over HTTP/3, with a new connection for every fifth request: alone, and
beside each flood. fairness.py has the clients' places.

The medians of the rounds are shown: p99 in ms, requests without an answer, the processors that the server used beside
the flood, and how much its memory grew. "make hostile".
"""

import argparse
import contextlib
import statistics
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import processes
import servers
from fairness import forked, measure, stay_awake
from floods_http3 import FLOODS, attack, initials

NETWORK = "127.8.0"
KB, RISE_S = 1024, 2
CLIENTS = {"TCP": ["--insecure"], "QUIC": ["--insecure", "--http3"]}


def both(running, server, seconds):
    return {name: measure(running, server, seconds, *flags) for name, flags in CLIENTS.items()}


def compare(running, name, flood, arguments):
    """Prints a row."""
    server = running.start(name, protocol="h3", production=True)
    both(running, server, 1)
    before, alone, beside, used = server.resident(), [], [], []
    most = before
    for _ in range(arguments.rounds):
        alone.append(both(running, server, arguments.seconds))
        with forked(running, attack, server.port, flood, NETWORK):
            time.sleep(RISE_S)
            begun, cpu = time.monotonic(), server.cpu_s()
            beside.append(both(running, server, arguments.seconds))
            used.append((server.cpu_s() - cpu) / (time.monotonic() - begun))
            most = max(most, server.resident())
    running.stop(server)
    print(f"  {name:9}" + "".join(f"{statistics.median(row[client]['p99'] for row in rows):9.2f}" for client in CLIENTS for rows in (alone, beside))
          + "".join(f"{sum(row[client]['failed'] for row in beside):7}" for client in CLIENTS)
          + f"{statistics.median(used):6.2f}{(most - before) / 1e6:6.0f}", flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--only", default=",".join(FLOODS), help="FLOOD,...")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--servers", default="gatling,nginx,caddy")
    arguments = parser.parse_args()
    processes.end_on_signals()
    servers.raise_descriptor_limit()
    names = servers.those_installed(arguments.servers.split(","), "hostile_http3")
    initials()
    with servers.Servers(arguments.build) as running, contextlib.ExitStack() as awake:
        running.add_file("1k", KB)
        running.add_file("10m", 10 * KB * KB)
        print(f"{'':11}" + "".join(f"{client + ' alone':>9}{'beside':>9}" for client in CLIENTS) + "".join(f"{'failed':>7}" for _ in CLIENTS) + "   cpu    MB")
        for core in running.cores:
            awake.enter_context(processes.forked(stay_awake, core))
        for flood in arguments.only.split(","):
            print(flood, flush=True)
            for name in names:
                compare(running, name, flood, arguments)


if __name__ == "__main__":
    main()
