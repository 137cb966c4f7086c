"""Measures gatling beside nginx over networks with a delay and loss, with each congestion control,
in an emulated machine (paths.py). Its clock counts instructions, so that waiting takes no real time,
and each run has the same result.

    delay.py BUILD [--servers NAME,...] [--controls NAME,...] [--delays MS,...] [--losses PERCENT,...] [--pages N]
             [--connections N] [--downloads N] [--megabytes N] [--kernel KERNEL] [--out DIR]

KERNEL is a package of Debian, or the beginning of its version, see bench/suite/vm. It is booted
once for each congestion control. "this" is the running kernel, if it has netem: it is not emulated,
but waits in real time, for 40 minutes by default. In each direction, packets are delayed by half of
the delay (the round-trip time), and the same share of them is lost. Bandwidth is not limited; at 0
ms the processor is the limit. Each server has one worker and its configuration from servers.py,
without TLS.

Clients come one after the other, each with its own connection. "first byte" is the time from
connect(2) to the end of a page of 1 KiB, which is one segment; "kept" is the time from the request
to the first byte on an idle connection, one of --connections that are open (connbench). Goodput is
that of the median download, from connect(2) on; the mean would depend on how often a SYN was lost,
which takes a second. "Queued" is what the sender's kernel holds (SIOCOUTQ): what is under way and
what is unsent, which only takes memory. queued.c samples it; the values are the mean and the
maximum of the samples that were not 0.

DIR/delay.tsv has a row for each network and server; DIR/delay-*.svg are the curves. "make delay".
"""

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from curves import can_draw, draw_panels
from paths import (LARGE, NEAR, SHELL, GuestError, Missing, files_of, kernel_of, networks, opening, parse_options, parser_of, program, programs_of,
                   run, write_tsv)  # fmt: skip
from processes import end_on_signals
from servers import configuration, those_installed

PORTS = {"gatling": 8000, "nginx": 8001}
PAGE, MB = 1024, 10**6
LOOK_US = 5000  # at least
SAMPLES = 25  # of connbench
COLUMNS = ["control", "loss", "delay_ms", "server", "first_p50_ms", "first_p99_ms", "kept_p50_ms", "goodput", "queued", "queued_max", "unsent",
           "unsent_max"]  # fmt: skip
MEASURES = {
    "first_p50_ms": "half of the first bytes within, ms",
    "first_p99_ms": "99 % of the first bytes within, ms",
    "kept_p50_ms": "half of the first bytes on a connection that is kept within, ms",
    "goodput": "goodput, MB/s",
    "queued": "queued in the kernel of the sender, MB",
}

def fail(text):
    sys.exit(f"delay: {text}")


# --- the guest ---


def commands():
    """Returns the command that starts each server in a guest."""
    return {
        "gatling": f"gatling -c /www -i {NEAR} -p {PORTS['gatling']} -n -j 1 -T 3600",
        "nginx": "nginx -c /nginx.conf",
    }


def nginx_configuration():
    return configuration("nginx", PORTS["nginx"], "/www", "/tmp", listen=" deferred reuseport").replace("127.0.0.1", NEAR)


def files(image, arguments, control, directory):
    """Returns the files of a guest: {path in it: file}. image: None if it runs on this kernel."""
    written = {"nginx.conf": nginx_configuration().encode(), "www/page": bytes(PAGE), "www/download": bytes(arguments.megabytes * MB)}
    found = files_of(image, [control], written, directory)
    found |= programs_of(*(arguments.build / name for name in ("gatling", "bench/httpbench", "bench/connbench")))
    found["bin/queued"] = arguments.build / "bench" / "queued"
    if "nginx" in arguments.servers:
        found |= programs_of(program("nginx")) | {f"etc/{name}": Path("/etc", name) for name in ("passwd", "group")}
    return found


def plan(opened, arguments):
    """Returns the lines of a plan, which begins with `opened`."""
    lines = [*opened, *(f"{name} {SHELL} serve {commands()[name]}" for name in arguments.servers)]
    for network, (loss, delay_ms) in networks(arguments).items():
        lines.append(f"{network} {SHELL} network {delay_ms / 2:g} {loss:g} {LARGE}")
        look_us = max(LOOK_US, 1000 * delay_ms / 5)
        for name in arguments.servers:
            start, url, count = f"{network}-{name}", f"http://{NEAR}:{PORTS[name]}", arguments.connections
            lines.append(f"{start}-page {SHELL} load httpbench -n {arguments.pages} {url}/page")
            lines.append(f"{start}-kept {SHELL} kept connbench -n {count} -i {count} -s {SAMPLES} {url}/page")
            lines.append(f"{start}-download {SHELL} queue {PORTS[name]} {look_us:g} httpbench -n {arguments.downloads} {url}/download")
    return lines


# --- results ---


def first_byte_kept_ms(table):
    """Returns the median of connbench's samples on idle connections."""
    head, *rows = (line.removeprefix("# ").split("\t") for line in table.splitlines() if line.startswith("# open\t") or line[:1].isdigit())
    found = [row["first_byte_idle_ns"] for row in (dict(zip(head, row)) for row in rows)]
    return statistics.median(int(ns) for ns in found if ns != "NA") / 1e6


def row_of(start, page, kept, download, megabytes):
    """Returns a row of COLUMNS, which begins with start. page, kept, download: the output of these
    commands in a guest."""
    queued, result = download.split("\n", 1)
    first, whole = (json.loads(text)["durations"]["whole"]["percentiles_ns"] for text in (page, result))
    values = [first["50"] / 1e6, first["99"] / 1e6, first_byte_kept_ms(kept), megabytes / whole["50"] * 1e9]
    return dict(zip(COLUMNS, [*start, *values, *(int(number) / MB for number in queued.split()[1:])]))


def measure(image, arguments, control):
    """Returns a row for each network and server."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        its_files = files(image, arguments, control, directory)
        texts = run(image, its_files, plan(opening(its_files, control), arguments), arguments.build, directory)
    return [row_of((control, loss, delay_ms, server), *(texts[f"{network}-{server}-{what}"] for what in ("page", "kept", "download")),
                   arguments.megabytes)
            for network, (loss, delay_ms) in networks(arguments).items() for server in arguments.servers]  # fmt: skip


def print_head():
    print(f"\n{'':5}{'loss':>5}{'delay':>6}  {'':7}{'first byte ms':>14}{'p99':>9}{'kept':>8}{'MB/s':>9}{'queued':>8}{'unsent':>7}")


def print_row(row):
    print(f"{row['control']:5}{row['loss']:4g}%{row['delay_ms']:6g}  {row['server']:7}{row['first_p50_ms']:14.2f}{row['first_p99_ms']:9.2f}"
          f"{row['kept_p50_ms']:8.2f}{row['goodput']:9.3f}{row['queued']:8.3f}{row['unsent']:7.3f}", flush=True)  # fmt: skip


def plot(directory, rows, arguments):
    """Draws a panel for each loss, with a curve for each server and congestion control; the delays
    are equally spaced."""
    ticks = ", ".join(f'"{delay:g}" {place}' for place, delay in enumerate(arguments.delays))
    for measure, title in MEASURES.items():
        panels = {}
        for row in rows:
            curves = panels.setdefault(f"{title}: {row['loss']:g} % lost", {})
            place = arguments.delays.index(row["delay_ms"])
            curves.setdefault(f"{row['server']}, {row['control']}", []).append((place, row[measure]))
        name = measure.removesuffix("_ms").replace("_", "-")
        draw_panels(directory / f"delay-{name}.svg", "round-trip time, ms", panels, f"set xtics ({ticks}); set logscale y")


def parse():
    parser = parser_of("gatling beside nginx over networks with a delay and loss", PORTS)
    parser.add_argument("--pages", type=int, default=500, help="for the first byte (default: 500)")
    parser.add_argument("--connections", type=int, default=200, help="that are open and idle (default: 200)")
    parser.add_argument("--downloads", type=int, default=20, help="for goodput (default: 20)")
    parser.add_argument("--megabytes", type=int, default=2, help="of a download (default: 2)")
    arguments = parse_options(parser, PORTS, fail)
    if "/" in arguments.kernel:
        fail(f"{arguments.kernel}: not a package, and its modules are needed, too: --kernel 6.12")
    return arguments


def main():
    arguments = parse()
    end_on_signals()
    arguments.servers = those_installed(arguments.servers, "delay")
    if not arguments.servers:
        fail("there is no server to measure: make deps FOR=delay")
    arguments.out.mkdir(parents=True, exist_ok=True)
    begun, rows = time.monotonic(), []
    try:
        version, image = kernel_of(arguments)
        print(f"{version}: {arguments.pages} pages, {arguments.downloads} downloads of {arguments.megabytes} MB")
        print_head()
        for control in arguments.controls:
            for found in measure(image, arguments, control):
                print_row(found)
                rows.append(found)
    except (Missing, GuestError) as problem:
        fail(str(problem))
    write_tsv(arguments.out / "delay.tsv", rows)
    if can_draw("delay"):
        plot(arguments.out, rows, arguments)
    print(f"{len(rows)} rows in {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
