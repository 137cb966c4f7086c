"""Measures what it costs to pass requests to an upstream: gatling beside nginx, h2o and HAProxy.

    proxy.py BUILD [--seconds N] [--rounds N] [--servers NAME,...] [--only CASE,...]

    proxy-1k, -100k, -10m  files of a second gatling, over connections that are kept
    tls-1k, -100k          the same over TLS, whose certificate is looked at
    proxy-post-1m          1 MB of content to a program that only reads it (responder.c)
    fcgi-1k                1 KB of a program over FastCGI, a connection for each request

Upstream and generator are on another core. The processor time of a request is that of the server
that passes it on; ratios are of neighbouring runs. Requests have the heads of heads.py, but for
proxy-post-1m. All servers add X-Forwarded-For. HAProxy does
not speak FastCGI in the way that the others are configured, and is left out.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import heads
import processes
import servers

FILES = {"1k": 1024, "100k": 100 * 1024, "10m": 10 * 1024 * 1024}
CONNECTIONS, PROCESSES = 64, 64  # of the generator; of a program that handles one request at a time
CONTENT = 1_000_000

NGINX = """
worker_processes 1;
daemon off;
pid {directory}/nginx.pid;
error_log /dev/null crit;
events {{ worker_connections 10000; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    client_max_body_size 10m;
    proxy_http_version 1.1;
    proxy_request_buffering off;
    proxy_set_header Connection "";
    proxy_set_header Host $host;
    proxy_set_header X-Forwarded-For $remote_addr;
    proxy_set_header X-Forwarded-Proto $scheme;
    proxy_ssl_verify on;
    proxy_ssl_trusted_certificate {certificate};
    proxy_ssl_name localhost;
    proxy_ssl_server_name on;
    proxy_ssl_protocols TLSv1.2 TLSv1.3;
    upstream tls {{ server 127.0.0.1:{tls}; keepalive 128; keepalive_requests 1000000000; }}
    upstream up {{ server 127.0.0.1:{upstream}; keepalive 128; keepalive_requests 1000000000; }}
    upstream post {{ server 127.0.0.1:{post}; keepalive 128; keepalive_requests 1000000000; }}
    server {{
        listen 127.0.0.1:{port};
        location /up/ {{ proxy_pass http://up/; }}
        location /tls/ {{ proxy_pass https://tls/; }}
        location /post {{ proxy_pass http://post; }}
        location /fcgi {{
            fastcgi_pass 127.0.0.1:{fcgi};
            include /etc/nginx/fastcgi_params;
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
proxy.preserve-host: ON
proxy.ssl.cafile: {certificate}
hosts:
  default:
    paths:
      /up:
        proxy.reverse.url: http://127.0.0.1:{upstream}/
      /tls:
        proxy.reverse.url: https://localhost:{tls}/
      /post:
        proxy.reverse.url: http://127.0.0.1:{post}/
      /fcgi:
        fastcgi.connect: {{host: 127.0.0.1, port: {fcgi}, type: tcp}}
"""

HAPROXY = """
global
    nbthread 1
    maxconn 5000
defaults
    mode http
    timeout connect 20s
    timeout client 20s
    timeout server 20s
    http-reuse always
    option forwardfor
    option splice-response
frontend f
    bind 127.0.0.1:{port}
    use_backend post if {{ path_beg /post }}
    use_backend tls if {{ path_beg /tls }}
    default_backend up
backend up
    http-request replace-path /up(.*) \\1
    server s 127.0.0.1:{upstream}
backend tls
    http-request replace-path /tls(.*) \\1
    server s 127.0.0.1:{tls} ssl verify required ca-file {certificate} sni str(localhost) verifyhost localhost
backend post
    server s 127.0.0.1:{post}
"""

RULES = """/up/* http://127.0.0.1:{upstream}/:splat 200
/tls/* https://localhost:{tls}/:splat 200
/post http://127.0.0.1:{post} 200
/fcgi fcgi://127.0.0.1:{fcgi}/ 200
"""


def commands(running, ports):
    """Returns a port and a command for each server."""
    root = running.directory / "rules"
    root.mkdir()
    (root / "_redirects").write_text(RULES.format(**ports))
    found = {"gatling": (servers.free_port(), [running.build / "gatling", "-j", 1, "-n", "--no-https", "--upstream", "127.0.0.1", "--upstream", f"https://localhost:{ports['tls']}",
                                                 "--upstream-ca", running.certificate])}  # fmt: skip
    found["gatling"][1].extend(["-i", "127.0.0.1", "-p", found["gatling"][0], root])
    for name, text, words in (("nginx", NGINX, ["nginx", "-c"]), ("h2o", H2O, ["h2o", "-m", "worker", "-c"]), ("haproxy", HAPROXY, ["haproxy", "-f"])):
        port, path = servers.free_port(), running.directory / f"{name}.conf"
        path.write_text(text.format(directory=running.directory, port=port, certificate=running.certificate, **ports))
        found[name] = (port, [*words, path])
    return found


def ask(running, server, path, seconds, expected):
    """Returns how many requests were answered."""
    output = running.directory / "result.json"
    command = [running.build / "bench" / "httpbench", "-c", CONNECTIONS, "-d", seconds, "--json", output, *expected,
               *heads.write(running.directory / "heads"), *heads.KEPT, server.url(path)]  # fmt: skip
    processes.run(list(map(str, command)), cores=running.cores[1:] or running.cores, stdout=subprocess.DEVNULL)
    result = json.loads(output.read_text())
    if sum(result["failed"].values()):
        sys.exit(f"proxy: {server.name}: requests have failed: {result['failed']}")
    return result["answered"]


def post(running, server, path, seconds):
    content = running.directory / "content"
    content.write_bytes(bytes(CONTENT))
    command = ["h2load", "--h1", "-c", "8", "-D", max(1, round(seconds)), "-d", content, server.url(path)]
    said = processes.run(list(map(str, command)), cores=running.cores[1:] or running.cores, stdout=subprocess.PIPE).stdout.decode()
    done, failed = (int(re.search(rf"(\d+) {word}", said).group(1)) for word in ("succeeded", "failed"))
    if failed or not done:
        sys.exit(f"proxy: {server.name}: requests have failed: {said}")
    return done


def measure(running, server, case, seconds):
    """Returns the proxy's processor time for a request, in microseconds."""
    before = server.cpu_s()
    if case == "proxy-post-1m":
        answered = post(running, server, "/post", seconds)
    elif case == "fcgi-1k":
        answered = ask(running, server, "/fcgi", seconds, [])
    else:
        kind, file = case.split("-")
        answered = ask(running, server, f"/{'tls' if kind == 'tls' else 'up'}/{file}", seconds, ["--expect", running.root / file])
    return (server.cpu_s() - before) * 1e6 / answered


def start_upstreams(running):
    """Starts the upstreams. Returns their ports."""
    cores = set(running.cores[1:] or running.cores)
    ports = {name: running.start("gatling", workers=len(running.cores), protocol=protocol).port for name, protocol in (("upstream", "http"), ("tls", "https"))}
    for name, kind, length in (("post", "http", 2), ("fcgi", "fcgi", 1024)):
        ports[name] = servers.free_port()
        command = [running.build / "bench" / "responder", kind, ports[name], length, PROCESSES]
        running.running.append(servers.Server(f"responder {kind}", ports[name], "http", command, cores, running.directory))
    return ports


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--servers", default="gatling,nginx,h2o,haproxy")
    parser.add_argument("--only", default="proxy-1k,proxy-100k,proxy-10m,tls-1k,tls-100k,proxy-post-1m,fcgi-1k")
    arguments = parser.parse_args()
    names = servers.those_installed(arguments.servers.split(","), "proxy")
    with servers.Servers(arguments.build) as running:
        for name, length in FILES.items():
            running.add_file(name, length)
        started = {}
        for name, (port, command) in commands(running, start_upstreams(running)).items():
            if name in names:
                started[name] = servers.Server(name, port, "http", command, set(running.cores[:1]), running.directory)
                running.running.append(started[name])
        for case in arguments.only.split(","):
            asked = {name: server for name, server in started.items() if case != "fcgi-1k" or name != "haproxy"}
            found = {name: [] for name in asked}
            for _ in range(arguments.rounds):
                for name, server in asked.items():
                    found[name].append(measure(running, server, case, arguments.seconds))
            for name, values in found.items():
                ratios = [value / other for value, other in zip(values, found["gatling"])]
                print(f"{case:14}{name:10}{statistics.median(values):8.1f} us{statistics.median(ratios):8.2f} x gatling's", flush=True)


if __name__ == "__main__":
    main()
