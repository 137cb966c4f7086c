"""Compares gatling with other servers, and with the smallest programs that can answer a request.

    versus.py BUILD [--only CASE,...] [--servers NAME,...] [--rounds N] [--seconds N] [--out DIR]

Each server is configured for static files as well as its manual allows (servers.py), and has the
first core; httpbench, or h2load for HTTP/2, has the other. Each request of httpbench has one of the
heads of heads.py, as browsers send them. All requests of a run of h2load have the same head, as
those of a connection nearly have; rounds have different ones. They take turns, A B C A B C, because
the speed of a machine changes over time: the ratios are more reliable than the figures.
DIR/versus.tsv has, for each round, the requests a second, the server's processor time for a request
(as the scheduler counts it), that of all cores (whoever used them), and the percentiles. Medians,
with minimum and maximum, are printed and plotted, and a table of all cases at the end. For 10 MB
the time of all cores is printed, too: segments are sent by the server's core, or by the client's
when acknowledgements arrive, so that a slower server may seem to cost less. Before a case, each
server's answers are fetched and compared. During it, httpbench checks the status and the length or
content of every answer, h2load the status and the total length. TLS is always TLS 1.3 with X25519
and SUITE, the only suite that is offered. "make versus".
"""

import argparse
import contextlib
import http.client
import json
import os
import random
import shutil
import socket
import ssl
import statistics
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, field
from email import message_from_bytes
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import heads
import h2load
import processes
import stacks
from curves import can_draw
from plots import plot
from servers import (CONFIGURED, TLS_PROTOCOLS, YARDSTICKS, Servers, bound_socket, raise_descriptor_limit, speaks,
                     those_installed)  # fmt: skip
from slowdisk import NoSlowDisk, SlowDisk

KB = 1024
CORE_CONNECTIONS = 64
IDLE, IDLE_TLS = 15_000, 1000
MIX_FILES = 1000
MISSING_NAMES = 10_000
MANY_FILES, MANY_PER_DIRECTORY, MANY_BYTES = 40_000, 50, 16 * KB  # more than any cache here holds
COLD_FILES, COLD_AHEAD_S = 8, 3  # a file lasts this much longer than a run at LINK_BYTES_S
LINK_BYTES_S, LINK_HZ = 25_000_000, 1000  # of each download: 200 Mbit/s
SLOW_BYTES_S = 100_000_000  # of the slow disk: all downloads together are limited by it
SECONDS = 0.25  # length of a run
ROUNDS_MOST = {"caddy": 3, "uring": 3}  # of these: one is far behind, the other is gatling again
HOLD_S, HOLD_BATCH, HOUR_S = 5, 100, 3600
PATIENCE_S, ATTEMPTS = 30, 3  # a generator that has not ended this long after its time (h2load, sometimes) is started again
SOURCES = "127.0.7.0/28"  # addresses of the clients, so that there are more ports
HOT_RATE = 5000  # requests a second beside the downloads, in open loop
SUITE = "TLS_AES_128_GCM_SHA256"
NEEDED = {"http": [], "https": ["openssl"], "h2": ["openssl", "h2load", "curl"], "h2c": ["h2load", "curl"]}
MEASURES = {"rate": "/s", "cpu_us": "CPU us", "p50_us": "p50 us", "p99_us": "p99 us", "p999_us": "p99.9 us"}
KEPT = (*MEASURES, "all_us", "failed", "verdict")


@dataclass
class Case:
    """A kind of load over one of servers.PROTOCOLS. load: options of h2load for HTTP/2, otherwise
    of httpbench. extra: measures a second instance of each server that differs from the first. It
    has "idle" connections, two "workers", "downloads" of cold files, or "slow downloads" of files
    on a slow disk."""

    key: str
    title: str
    path: str = "/1k"
    load: list = field(default_factory=lambda: ["-c", CORE_CONNECTIONS])
    once: bool = False  # each request has its own connection
    status: int = 200
    yardsticks: bool = False
    workers: int = 1
    extra: str = ""
    idle: int = 0  # connections
    seconds: float = 1  # length of a run, in units of --seconds; 0: there is no load
    warm_s: float = 0  # length of a run before those that count
    rounds: int = 1000  # at most
    protocol: str = "http"


ONCE = ["-c", CORE_CONNECTIONS, "-k", 1]
HOT = ["-c", CORE_CONNECTIONS, "-R", HOT_RATE]
STREAMS = ["-c", 16, "-m", 32]
CASES = [
    Case("1k", "1 KB", yardsticks=True),
    Case("16k", "16 KB", "/16k", yardsticks=True),
    Case("100k", "100 KB", "/100k", yardsticks=True),
    Case("once-1k", "1 KB, a connection each", "/1k", ONCE, once=True, yardsticks=True),
    Case("once-8k", "8 KB, a connection each", "/8k", ONCE, once=True, yardsticks=True),
    Case("once-16k", "16 KB, a connection each", "/16k", ONCE, once=True, yardsticks=True),
    Case("10m", "10 MB", "/10m", ["-c", 4], yardsticks=True, seconds=1.5),
    Case("pipelined", "16 pipelined, 1 KB", "/1k", ["-c", CORE_CONNECTIONS, "-p", 16]),
    Case("head", "HEAD", "/1k", ["-c", CORE_CONNECTIONS, "-X", "HEAD"]),
    Case("304", "304", "/1k", status=304),
    Case("404", "404, one name", "/none", status=404),
    Case("404-names", "404, 10,000 names", "missing", status=404),
    Case("mix", "1,000 files by Zipf", "mix"),
    Case("many", "40,000 files at random", "many", warm_s=2),
    Case("active", "1,000 active of 15,000", "/1k", ["-c", 1000], extra="idle", idle=IDLE - 1000, rounds=3),
    Case("idle", "1 KB beside 15,000 idle", extra="idle", idle=IDLE),
    Case("workers", "1 KB, two workers", extra="workers"),
    Case("shortlived", "30,000 short-lived, two workers", "/1k",
         ["-c", 30_000, "-t", 2, "-k", 1, "--ramp", 1], once=True, workers=2, seconds=6, rounds=3),
    Case("cold", "1 KB beside 8 cold downloads", load=HOT, extra="downloads", seconds=3, rounds=3),
    Case("slow", "1 KB beside 8 from a slow disk", load=HOT, extra="slow downloads", seconds=3, rounds=3),
    Case("tls-1k", "TLS, 1 KB", protocol="https"),
    Case("tls-16k", "TLS, 16 KB", "/16k", protocol="https"),
    Case("tls-100k", "TLS, 100 KB", "/100k", protocol="https"),
    Case("tls-10m", "TLS, 10 MB", "/10m", ["-c", 4], protocol="https", seconds=1.5),
    Case("handshake", "TLS, a full handshake each", "/1k", ONCE, protocol="https"),
    Case("resumed", "TLS, a connection each, resumed", "/1k", [*ONCE, "--resume"], protocol="https"),
    Case("tls-idle", "TLS, 1,000 idle", extra="idle", idle=IDLE_TLS, seconds=0, protocol="https"),
    Case("h2-1k", "HTTP/2, 1 KB", "/1k", STREAMS, protocol="h2"),
    Case("h2-16k", "HTTP/2, 16 KB", "/16k", STREAMS, protocol="h2"),
    Case("h2-100k", "HTTP/2, 100 KB", "/100k", STREAMS, protocol="h2"),
    Case("h2c-1k", "HTTP/2 without TLS, 1 KB", "/1k", STREAMS, protocol="h2c"),
    Case("h2-10m", "HTTP/2, 10 MB", "/10m", ["-c", 4, "-m", 1], protocol="h2", seconds=1.5),
]  # fmt: skip


def fail(text):
    sys.exit(f"versus: {text}")


# --- files ---


def make_files(servers, keys, seconds):
    for name, length in (("1k", KB), ("8k", 8 * KB), ("16k", 16 * KB), ("100k", 100 * KB), ("10m", 10 * KB * KB)):
        servers.add_file(name, length)
    sizes = random.Random(1)
    if "mix" in keys:
        for n in range(MIX_FILES):  # like web pages: median 8 KB, most between 1 and 64 KB
            servers.add_file(f"mix/{n}", min(int(sizes.lognormvariate(9, 1.3)), 1 << 20))
    if "many" in keys:
        for n in range(MANY_FILES):
            servers.add_file(f"many/{n // MANY_PER_DIRECTORY}/{n}", sizes.randint(1, MANY_BYTES))
    if {"cold", "slow"} & set(keys):
        megabytes = int(LINK_BYTES_S * (COLD_AHEAD_S + CASE["cold"].seconds * seconds)) >> 20
        for n in range(COLD_FILES):
            with open(servers.add_file(f"cold{n}", 0), "wb") as out:
                for _ in range(megabytes):
                    out.write(os.urandom(1 << 20))
                os.fsync(out.fileno())


def make_cold(servers):
    for n in range(COLD_FILES):
        with open(servers.root / f"cold{n}", "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def paths_of(case):
    if case.path == "many":
        return [f"/many/{n // MANY_PER_DIRECTORY}/{n}" for n in range(MANY_FILES)]
    names = {"mix": MIX_FILES, "missing": MISSING_NAMES}
    return [f"/{case.path}/{n}" for n in range(names[case.path])] if case.path in names else [case.path]


# --- answers ---


ANY_CERTIFICATE = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
ANY_CERTIFICATE.check_hostname = False
ANY_CERTIFICATE.verify_mode = ssl.CERT_NONE


def fetch_http2(server, path):
    """Fetches with curl, since http.client does not support HTTP/2."""
    how = "--http2" if server.protocol == "h2" else "--http2-prior-knowledge"
    done = subprocess.run(["curl", "-sSik", "--noproxy", "*", "-m", "10", how, server.url(path)], capture_output=True)
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    line, _, headers = head.partition(b"\r\n")
    if not line.startswith(b"HTTP/2 "):
        fail(f"{server.name} does not speak HTTP/2: {line.decode()}{done.stderr.decode()}")
    return int(line.split()[1]), message_from_bytes(headers), body


def fetch(server, method, path, headers):
    if server.protocol in ("h2", "h2c"):
        return fetch_http2(server, path)
    if server.protocol == "https":
        connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=10, context=ANY_CERTIFICATE)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    return response.status, response.headers, response.read()


def headers_of(case, server):
    if case.status != 304:
        return {}
    return {"If-Modified-Since": fetch(server, "HEAD", case.path, {})[1]["Last-Modified"]}


def check_answers(servers, case, server):
    """Compares the server's answers with the files, and fills its caches. Takes at most MIX_FILES
    paths."""
    method = "HEAD" if "HEAD" in case.load else "GET"
    for path in paths_of(case)[:MIX_FILES]:
        status, headers, body = fetch(server, method, path, headers_of(case, server))
        if status != case.status:
            fail(f"{server.name} answers {path} with {status}, not {case.status}")
        if status != 200:
            continue
        file = (servers.root / path[1:]).read_bytes()
        if int(headers["Content-Length"]) != len(file) or (method == "GET" and body != file):
            fail(f"{server.name} does not answer {path} with the file")


# --- a run ---


def generate(servers, case, words, seconds):
    """Runs a load generator for that long on its core; it only offers SUITE. Returns its output."""
    suite = servers.directory / "openssl.cnf"
    suite.write_text(f"openssl_conf = a\n[a]\nssl_conf = b\n[b]\nsystem_default = c\n[c]\nCiphersuites = {SUITE}\n")
    cores = servers.cores[1:] if case.workers == 1 and case.extra != "workers" else servers.cores
    for _ in range(ATTEMPTS):
        with contextlib.suppress(subprocess.TimeoutExpired):
            done = processes.run(words, cores=cores or servers.cores, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 env=os.environ | {"OPENSSL_CONF": str(suite)}, timeout=seconds + PATIENCE_S)  # fmt: skip
            if done.returncode not in (0, 1):
                fail(f"{' '.join(done.args)}: {done.stderr}")
            return done.stdout
    return fail(f"{' '.join(map(str, words))}: it does not end")


def run_h2load(servers, case, server, seconds, number):
    log = servers.directory / "result.log"
    log.unlink(missing_ok=True)  # otherwise it would be appended to
    words = ["h2load", *case.load, "-D", f"{seconds * case.seconds * 1000:.0f}ms", "--tls13-ciphers", SUITE, "--log-file", log]
    for line in heads.heads()[number % heads.COUNT]:
        words += ["-H", line]
    text = generate(servers, case, [*words, server.url(case.path)], seconds * case.seconds)
    try:
        result = h2load.measured(text, log.read_text(), (servers.root / case.path[1:]).stat().st_size)
    except h2load.NotUnderstood as error:
        fail(f"{server.name}: {error}")
    if result["protocol"] != case.protocol:
        fail(f"h2load speaks {result['protocol']} with {server.name}")
    return result | {"rate": result["answered"] / result["elapsed_s"], "verdict": "-"}


def run_httpbench(servers, case, server, seconds, _):
    output = servers.directory / "result.json"
    generator = [servers.build / "bench" / "httpbench", *case.load, "-d", seconds * case.seconds, "--json", output,
                 "--status", case.status, "--source", SOURCES, "--insecure", *heads.write(servers.directory / "heads")]  # fmt: skip
    generator += [] if "-k" in case.load else heads.KEPT
    for name, value in headers_of(case, server).items():
        generator += ["-H", f"{name}: {value}"]
    if len(paths_of(case)) > 1:
        urls = servers.directory / "urls"
        urls.write_text("\n".join(server.url(path) for path in paths_of(case)))
        generator += ["--urls", urls, "--zipf", 1 if case.path == "mix" else 0]
    else:
        generator.append(server.url(case.path))
    if case.status == 200 and case.path not in ("mix", "many", "/10m") and "HEAD" not in case.load:
        generator += ["--expect", servers.root / case.path[1:]]
    generate(servers, case, generator, seconds * case.seconds)
    result = json.loads(output.read_text())
    percentiles = result["durations"]["whole"]["percentiles_ns"]
    failed = sum(result["failed"].values())
    if case.path == "/10m" and result["bytes"] < result["answered"] * (servers.root / "10m").stat().st_size:
        failed += 1
    return {
        "answered": result["answered"],
        "rate": result["answered_per_s"],
        "percentiles_us": [(percentiles[p] or float("nan")) / 1e3 for p in ("50", "99", "99.9")],
        "failed": failed,
        "verdict": result["verdict"],
        "tls": result.get("tls"),
        "resumed": result["resumed"] / max(result["connected"], 1),
    }


def busy_s(cores):
    """Returns the seconds for which these cores have not been idle since the start (proc_stat(5):
    user, nice, system, irq and softirq)."""
    names, ticks = {f"cpu{core}" for core in cores}, 0
    for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
        name, *fields = line.split()
        if name in names:
            ticks += sum(int(fields[n]) for n in (0, 1, 2, 5, 6))
    return ticks / os.sysconf("SC_CLK_TCK")


def run(servers, case, server, seconds, number=0):
    """Runs the generator once, for a round with that number. Returns a dictionary of KEPT."""
    before, all_before = server.cpu_s(), busy_s(servers.cores)
    result = (run_h2load if case.protocol in ("h2", "h2c") else run_httpbench)(servers, case, server, seconds, number)
    cpu_s, all_s = server.cpu_s() - before, busy_s(servers.cores) - all_before
    if case.protocol in TLS_PROTOCOLS and result["tls"] != f"TLSv1.3 {SUITE}":
        fail(f"{server.name} speaks {result['tls']}, not TLSv1.3 {SUITE}")
    return {
        "rate": result["rate"],
        "cpu_us": cpu_s * 1e6 / max(result["answered"], 1),
        "all_us": all_s * 1e6 / max(result["answered"], 1),
        **dict(zip(("p50_us", "p99_us", "p999_us"), result["percentiles_us"])),
        "failed": result["failed"],
        "verdict": result["verdict"],
        "resumed": result.get("resumed", 0),
    }


# --- beside the load ---


def connection_to(server, number):
    """Returns a connection from an address; 5,000 of these numbers share one."""
    connection = bound_socket(f"127.0.2.{1 + number // 5000}")
    connection.settimeout(HOLD_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.connect(("127.0.0.1", server.port))
    return ANY_CERTIFICATE.wrap_socket(connection) if server.protocol == "https" else connection


def hold(server, count):
    """Returns connections that have each had an answer; fewer than count if the server takes no
    more."""
    held = []
    with contextlib.suppress(OSError):
        while len(held) < count:
            fresh = []
            for number in range(len(held), min(len(held) + HOLD_BATCH, count)):
                fresh.append(connection_to(server, number))
                fresh[-1].sendall(b"GET /1k HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            for connection in fresh:
                if not connection.recv(4096).startswith(b"HTTP/1.1 200"):
                    return held
                held.append(connection)
    return held


@contextlib.contextmanager
def idle_connections(server, count):
    """Holds connections in another process. Yields a function that waits until they are open, and
    returns how many there are."""

    def hold_for_long():
        held = hold(server, count)
        os.write(told, struct.pack("i", len(held)))
        time.sleep(HOUR_S)

    ready, told = os.pipe()
    with processes.forked(hold_for_long), open(ready, "rb") as answer:
        os.close(told)
        yield lambda: struct.unpack("i", answer.read(4))[0]


def download(servers, server):
    """Downloads each of the cold files at the rate of a link. Runs when the load leaves its core
    idle."""
    os.sched_setaffinity(0, servers.cores[1:] or servers.cores)
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    buffer = bytearray(LINK_BYTES_S // LINK_HZ)
    connections = []
    for n in range(COLD_FILES):
        connections.append(socket.create_connection(("127.0.0.1", server.port)))
        connections[-1].sendall(b"GET /cold%d HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % n)
        connections[-1].setblocking(False)
    tick = time.monotonic()
    while True:
        for connection in connections:
            with contextlib.suppress(BlockingIOError):
                connection.recv_into(buffer)
        tick += 1 / LINK_HZ
        time.sleep(max(0, tick - time.monotonic()))


@contextlib.contextmanager
def cold_downloads(servers, server):
    make_cold(servers)
    with processes.forked(download, servers, server):
        time.sleep(0.2)  # all of them are under way
        yield


def downloads_of(servers, case, server, name):
    """Returns a context for a run: the cold downloads, for the instance that has them."""
    cold = "downloads" in case.extra and name == server.name
    return cold_downloads(servers, server) if cold else contextlib.nullcontext()


# --- a case ---


class Results:
    """results[case key][server name][measure], one of KEPT: a list with a value for each round; see
    without()."""

    def __init__(self):
        self.cases = {}
        self.memory = {}  # [protocol][server name]: resident bytes of an idle connection
        self.failed = 0

    def add(self, case, name, measured):
        self.failed += measured["failed"] if name.split()[0] in ("gatling", "uring") else 0
        kept = self.cases.setdefault(case.key, {}).setdefault(name, {})
        for measure, value in measured.items():
            kept.setdefault(measure, []).append(value)

    def median(self, key, name, measure="cpu_us"):
        return statistics.median(self.cases[key][name][measure])

    def ratio(self, key, name, other, measure="cpu_us"):
        """Returns the median of the ratios in each round."""
        a, b = (self.cases[key][server][measure] for server in (name, other))
        return statistics.median(x / y for x, y in zip(a, b))


WITHOUT = " without"


def without(name):
    return name + WITHOUT


def run_case(servers, case, names, arguments, results):
    instances, short = [], set()  # servers with the names of their results; names of those that do not hold all idle connections
    with contextlib.ExitStack() as beside:
        if case.extra == "slow downloads":
            disk = beside.enter_context(SlowDisk(servers.root, SLOW_BYTES_S))
        for name in names:
            options = {"protocol": case.protocol}
            if name in YARDSTICKS:
                options |= {"file": case.path[1:], "once": case.once}
            if case.extra and case.seconds:
                instances.append((servers.start(name, 1, **options), without(name)))
            instances.append((servers.start(name, 2 if case.extra == "workers" else case.workers, **options), name))
        for server, _ in instances:
            beside.callback(servers.stop, server)
        opening = []  # all at the same time, since each server mostly waits for its client
        for server, name in instances:
            check_answers(servers, case, server)
            if case.warm_s:
                run(servers, case, server, case.warm_s)
            if case.extra == "slow downloads":
                disk.add(server.processes())
            if case.extra == "idle" and name == server.name:
                before = server.resident()
                opening.append((server, before, beside.enter_context(idle_connections(server, case.idle))))
        for server, before, held in [(server, before, wait()) for server, before, wait in opening]:
            results.memory.setdefault(case.protocol, {})[server.name] = (server.resident() - before) / held
            if held < 0.9 * case.idle:
                print(f"versus: {server.name} does not hold more than {held} connections", file=sys.stderr)
                short.add(server.name)
        instances = [(server, name) for server, name in instances if name not in short]
        for n in range(min(arguments.rounds, case.rounds) if case.seconds else 0):
            for server, name in instances:
                if n >= ROUNDS_MOST.get(server.name, arguments.rounds):
                    continue
                with downloads_of(servers, case, server, name):
                    results.add(case, name, run(servers, case, server, arguments.seconds, n))
        if arguments.profile and case.seconds:
            profile(servers, case, instances, arguments)


def profile(servers, case, instances, arguments):
    """Keeps the stacks of each server, from an additional run."""
    for server, name in instances:
        try:
            folded = arguments.out / f"{case.key}-{name}.folded"
            with downloads_of(servers, case, server, name), stacks.profile_process(",".join(map(str, server.processes())), folded):
                run(servers, case, server, arguments.seconds)
        except stacks.NoStacks as problem:
            print(f"versus: no profile of {name}: {problem}", file=sys.stderr)


def print_case(case, results):
    print(f"\n{case.title}")
    print(f"{'':18}" + "".join(f"{title:>11}" for title in MEASURES.values()) + f"{'least-most':>14}")
    for name, kept in results.cases[case.key].items():
        row = [statistics.median(kept[measure]) for measure in MEASURES]
        cpu, resumed = kept["cpu_us"], statistics.median(kept["resumed"])
        print(f"  {name:16}{row[0]:11.0f}{row[1]:11.2f}" + "".join(f"{v:11.0f}" for v in row[2:]) +
              f"  {min(cpu):.4g}-{max(cpu):.4g}" + (f"  {resumed:.0%} resumed" if resumed else "") + (f"  {sum(kept['failed'])} FAILED" if sum(kept["failed"]) else ""),
              flush=True)  # fmt: skip
    if case.path == "/10m":
        print("  all cores:" + "".join(f" {name} {results.median(case.key, name, 'all_us'):.0f} us" for name in results.cases[case.key]))


def print_table(results):
    """Prints each case and server that was measured, in one table."""
    names = list(dict.fromkeys(n for kept in results.cases.values() for n in kept if not n.endswith(WITHOUT) and n != "gatling"))
    if not names:
        return
    print(f"\n{'CPU of a request, gatling: 1':32}{'us':>9}" + "".join(f"{name:>10}" for name in names))
    for key, kept in results.cases.items():
        if "gatling" in kept:
            ratios = (f"{results.ratio(key, name, 'gatling'):10.2f}" if name in kept else f"{'-':>10}" for name in names)
            print(f"{CASE[key].title:32}{results.median(key, 'gatling'):9.2f}" + "".join(ratios))


# --- the claims ---


def claims(results, peers):
    """Yields the claims: functions that return a text, the figure and the limit, or fail if it was
    not measured."""
    r = results

    def best(key, measure="cpu_us"):
        return min((p for p in peers if p in r.cases[key]), key=lambda p: r.median(key, p, measure))

    def beside_best(key):
        peer = best(key)
        return f"{CASE[key].title}: CPU, ratio to {peer}", r.ratio(key, "gatling", peer)

    yield lambda: ("1 KB: CPU, ratio to the smallest program", r.ratio("1k", "gatling", "epoll"), 1.05)
    yield lambda: ("1 KB: CPU, ratio to nginx", r.ratio("1k", "gatling", "nginx"), 0.70)
    yield lambda: (*beside_best("1k"), 1)
    yield lambda: ("1 KB, a connection each: CPU, ratio to lazy", r.ratio("once-1k", "gatling", "lazy"), 1.10)
    for key, limit in (("once-1k", 0.85), ("16k", 0.85), ("100k", 1), ("10m", 0.9)):
        yield lambda key=key, limit=limit: (*beside_best(key), limit)
    for peer in ("nginx", "lighttpd"):
        yield lambda peer=peer: (f"10 MB: CPU of all cores, ratio to {peer}", r.ratio("10m", "gatling", peer, "all_us"), 1)
    yield lambda: ("16 pipelined: nginx's rate, ratio to ours", r.ratio("pipelined", "nginx", "gatling", "rate"), 1 / 3)
    yield lambda: ("idle connection: resident bytes", r.memory["http"]["gatling"], 256)
    yield lambda: ("p99 beside 15,000 idle, ratio to without", r.ratio("idle", "gatling", without("gatling"), "p99_us"), 1.1)
    for key, disk in (("cold", ""), ("slow", ", slow disk")):
        for name, limit in (("gatling", 2), ("nginx", None)):
            yield lambda key=key, disk=disk, name=name, limit=limit: (
                f"{name}: p99 beside cold downloads{disk}, ratio to without",
                r.ratio(key, name, without(name), "p99_us"), limit)  # fmt: skip
    yield lambda: ("two workers: CPU, ratio to one", r.ratio("workers", "gatling", without("gatling")), 1.05)
    for key, peer, limit in (("tls-1k", "h2o", 0.9), ("handshake", "nginx", 1), ("tls-10m", "h2o", 0.9), ("h2-1k", "h2o", 1)):
        yield lambda key=key, peer=peer, limit=limit: (
            f"{CASE[key].title}: CPU, ratio to {peer}", r.ratio(key, "gatling", peer), limit)  # fmt: skip
    yield lambda: ("idle connection with TLS: resident bytes", r.memory["https"]["gatling"], None)


CASE = {case.key: case for case in CASES}


def print_claims(results, peers):
    print("\nclaims")
    for figure in claims(results, peers):
        try:
            text, value, limit = figure()
        except (KeyError, ValueError):  # its case or its server was not measured
            continue
        verdict = "" if limit is None else "held" if value <= limit else "MISSED"
        print(f"  {text:62}{value:9.2f}" + (f"  <= {limit:.2f}  {verdict}" if limit else ""))


def write_tsv(path, results):
    with open(path, "w", encoding="utf-8") as out:
        print("case", "server", "round", *KEPT, sep="\t", file=out)
        for key, names in results.cases.items():
            for name, kept in names.items():
                for n, values in enumerate(zip(*(kept[measure] for measure in KEPT))):
                    print(key, name, n, *values, sep="\t", file=out)


def main():
    parser = argparse.ArgumentParser(description="gatling beside other servers")
    parser.add_argument("build")
    parser.add_argument("--only", default=",".join(CASE), help="cases: " + ", ".join(CASE))
    parser.add_argument("--servers", default=",".join(["gatling", "uring", *CONFIGURED, *YARDSTICKS]))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--profile", action="store_true", help="keep stacks, too, of one more run each (bench/suite/flame draws them)")
    parser.add_argument("--out", type=Path, default=Path("build/versus"))
    arguments = parser.parse_args()
    processes.end_on_signals()
    keys, names = arguments.only.split(","), arguments.servers.split(",")
    for key in keys:
        if key not in CASE:
            fail(f"there is no case {key}: {', '.join(CASE)}")
    names = those_installed(names, "versus")
    raise_descriptor_limit()
    arguments.out.mkdir(parents=True, exist_ok=True)
    results = Results()
    print(f"# {arguments.rounds} rounds of {arguments.seconds:g} s in turns; medians; least-most: CPU us")
    with Servers(arguments.build) as servers:
        make_files(servers, keys, arguments.seconds)
        for key in keys:
            case = CASE[key]
            missing = [program for program in NEEDED[case.protocol] if not shutil.which(program)]
            if missing:
                print(f"versus: no {key}: {' and '.join(missing)} not installed", file=sys.stderr)
                continue
            taking_part = [n for n in names if speaks(n, case.protocol) and (case.yardsticks or n not in YARDSTICKS)]
            try:
                run_case(servers, case, taking_part, arguments, results)
            except NoSlowDisk as error:
                print(f"versus: no slow disk here: {error}", file=sys.stderr)
                continue
            if case.seconds:
                print_case(case, results)
    for protocol, memory in results.memory.items():
        print(f"\nidle connection after one request, {protocol}, resident bytes")
        for name, held in memory.items():
            print(f"  {name:16}{held:11.0f}")
    print_table(results)
    print_claims(results, [n for n in names if n in CONFIGURED])
    write_tsv(arguments.out / "versus.tsv", results)
    if can_draw("versus"):
        plot(arguments.out, results, CASE)
    sys.exit(1 if results.failed else 0)  # failures of other servers do not count


if __name__ == "__main__":
    main()
