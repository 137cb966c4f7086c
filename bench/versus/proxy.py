"""Measures what it costs to pass requests on to an upstream, gatling beside nginx and h2o.

    proxy.py BUILD [--seconds N] [--rounds N] [--servers NAME,...]

Each passes requests for /up/ on to the same server, a second gatling, which is on another core with the generator. All keep
the connections on both sides open. The processor time of a request is that of the one that passes it on; ratios are of
neighbouring runs. nginx and h2o add X-Forwarded-For as gatling does.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import processes
import servers

FILES = {"1k": 1024, "100k": 100 * 1024}
CONNECTIONS = 64

NGINX = """
worker_processes 1;
daemon off;
pid {directory}/nginx.pid;
error_log /dev/null crit;
events {{ worker_connections 10000; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    upstream up {{ server 127.0.0.1:{upstream}; keepalive 128; keepalive_requests 1000000000; }}
    server {{
        listen 127.0.0.1:{port};
        location /up/ {{
            proxy_pass http://up/;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-For $remote_addr;
            proxy_set_header X-Forwarded-Proto $scheme;
        }}
    }}
}}
"""

H2O = """
num-threads: 1
user: root
pid-file: {directory}/h2o.pid
error-log: /dev/null
listen: {{host: 127.0.0.1, port: {port}}}
hosts:
  default:
    paths:
      /up:
        proxy.reverse.url: http://127.0.0.1:{upstream}/
        proxy.preserve-host: ON
"""


def commands(running, upstream):
    """Of each server: a port, and what is started."""
    root = running.directory / "rules"
    root.mkdir()
    (root / "_redirects").write_text(f"/up/* http://127.0.0.1:{upstream}/:splat 200\n")
    found = {"gatling": (servers.free_port(), [running.build / "gatling", "-j", 1, "-n", "--no-https", "--upstream", "127.0.0.1"])}
    found["gatling"][1].extend(["-i", "127.0.0.1", "-p", found["gatling"][0], root])
    for name, text, words in (("nginx", NGINX, ["nginx", "-c"]), ("h2o", H2O, ["h2o", "-m", "worker", "-c"])):
        port, path = servers.free_port(), running.directory / f"{name}.conf"
        path.write_text(text.format(directory=running.directory, port=port, upstream=upstream))
        found[name] = (port, [*words, path])
    return found


def measure(running, server, file, seconds):
    """Returns microseconds of the proxy's processor time for a request."""
    output = running.directory / "result.json"
    before = server.cpu_s()
    command = [running.build / "bench" / "httpbench", "-c", CONNECTIONS, "-d", seconds, "--json", output, "--expect",
               running.root / file, server.url(f"/up/{file}")]  # fmt: skip
    processes.run(list(map(str, command)), cores=running.cores[1:] or running.cores, stdout=subprocess.DEVNULL)
    result = json.loads(output.read_text())
    if sum(result["failed"].values()):
        sys.exit(f"proxy: {server.name}: requests have failed: {result['failed']}")
    return (server.cpu_s() - before) * 1e6 / result["answered"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--servers", default="gatling,nginx,h2o")
    arguments = parser.parse_args()
    names = servers.those_installed(arguments.servers.split(","), "proxy")
    with servers.Servers(arguments.build) as running:
        for name, length in FILES.items():
            running.add_file(name, length)
        upstream = running.start("gatling", workers=len(running.cores))
        started = {}
        for name, (port, command) in commands(running, upstream.port).items():
            if name in names:
                started[name] = servers.Server(name, port, "http", command, set(running.cores[:1]), running.directory)
                running.running.append(started[name])
        for file in FILES:
            found = {name: [] for name in started}
            for _ in range(arguments.rounds):
                for name, server in started.items():
                    found[name].append(measure(running, server, file, arguments.seconds))
            for name, values in found.items():
                ratios = [value / other for value, other in zip(values, found["gatling"])]
                print(f"{file:6}{name:10}{statistics.median(values):8.1f} us{statistics.median(ratios):8.2f} x gatling's")


if __name__ == "__main__":
    main()
