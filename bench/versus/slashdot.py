"""Measures a web server under a crowd: gatling beside other servers, at 0.5, 1, 2 and 4 times the
capacity of the machine.

    slashdot.py BUILD [--servers NAME,...] [--rate PAGES] [--pages N] [--assets N] [--seconds N] [--out DIR]

Each server has half of the cores, with a worker and SHARE of the time on each, and production
settings: its own timeouts and backlog, and connections up to the limit of descriptors (servers.py).
gatling-crowd(1), on all cores, plays the visitors. Each has its own address and requests two pages
with ten assets each (--pages, --assets), one request after the other on one connection, since no
browser pipelines; it thinks between pages. A page counts if all of it comes within PATIENCE_S. One
visitor in a hundred hardly reads, and one sends half a request.

First the capacity of each server is measured, with httpbench in closed loop. The capacity of the
machine is that of the best server, or --rate, in pages a second, so that the crowd is the same for
all. A server also has a run at KNEE times its own capacity, for its latency when it is not
overloaded. Each run has a new server. Its first WARM_UP_S do not count, since nobody has lost
patience yet. Kernel memory is that of the whole machine, minus what was used before. On a noisy
machine the peak, the best of five measurements, needs longer runs: with two seconds, goodput at 4
was 85 to 100 % of it, with ten seconds 99 %, twice.

DIR/slashdot.tsv has a row for each run, DIR/slashdot-seconds.tsv for each second;
DIR/slashdot-*.svg are the curves. The clients must not be the limit: clients on one core can
request as much as a server on another can do, but not four times as much. So the server gets a part
of a core, and does not pay for what the kernel does for the clients (smaller.py). A run in which
the clients were late nevertheless is marked, as its result says nothing about the server. "make
slashdot".
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import processes
import smaller
from curves import can_draw, draw
from servers import CONFIGURED, Servers, raise_descriptor_limit, tcp_memory, those_installed

KB = 1024
PAGE, ASSETS = 8 * KB, [n * KB for n in (1, 2, 2, 4, 4, 8, 8, 8, 16, 16)]
LOADS = ("knee", "0.5", "1", "4", "2")
KNEE = 0.8
THINK_S, PATIENCE_S = 1, 3
HOSTILE_PERCENT = 1  # of each kind
CLOSED_LOOP_S = 2
THREADS = 2  # of the crowd, at least; each has its own table of descriptors
SHARE = 0.25  # of each of its cores
WARM_UP_S = 5
MB = 1e6
COLUMNS = ["server", "load", "offered", "goodput", "p50_ms", "p99_ms", "refused", "cut", "late", "failed", "visitors", "open",
           "resident", "tcp", "slab", "server_cpu", "client_cpu", "lateness_ms", "limit"]  # fmt: skip
SECONDS = ["server", "load", "second", "arrived", "answered", "refused", "cut", "late", "failed", "p50_ms", "p99_ms", "open",
           "resident", "tcp", "slab"]  # fmt: skip


def fail(text):
    sys.exit(f"slashdot: {text}")


class Visit:
    """The requests of a visitor: a number of pages, each with a number of assets."""

    def __init__(self, pages, assets):
        self.pages, self.files = pages, {"page": PAGE} | {f"asset{n}": length for n, length in enumerate(ASSETS[:assets])}

    def urls(self, server):
        return [server.url(f"/{name}") for name in self.files]


def kernel_memory():
    """Returns the bytes of TCP buffers, and of the kernel's objects."""
    slab = int(Path("/proc/meminfo").read_text().split("Slab:")[1].split()[0])
    return {"tcp": tcp_memory(), "slab": slab * KB}


class Place:
    """The place where servers run: a share of some cores, with a worker on each; and the visit that
    is made."""

    def __init__(self, servers, share, visit):
        self.servers, self.share, self.visit, self.threads = servers, share, visit, max(THREADS, len(os.sched_getaffinity(0)))
        for file, length in visit.files.items():
            servers.add_file(file, length)

    def start(self, name):
        server = self.servers.start(name, len(self.servers.cores), production=True)
        self.share.add(server.processes())
        return server


def capacity(place, name):
    """Returns the pages a second with 64 clients, each of which makes a request as soon as the
    previous one is answered."""
    server, directory = place.start(name), place.servers.directory
    output, listed = directory / "result.json", directory / "urls"
    urls = place.visit.urls(server)
    listed.write_text("\n".join(urls))
    done = processes.run([place.servers.build / "bench" / "httpbench", "-c", 64, "-t", place.threads, "-k", place.visit.pages * len(urls),
                          "-d", CLOSED_LOOP_S, "--urls", listed, "--json", output],
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # fmt: skip
    place.servers.stop(server)
    if done.returncode:
        fail(f"{name}: httpbench: {done.stderr}")
    result = json.loads(output.read_text())
    return result["answered_per_s"] / len(urls)


def crowd_command(place, server, pages, seconds):
    visitors = pages / place.visit.pages / (1 - 2 * HOSTILE_PERCENT / 100)
    return [place.servers.build / "bench" / "crowd", "-R", f"{visitors:.1f}", "-d", seconds, "-w", WARM_UP_S,
            "-t", place.threads, "-p", place.visit.pages, "--think", THINK_S, "--patience", PATIENCE_S, "--slow", HOSTILE_PERCENT,
            "--half", HOSTILE_PERCENT, *place.visit.urls(server)]  # fmt: skip


class Reader:
    """Reads the output of crowd, and samples the server's memory each second."""

    def __init__(self, name, load, server, before):
        self.name, self.load, self.server, self.before = name, load, server, before
        self.total, self.seconds, self.heads = {}, [], []

    def memory(self):
        now = kernel_memory()
        return {"resident": self.server.resident(), **{key: max(0, now[key] - self.before[key]) for key in now}}

    def line(self, text):
        words = text.rstrip("\n").split("\t")
        if words[0] == "# second":
            self.heads = ["second", *words[1:]]
        elif text.startswith("# "):
            self.total[words[0][2:]] = words[1]
        else:
            self.seconds.append(dict(zip(self.heads, words)) | self.memory() | {"server": self.name, "load": self.load})

    def result(self, pages, seconds, server_cpu):
        """Returns a row of COLUMNS; memory and connections are maxima, failures are per second."""
        most = {key: max(float(row[key]) for row in self.seconds) for key in ("open", "resident", "tcp", "slab")}
        rates = {key: int(self.total[key]) / seconds for key in ("refused", "cut", "late", "failed")}
        row = {"server": self.name, "load": self.load, "offered": pages, "server_cpu": server_cpu / (seconds + WARM_UP_S),
               "visitors": sum(int(row["arrived"]) for row in self.seconds), "lateness_ms": self.total["lateness_p99_ms"],
               "limit": self.total.get("limit", "-")} | most | rates  # fmt: skip
        return row | {key: self.total[key] for key in ("goodput", "p50_ms", "p99_ms", "client_cpu")}


def run(place, name, load, pages, seconds):
    """Runs a crowd. Returns its row, and a row for each second."""
    before = kernel_memory()
    server = place.start(name)
    reader = Reader(name, load, server, before)
    begun = server.cpu_s()
    with processes.Process(crowd_command(place, server, pages, seconds), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           text=True) as process:  # fmt: skip
        for line in process.stdout:
            reader.line(line)
        process.wait()
    used = server.cpu_s() - begun
    place.servers.stop(server)
    if process.returncode not in (0, 1, 3) or len(reader.seconds) != seconds + WARM_UP_S:
        fail(f"{name}: crowd ended with {process.returncode} after {len(reader.seconds)} seconds")
    return reader.result(pages, seconds, used), reader.seconds


# --- results ---


def number(text):
    return float("nan") if text == "NA" else float(text)


def rows_of(rows, **wanted):
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def print_head():
    print(f"\n{'':10}{'load':>5}{'pages':>7}{'goodput':>9}{'p50':>7}{'p99 ms':>8}{'refused':>9}{'cut':>6}{'late':>7}{'failed':>8}"
          f"{'open':>7}{'resident':>10}{'TCP':>6}{'slab MB':>9}{'CPU':>6}{'clients':>9}")  # fmt: skip


def print_row(row):
    print(f"{row['server']:10}{row['load']:>5}{row['offered']:7.0f}{number(row['goodput']):9.0f}{number(row['p50_ms']):7.0f}"
          f"{number(row['p99_ms']):8.0f}{row['refused']:9.0f}{row['cut']:6.0f}{row['late']:7.0f}{row['failed']:8.0f}{row['open']:7.0f}"
          f"{row['resident'] / MB:10.0f}{row['tcp'] / MB:6.0f}{row['slab'] / MB:9.0f}{row['server_cpu']:6.2f}{row['client_cpu']:>9}"
          + (f"  CLIENTS: {row['limit'].split(':')[0]}" if row["limit"] != "-" else ""), flush=True)  # fmt: skip


def means(rows, key, by):
    """Returns {value of by: mean of key in the rows that have it}; nan if one of them has no
    number."""
    values = {}
    for row in rows:
        values.setdefault(row[by], []).append(number(row[key]))
    return {value: statistics.mean(those) for value, those in values.items()}


def print_shape(rows):
    """Prints how each server does under overload, compared to its best."""
    print(f"\n{'at 4':10}{'goodput':>9}{'of its peak':>13}{'p99 ms':>8}{'of that at its knee':>21}{'resident, of 1':>16}")
    for name in dict.fromkeys(row["server"] for row in rows):
        goodput, p99, resident = (means(rows_of(rows, server=name), key, "load") for key in ("goodput", "p99_ms", "resident"))
        print(f"{name:10}{goodput['4']:9.0f}{goodput['4'] / max(*goodput.values(), 1):13.0%}{p99['4']:8.0f}{p99['4'] / p99['knee']:21.1f}"
              f"{resident['4'] / resident['1']:16.1f}")  # fmt: skip


def write_tsv(path, columns, rows):
    with open(path, "w", encoding="utf-8") as out:
        print(*columns, sep="\t", file=out)
        for row in rows:
            values = (row[column] for column in columns)
            print(*(f"{value:.2f}" if isinstance(value, float) else value for value in values), sep="\t", file=out)


def plot(directory, rows, seconds):
    names = list(dict.fromkeys(row["server"] for row in rows))

    def by_load(key, scale=1):
        return {name: sorted((float(load), value / scale) for load, value in means(rows_of(rows, server=name), key, "load").items()
                             if load != "knee") for name in names}  # fmt: skip

    def by_second(load):
        return {name: sorted((int(second), value) for second, value
                             in means(rows_of(seconds, server=name, load=load), "answered", "second").items()) for name in names}  # fmt: skip

    load = "load, in what the machine can do"
    draw(directory / "slashdot-goodput.svg", "pages answered in time, a second", load, by_load("goodput"), "set logscale x 2")
    draw(directory / "slashdot-p50.svg", "half of the pages answered within, ms", load, by_load("p50_ms"), "set logscale x 2; set logscale y")
    draw(directory / "slashdot-p99.svg", "99 % of the pages answered within, ms", load, by_load("p99_ms"), "set logscale x 2; set logscale y")
    draw(directory / "slashdot-refused.svg", "pages refused, a second", load, by_load("refused"), "set logscale x 2")
    draw(directory / "slashdot-resident.svg", "resident memory, MB", load, by_load("resident", MB), "set logscale x 2")
    draw(directory / "slashdot-tcp.svg", "kernel memory of TCP buffers, MB", load, by_load("tcp", MB), "set logscale x 2")
    for load in ("1", "4"):
        draw(directory / f"slashdot-seconds-{load}.svg", f"pages answered in time, at load {load}", "second", by_second(load))


def main():
    parser = argparse.ArgumentParser(description="gatling beside other servers under a crowd")
    parser.add_argument("build")
    parser.add_argument("--servers", default=",".join(["gatling", *CONFIGURED]))
    parser.add_argument("--rate", type=float, help="pages a second that count as 1 (default: what the best server can do)")
    parser.add_argument("--pages", type=int, default=2, help="that a visitor asks for (default: 2)")
    parser.add_argument("--assets", type=int, default=len(ASSETS), help=f"of a page, at most {len(ASSETS)} (default: {len(ASSETS)})")
    parser.add_argument("--seconds", type=int, default=5, help="of a run that are measured (default: 5)")
    parser.add_argument("--out", type=Path, default=Path("build/versus"))
    arguments = parser.parse_args()
    processes.end_on_signals()
    if arguments.pages < 1 or not 0 <= arguments.assets <= len(ASSETS):
        fail(f"a visitor asks for one page at least, with at most {len(ASSETS)} assets")
    names = arguments.servers.split(",")
    for name in [n for n in names if n not in ("gatling", *CONFIGURED)]:
        fail(f"there is no server {name}: gatling, {', '.join(CONFIGURED)}")
    names = those_installed(names, "slashdot")
    raise_descriptor_limit()
    arguments.out.mkdir(parents=True, exist_ok=True)
    begun, rows, seconds = time.monotonic(), [], []
    with Servers(arguments.build) as servers:
        every = servers.cores
        servers.cores = every[: (len(every) + 1) // 2]
        with smaller.Share(SHARE * len(servers.cores)) as share, smaller.steered_loopback(set(every) - set(servers.cores)):
            place = Place(servers, share, Visit(arguments.pages, arguments.assets))
            able = {name: capacity(place, name) for name in names}
            print("pages a second in closed loop: " + ", ".join(f"{name} {rate:.0f}" for name, rate in able.items()))
            whole = arguments.rate or max(able.values())
            print(f"load 1: {whole:.0f} pages a second by {whole / arguments.pages:.0f} visitors; knee: {KNEE} of what a server can do")
            print_head()
            for name in names:
                for load in LOADS:
                    pages = KNEE * able[name] if load == "knee" else float(load) * whole
                    row, its_seconds = run(place, name, load, pages, arguments.seconds)
                    print_row(row)
                    rows.append(row)
                    seconds += its_seconds
    print_shape(rows)
    write_tsv(arguments.out / "slashdot.tsv", COLUMNS, rows)
    write_tsv(arguments.out / "slashdot-seconds.tsv", SECONDS, seconds)
    if can_draw("slashdot"):
        plot(arguments.out, rows, seconds)
    print(f"{len(rows)} runs in {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
