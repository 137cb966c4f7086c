"""Measures a web server under a crowd that speaks HTTP/3: gatling, nginx and Caddy at 0.5, 1, 2 and 4 times what the
best of them can do.

    slashdot_http3.py BUILD [--servers NAME,...] [--rate N] [--seconds N] [--out DIR]

BUILD is that of http3.py. The servers have the place and the settings that slashdot.py gives
them. A visitor comes on a connection of its own, from one of 65,536 addresses, requests one page of 8 KiB and leaves;
httpbench plays all of them, in open loop, as many as are due. A page counts if it comes within PATIENCE_S.

Load 1 is what the best server answers in closed loop, with 64 clients of the same kind, or --rate a second. A run in
which the clients were late is marked: it says nothing about the server. DIR/slashdot-http3.tsv has a row for each run.
"make slashdot".
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import processes
import smaller
from servers import Servers, raise_descriptor_limit, those_installed
from slashdot import CLOSED_LOOP_S, KB, MB, PAGE, PATIENCE_S, SHARE, write_tsv

LOADS = (0.5, 1, 2, 4)
CROWD, ADDRESSES = 8000, "127.1.0.0/16"  # visitors at a time, at most
COLUMNS = ["server", "load", "offered", "goodput", "p50_ms", "p99_ms", "refused", "timed_out", "reset", "resident", "server_cpu", "limit"]


class Place:
    def __init__(self, servers, share):
        self.servers, self.share = servers, share
        servers.add_file("page", PAGE)

    def start(self, name):
        server = self.servers.start(name, len(self.servers.cores), protocol="h3", production=True)
        self.share.add(server.processes())
        return server

    def load(self, server, *words):
        """Returns what httpbench says of clients that request one page each."""
        command = [self.servers.program("bench/httpbench"), "--http3", "--insecure", "-k", 1, "-t", len(os.sched_getaffinity(0)), "--source", ADDRESSES,
                   "--json", "-", *words, server.url("/page")]  # fmt: skip
        done = processes.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode not in (0, 1):
            sys.exit(f"slashdot_http3: {server.name}: {done.stderr}")
        return json.loads(done.stdout)


def capacity(place, name):
    """Returns the pages a second that it answers in closed loop."""
    server = place.start(name)
    result = place.load(server, "-c", 64, "-d", CLOSED_LOOP_S)
    place.servers.stop(server)
    return result["answered_per_s"]


def run(place, name, load, rate, seconds):
    """Returns a row of COLUMNS."""
    server = place.start(name)
    begun = server.cpu_s()
    result = place.load(server, "-c", CROWD, "-R", f"{rate:.1f}", "-d", seconds, "-T", PATIENCE_S)
    used, resident = server.cpu_s() - begun, server.resident()
    place.servers.stop(server)
    failed, whole = result["failed"], result["durations"]["whole"]["percentiles_ns"]
    values = [rate, result["answered"] / seconds, *((whole[p] or float("nan")) / 1e6 for p in ("50", "99")),
              *(failed[kind] / seconds for kind in ("refused", "timed_out", "reset")), resident / MB, used / result["elapsed_s"]]  # fmt: skip
    limit = result["reason"] if result["verdict"] == "CLIENT" else "-"
    return dict(zip(COLUMNS, [name, load, *values, limit]))


def print_row(row):
    print(f"{row['server']:9}{row['load']:>4}" + "".join(f"{row[column]:10.2f}" if row[column] < 10 else f"{row[column]:10.0f}" for column in COLUMNS[2:-1])
          + ("  CLIENTS" if row["limit"] != "-" else ""), flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=f"gatling beside other servers under a crowd that asks for {PAGE // KB} KiB over HTTP/3")
    parser.add_argument("build")
    parser.add_argument("--servers", default="gatling,nginx,caddy")
    parser.add_argument("--rate", type=float, help="pages a second that count as 1 (default: what the best server can do)")
    parser.add_argument("--seconds", type=int, default=8, help="of a run (default: 8)")
    parser.add_argument("--out", type=Path, default=Path("build/versus"))
    arguments = parser.parse_args()
    processes.end_on_signals()
    raise_descriptor_limit()
    names = those_installed(arguments.servers.split(","), "slashdot_http3")
    arguments.out.mkdir(parents=True, exist_ok=True)
    begun, rows = time.monotonic(), []
    with Servers(arguments.build) as servers:
        every = servers.cores
        servers.cores = every[: (len(every) + 1) // 2]
        with smaller.Share(SHARE * len(servers.cores)) as share, smaller.steered_loopback(set(every) - set(servers.cores)):
            place = Place(servers, share)
            able = {name: capacity(place, name) for name in names}
            print("pages a second in closed loop: " + ", ".join(f"{name} {rate:.0f}" for name, rate in able.items()))
            whole = arguments.rate or max(able.values())
            print(f"{'':9}" + f"{'load':>4}" + "".join(f"{column:>10}" for column in COLUMNS[2:-1]))
            for load in LOADS:
                for name in names:
                    rows.append(run(place, name, load, load * whole, arguments.seconds))
                    print_row(rows[-1])
    write_tsv(arguments.out / "slashdot-http3.tsv", COLUMNS, rows)
    print(f"{len(rows)} runs in {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
