"""Compares load generators, and repeats the measurement of DragonFly's web page.

    generators.py BUILD speed        httpbench against wrk, and over HTTP/2 against h2load: requests a second and processor
                                     time a request, memory
    generators.py BUILD shortlived   30,000 connections with one request each, of 1, 8 and 16 KB: gatling against nginx

They take turns, A B A B, because the speed of a machine changes over time: the ratios are more
reliable than the figures. The server has the first core, the generators have the others. If the
server is always busy, the rates are equal; then compare the cost of a request, without the time
that httpbench spends waiting. "make bench-generators" runs both.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from processes import Process, end_on_signals
from servers import Servers, raise_descriptor_limit

ROUNDS = 7
SECONDS = 2
SHORTLIVED_SECONDS = 20
SIZES = (1, 8, 16)  # KB


class Bench(Servers):
    def __init__(self, build):
        super().__init__(build)
        for size in SIZES:
            self.add_file(f"{size}k", size * 1024)

    def run(self, *command, pinned=True):
        """Runs a generator beside the server. Returns its output and its processor seconds."""
        rest = set(self.cores[1:] or self.cores) if pinned else set(self.cores)
        with Process(command, rest, stdout=subprocess.PIPE, text=True) as process:
            output = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        return output, usage.ru_utime + usage.ru_stime

    def httpbench(self, *arguments, pinned=True):
        path = self.directory / "json"
        self.run(self.build / "bench" / "httpbench", *arguments, "--json", path, pinned=pinned)
        return json.loads(path.read_text())


def wrk(bench, url, *arguments):
    output, cpu = bench.run("wrk", "-t1", "-c64", f"-d{SECONDS}s", *arguments, url)
    words = next(line for line in output.splitlines() if "requests in" in line).replace(",", "").split()
    requests, seconds = int(words[0]), float(words[3].rstrip("s"))
    return requests / seconds, cpu * 1e6 / requests


def h2load(bench, url, *arguments):
    output, cpu = bench.run("h2load", "-t1", "-D", SECONDS, *arguments, url)
    requests = int(re.search(r"(\d+) succeeded", output)[1])
    return requests / SECONDS, cpu * 1e6 / requests


def httpbench(bench, url, *arguments):
    r = bench.httpbench("-c", 64, "-d", SECONDS, *arguments, url)
    return r["answered_per_s"], (r["user_s"] + r["system_s"] - r["waiting_s"]) * 1e6 / r["answered"]


def with_server(server, measure):
    """Returns what measure() returns, and for which share of the time the server was busy."""
    before, started = server.cpu_s(), time.monotonic()
    rate, cost = measure()
    return rate, cost, (server.cpu_s() - before) / (time.monotonic() - started)


def compare(bench, name, server, other, its_arguments, our_arguments):
    """Compares httpbench with another generator, wrk or h2load."""
    url = server.url("/1k")
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(with_server(server, lambda: httpbench(bench, url, *our_arguments)))
        theirs.append(with_server(server, lambda: other(bench, url, *its_arguments)))
    for generator, results in (("httpbench", ours), (other.__name__, theirs)):
        rates, costs, busy = zip(*results)
        print(f"{name:26} {generator:10} {statistics.median(rates):9.0f} {max(rates):9.0f} {statistics.median(costs):8.2f} "
              f"{statistics.median(busy):8.0%}")  # fmt: skip
    rate = statistics.median(o[0] / t[0] for o, t in zip(ours, theirs))
    cost = statistics.median(o[1] / t[1] for o, t in zip(ours, theirs))
    print(f"{name:26} {'ratio':10} {rate:9.2f} {'':9} {cost:8.2f}", flush=True)


def speed(bench):
    print(f"# {ROUNDS} rounds of {SECONDS} s, 1 thread, 64 connections, 1 KB; medians, ratios of pairs")
    print(f"{'':26} {'':10} {'/s':>9} {'most':>9} {'us each':>8} {'server':>8}")
    close = ["-H", "Connection: close"], ["-k", 1]
    for server in (bench.start("nginx", listen=""), bench.start("gatling")):
        compare(bench, f"{server.name}, kept open", server, wrk, [], [])
        compare(bench, f"{server.name}, a connection each", server, wrk, *close)
    compare(bench, "nginx deferred, the same", bench.start("nginx", listen=" deferred"), wrk, *close)
    for protocol in ("h2c", "h2"):
        server = bench.start("gatling", protocol=protocol)
        for connections, streams in ((64, 1), (8, 16)):
            ours = ["--http2", "--insecure", "-c", connections, "-p", streams]
            compare(bench, f"{protocol}, {connections} x {streams} streams", server, h2load,
                    ["-c", connections, "-m", streams], ours)  # fmt: skip
    server = bench.start("gatling")
    few, many = (memory(bench, server.url("/1k"), n) for n in (10, 10_010))
    print(f"httpbench's memory for an open connection: {(many - few) / 10_000:.0f} bytes", flush=True)


def memory(bench, url, connections):
    """Returns the resident bytes of httpbench with that many connections, 1.5 s after its start."""
    command = [bench.build / "bench" / "httpbench", "-c", connections, "-d", 2, url]
    with Process(command, stdout=subprocess.DEVNULL) as process:
        time.sleep(1.5)
        pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def shortlived(bench):
    servers = [bench.start(name, workers=2) for name in ("gatling", "nginx")]
    print(f"# 2 clients with 15,000 connections each, a request a connection, {SHORTLIVED_SECONDS} s")
    print(f"{'':8} {'':8} {'/s':>8} {'mean ms':>8} {'stddev':>8} {'99% ms':>8} {'failed':>7}  verdict")
    for size in SIZES:
        for server in servers:
            r = bench.httpbench("-c", 30_000, "-t", 2, "-k", 1, "-d", SHORTLIVED_SECONDS, "--ramp", 3, "--source",
                                "127.0.7.0/28", server.url(f"/{size}k"), pinned=False)  # fmt: skip
            whole = r["durations"]["whole"]
            mean, deviation, late = (
                ns / 1e6 if ns is not None else float("nan")
                for ns in (whole["mean_ns"], whole["deviation_ns"], whole["percentiles_ns"]["99"])
            )
            print(f"{size:5} KB {server.name:8} {r['answered'] / r['elapsed_s']:8.0f} {mean:8.1f} {deviation:8.1f} {late:8.1f} "
                  f"{sum(r['failed'].values()):7}  {r['verdict']}", flush=True)  # fmt: skip


if __name__ == "__main__":
    end_on_signals()
    raise_descriptor_limit()
    with Bench(sys.argv[1]) as running:
        for what in sys.argv[2:]:
            {"speed": speed, "shortlived": shortlived}[what](running)
