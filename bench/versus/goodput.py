"""Measures downloads over HTTP/3 and HTTP/2, by gatling and others, over networks with a delay, loss,
and a limit of their rate, in an emulated machine or on the kernel that runs: see delay.py, which
measures HTTP/1.1, and paths.py.

    goodput.py BUILD [--delays MS,...] [--losses PERCENT,...] [--rate MBIT] [--queue MS] [--controls NAME,...]
               [--downloads N] [--megabytes N] [--kernel KERNEL] [--out DIR]

BUILD is that of http3.py. The rate is that of each direction, in Mbit/s; what
exceeds it waits in a queue for --queue milliseconds at most, beside what is under way. TCP and QUIC
share the server's congestion control, cubic or bbr; nginx and Caddy use what they have for QUIC,
and are measured with the first one alone. Clients come one after the other, each with its own
connection, whose windows are open. The client is httpbench for all.

Goodput is that of the median download, from the first packet of the connection on, in MB/s.
DIR/goodput.tsv has a row for each network and server. "make delay".
"""

import json
import sys
import tempfile
import time
from pathlib import Path

sys.path += [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[1] / "suite")]

from guests import programs_of
from paths import (NEAR, SHELL, GuestError, Missing, files_of, kernel_of, networks, opening, parse_options, parser_of,
                   program, run, write_tsv)  # fmt: skip
from processes import end_on_signals
from servers import CONFIGURED, configuration, make_certificate, those_installed, versions

PORTS = {"gatling": 8000, "nginx": 8001, "caddy": 8002}
CONTESTANTS = [("gatling", "h3"), ("nginx", "h3"), ("caddy", "h3"), ("gatling", "h2")]
FLAGS = {"h3": "--http3", "h2": "--http2"}
MB, PACKET_BITS = 10**6, 1500 * 8
COLUMNS = ["control", "loss", "delay_ms", "server", "protocol", "goodput"]


def fail(text):
    sys.exit(f"goodput: {text}")


# --- the guest ---


def commands(arguments):
    """Returns the command that starts each server in a guest."""
    found = {"gatling": f"gatling -c /www -i {NEAR} -p 0 --https --tls-port {PORTS['gatling']} --cert /certificate.pem -n -j 1 -T 3600"}
    for name in [name for name in arguments.servers if name in CONFIGURED]:
        found[name] = " ".join([*CONFIGURED[name][1], f"/{name}.conf"])
    return found


def written(arguments):
    """Returns {path in a guest: content} of the certificate, the download and the configurations."""
    found = {"certificate.pem": make_certificate(NEAR), "www/download": bytes(arguments.megabytes * MB)}
    for name in [name for name in arguments.servers if name in CONFIGURED]:
        text = configuration(name, PORTS[name], "/www", "/tmp", "h3", "/certificate.pem")
        found[f"{name}.conf"] = text.replace("127.0.0.1", NEAR).encode()
    return found | {f"etc/{name}": Path("/etc", name).read_bytes() for name in ("passwd", "group")}


def contestants(arguments, control):
    """Returns those for which the server's congestion control makes a difference, or all with the first one."""
    return [(name, protocol) for name, protocol in CONTESTANTS
            if name in arguments.servers and (name == "gatling" or control == arguments.controls[0])]  # fmt: skip


def plan(opened, arguments, control):
    """Returns the lines of a plan, which begins with `opened`."""
    lines = [*opened, *(f"{name} {SHELL} serve {commands(arguments)[name]}" for name in arguments.servers)]
    for network, (loss, delay_ms) in networks(arguments).items():
        packets = (delay_ms / 2 + arguments.queue) * arguments.rate * 1000 / PACKET_BITS
        lines.append(f"{network} {SHELL} network {delay_ms / 2:g} {loss:g} {packets:.0f} {arguments.rate}mbit")
        for name, protocol in contestants(arguments, control):
            lines.append(f"{network}-{name}-{protocol} {SHELL} load httpbench {FLAGS[protocol]} --insecure -n {arguments.downloads} "
                         f"https://{NEAR}:{PORTS[name]}/download")  # fmt: skip
    return lines


# --- results ---


def goodput(text, megabytes):
    """Returns that of the median download, of what httpbench has said."""
    result = json.loads(text)
    if sum(result["failed"].values()):
        raise GuestError(f"downloads have failed: {result['failed']}", b"")
    return megabytes / result["durations"]["whole"]["percentiles_ns"]["50"] * 1e9


def measure(image, arguments, control):
    """Returns a row for each network and contestant."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        files = files_of(image, [control], written(arguments), directory)
        files |= programs_of(*(arguments.build / name for name in ("gatling", "bench/httpbench")))
        files |= programs_of(*(program(name) for name in arguments.servers if name in CONFIGURED))
        texts = run(image, files, plan(opening(files, control), arguments, control), arguments.build, directory)
    return [dict(zip(COLUMNS, (control, loss, delay_ms, name, protocol, goodput(texts[f"{network}-{name}-{protocol}"], arguments.megabytes))))
            for network, (loss, delay_ms) in networks(arguments).items() for name, protocol in contestants(arguments, control)]  # fmt: skip


def print_table(rows):
    """Prints a line for each network and congestion control, with a column for each contestant."""
    print(f"{'':6}{'loss':>5}{'delay':>7}  " + "".join(f"{f'{name} {protocol}':>13}" for name, protocol in CONTESTANTS))
    found = {}
    for row in rows:
        found.setdefault((row["control"], row["loss"], row["delay_ms"]), {})[row["server"], row["protocol"]] = row["goodput"]
    for (control, loss, delay_ms), values in found.items():
        print(f"{control:6}{loss:4g}%{delay_ms:7g}  " + "".join(f"{values[each]:13.3f}" if each in values else f"{'':13}" for each in CONTESTANTS))


def parse():
    parser = parser_of("downloads over HTTP/3 and HTTP/2, over networks with a delay and loss", PORTS)
    parser.add_argument("--rate", type=int, default=200, metavar="MBIT", help="of each direction (default: 200)")
    parser.add_argument("--queue", type=float, default=50, metavar="MS", help="at that rate (default: 50)")
    parser.add_argument("--downloads", type=int, default=3, help="of each (default: 3)")
    parser.add_argument("--megabytes", type=int, default=5, help="of a download (default: 5)")
    return parse_options(parser, PORTS, fail)


def main():
    arguments = parse()
    end_on_signals()
    arguments.servers = those_installed(arguments.servers, "goodput")
    arguments.out.mkdir(parents=True, exist_ok=True)
    begun, rows = time.monotonic(), []
    try:
        version, image = kernel_of(arguments)
        print(versions())
        print(f"{version}: {arguments.downloads} downloads of {arguments.megabytes} MB, {arguments.rate} Mbit/s, a queue of {arguments.queue:g} ms; MB/s",
              flush=True)  # fmt: skip
        for control in arguments.controls:
            rows += measure(image, arguments, control)
    except (Missing, GuestError) as problem:
        fail(str(problem))
    print_table(rows)
    write_tsv(arguments.out / "goodput.tsv", rows)
    print(f"{len(rows)} rows in {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
