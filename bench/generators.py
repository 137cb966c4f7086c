"""Measures the load generators themselves, and the load of DragonFly's page, side by side.

    generators.py BUILD speed        httpbench against wrk: requests a second and processor time a request, memory
    generators.py BUILD shortlived   30,000 connections with one request each, of 1, 8 and 16 KB: gatling against nginx

In turns, A B A B, since machines have moods: believe the ratios. The server has the first core and the generators the
others. Where the server was busy all the time no generator gets more out of it: then the cost of a request tells them
apart, without what httpbench spends waiting. "make bench-generators" runs both.
"""

import json
import os
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 7
SECONDS = 2
SHORTLIVED_SECONDS = 20
SIZES = (1, 8, 16)  # KB

NGINX = """
worker_processes {workers};
{affinity}
worker_rlimit_nofile 20000;
daemon off;
pid {root}/nginx-{port}.pid;
error_log /dev/null crit;
events {{ worker_connections 19000; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000000;
    open_file_cache max=1000;
    server {{ listen 127.0.0.1:{port} backlog=65535{listen}; root {root}; }}
}}
"""


class Bench:
    def __init__(self, build):
        self.build = Path(build)
        self.root = Path(tempfile.mkdtemp(prefix="gatling-generators-"))
        self.root.chmod(0o755)
        for size in SIZES:
            (self.root / f"{size}k").write_bytes(b"x" * size * 1024)
            (self.root / f"{size}k").chmod(0o644)
        self.cores = sorted(os.sched_getaffinity(0))
        self.servers = {}  # by their ports

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.servers.values():
            server.send_signal(signal.SIGTERM)
        for server in self.servers.values():
            server.wait()
        shutil.rmtree(self.root)

    def start(self, command, port):
        server = self.servers[port] = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                if time.monotonic() > deadline or server.poll() is not None:
                    sys.exit(f"generators: {command[0]} does not start")
                time.sleep(0.05)

    def nginx(self, workers, listen=""):
        """listen: more words for the directive of that name."""
        port = free_port()
        configuration = self.root / f"nginx-{port}.conf"
        affinity = "" if workers > 1 else "worker_cpu_affinity " + bin(1 << self.cores[0])[2:] + ";"
        configuration.write_text(
            NGINX.format(workers=workers, affinity=affinity, root=self.root, port=port, listen=listen)
        )
        self.start(["nginx", "-c", str(configuration)], port)
        return port

    def gatling(self, workers):
        port = free_port()
        self.start([self.build / "gatling", "-c", self.root, "-i", "127.0.0.1", "-p", str(port), "-n", "-j", str(workers)], port)
        return port

    def busy_seconds(self, port):
        """Processor seconds of the server at that port, with its workers."""
        master = self.servers[port].pid
        workers = Path(f"/proc/{master}/task/{master}/children").read_text().split()
        ticks = 0
        for pid in [master, *workers]:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def run(self, *command, pinned=True):
        """Runs a generator beside the server; its output, and its processor seconds."""
        rest = set(self.cores[1:] or self.cores) if pinned else set(self.cores)
        process = subprocess.Popen(
            list(map(str, command)), stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.sched_setaffinity(0, rest)
        )
        output = process.stdout.read()
        _, _, usage = os.wait4(process.pid, 0)
        return output, usage.ru_utime + usage.ru_stime

    def httpbench(self, *arguments, pinned=True):
        path = self.root / "json"
        self.run(self.build / "bench" / "httpbench", *arguments, "--json", path, pinned=pinned)
        return json.loads(path.read_text())


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wrk(bench, url, *arguments):
    output, cpu = bench.run("wrk", "-t1", "-c64", f"-d{SECONDS}s", *arguments, url)
    words = next(line for line in output.splitlines() if "requests in" in line).replace(",", "").split()
    requests, seconds = int(words[0]), float(words[3].rstrip("s"))
    return requests / seconds, cpu * 1e6 / requests


def httpbench(bench, url, *arguments):
    r = bench.httpbench("-c", 64, "-d", SECONDS, *arguments, url)
    return r["answered"] / r["elapsed_s"], (r["user_s"] + r["system_s"] - r["waiting_s"]) * 1e6 / r["answered"]


def with_server(bench, port, measure):
    """What measure() answers, and which part of the time the server was busy."""
    before, started = bench.busy_seconds(port), time.monotonic()
    rate, cost = measure()
    return rate, cost, (bench.busy_seconds(port) - before) / (time.monotonic() - started)


def compare(bench, name, port, wrk_arguments, httpbench_arguments):
    url = f"http://127.0.0.1:{port}/1k"
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(with_server(bench, port, lambda: httpbench(bench, url, *httpbench_arguments)))
        theirs.append(with_server(bench, port, lambda: wrk(bench, url, *wrk_arguments)))
    for generator, results in (("httpbench", ours), ("wrk", theirs)):
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
    for server, port in (("nginx", bench.nginx(1)), ("gatling", bench.gatling(1))):
        compare(bench, f"{server}, kept open", port, [], [])
        compare(bench, f"{server}, a connection each", port, *close)
    compare(bench, "nginx deferred, the same", bench.nginx(1, " deferred"), *close)
    url = f"http://127.0.0.1:{port}/1k"
    few, many = (memory(bench, url, n) for n in (10, 10_010))
    print(f"httpbench's memory for an open connection: {(many - few) / 10_000:.0f} bytes", flush=True)


def memory(bench, url, connections):
    """Resident bytes of httpbench with so many connections open, a while after it has started."""
    command = [bench.build / "bench" / "httpbench", "-c", connections, "-d", 2, url]
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL) as process:
        time.sleep(1.5)
        pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def shortlived(bench):
    servers = {"gatling": bench.gatling(2), "nginx": bench.nginx(2, " deferred reuseport")}
    print(f"# 2 clients with 15,000 connections each, a request a connection, {SHORTLIVED_SECONDS} s")
    print(f"{'':8} {'':8} {'/s':>8} {'mean ms':>8} {'stddev':>8} {'99% ms':>8} {'failed':>7}  verdict")
    for size in SIZES:
        for name, port in servers.items():
            r = bench.httpbench("-c", 30_000, "-t", 2, "-k", 1, "-d", SHORTLIVED_SECONDS, "--ramp", 3, "--source",
                                "127.0.7.0/28", f"http://127.0.0.1:{port}/{size}k", pinned=False)  # fmt: skip
            whole = r["durations"]["whole"]
            late = whole["percentiles_ns"]["99"]
            print(f"{size:5} KB {name:8} {r['answered'] / r['elapsed_s']:8.0f} {whole['mean_ns'] / 1e6:8.1f} "
                  f"{whole['deviation_ns'] / 1e6:8.1f} {late / 1e6 if late else float('nan'):8.1f} "
                  f"{sum(r['failed'].values()):7}  {r['verdict']}", flush=True)  # fmt: skip


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with Bench(sys.argv[1]) as running:
        for what in sys.argv[2:]:
            {"speed": speed, "shortlived": shortlived}[what](running)
