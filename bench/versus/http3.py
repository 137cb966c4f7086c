"""Measures HTTP/3 beside nginx and Caddy, and beside HTTP/2 of this server.

    http3.py BUILD [--turns N] [--seconds S] [--own ROOT] [--others ROOT]

BUILD is one with HTTP3=yes, whose httpbench makes the load. --own is the root of the system whose libraries BUILD takes,
--others that of the system in which nginx and Caddy are installed: by default this one. (Debian 13 with backports has
the libraries, and Debian forky nginx 1.30 and Caddy 2.11; see tests/root.py.) Takes root for these.

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
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path += [str(TOP / "bench"), str(TOP / "tests")]

import servers
from processes import Process
from root import environment, inside

IDLE, OPENS_S, SETTLES_S = 1000, 6, 2
MEGABYTES = 10
NGINX = """
worker_processes 1;
worker_rlimit_nofile 20000;
quic_bpf on;
daemon off;
pid {directory}/nginx.pid;
error_log /dev/null crit;
events {{ worker_connections 19000; }}
http {{
    access_log off;
    sendfile on;
    open_file_cache max=10000 inactive=3600s;
    open_file_cache_valid 60s;
    keepalive_requests 1000000000;
    keepalive_timeout 3600s;
    quic_gso on;
    http2 on;
    server {{
        listen 127.0.0.1:{port} quic reuseport;
        listen 127.0.0.1:{port} ssl;
        ssl_certificate {certificate};
        ssl_certificate_key {certificate};
        root {root};
    }}
}}
"""
CADDY = """
{{
    admin off
    auto_https off
    log {{
        output discard
    }}
    servers {{
        protocols h1 h2 h3
    }}
}}
https://127.0.0.1:{port} {{
    tls {certificate} {certificate}
    root * {root}
    file_server
}}
"""
# The arguments of httpbench for each row, the file, and by what the seconds of a request are multiplied.
ROWS = {
    "8 x 16": (["-c", 8, "-p", 16], "1k", 1e6),
    "8 x 1": (["-c", 8, "-p", 1], "1k", 1e6),
    "a connection": (["-c", 8, "-k", 1], "1k", 1e6),
    "10 MB": (["-c", 2, "-p", 1], "10m", 1e3 / MEGABYTES),
}


def port_of_both():
    """Returns a port that is free for TCP and UDP."""
    while True:
        port = servers.free_port()
        with socket.socket(type=socket.SOCK_DGRAM) as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Contest:
    def __init__(self, options, running):
        self.options, self.running = options, running
        shared = [str(running.directory), str(Path(options.build).resolve()), str(TOP)]
        self.own = inside(options.own, "/", *shared) if options.own else []
        self.others = inside(options.others, "/", *shared) if options.others else []
        self.generator = set(running.cores[1:]) or set(running.cores)

    def own_gatling(self, port):
        """Returns the beginning of the command for this server."""
        running = self.running
        return [*self.own, Path(self.options.build).resolve() / "gatling", "-c", running.root, "-i", "127.0.0.1", "-p", 0, "--https", "--tls-port", port,
                "--cert", running.certificate, "-n"]  # fmt: skip

    def start(self, name):
        running, port = self.running, port_of_both()
        values = {"port": port, "directory": running.directory, "root": running.root, "certificate": running.certificate}
        path = running.directory / f"{name}-{port}.conf"
        if name == "nginx":
            path.write_text(NGINX.format(**values))
            command = [*self.others, "nginx", "-c", path]
        elif name == "caddy":
            path.write_text(CADDY.format(**values))
            command = [*self.others, "env", f"HOME={running.directory}", "caddy", "run", "--adapter", "caddyfile", "--config", path]
        else:
            command = [*self.own_gatling(port), "-j", 1, "-T", 3600]
        server = servers.Server(name, port, "h2", list(map(str, command)), {running.cores[0]}, running.directory)
        running.running.append(server)
        return server

    def load(self, *flags):
        command = [*self.own, Path(self.options.build).resolve() / "bench/httpbench", "--insecure", "--json", "-", *flags]
        return Process(list(map(str, command)), self.generator, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment())

    def cost(self, server, protocol, row):
        flags, file, unit = ROWS[row]
        self.load(protocol, *flags, "-n", 200, server.url(f"/{file}")).communicate()
        before = server.cpu_s()
        said = self.load(protocol, *flags, "-d", self.options.seconds, server.url(f"/{file}")).communicate()[0]
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
    parser.add_argument("--own")
    parser.add_argument("--others")
    options = parser.parse_args()
    servers.raise_descriptor_limit()
    found = {}
    contestants = [("gatling", "--http3"), ("nginx", "--http3"), ("caddy", "--http3"), ("gatling", "--http2")]
    with servers.Servers(options.build) as running:
        running.add_file("1k", 1024)
        running.add_file("10m", MEGABYTES * 1000 * 1000)
        running.certificate.chmod(0o644)
        contest = Contest(options, running)
        for _ in range(options.turns):
            for name, protocol in contestants:
                server = contest.start(name)
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
