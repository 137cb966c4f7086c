"""The servers of revisits.py, each configured for a static site as its manual says.

All are told which names contain a hash of the content: these are immutable, all else is to be revalidated; gatling recognises
them itself. nginx compresses at level 6, the default of its brotli module, which Debian packages. Caddy is told to compress, and
takes its own levels. Nobody finds compressed files beside the others: no builder of these sites writes any.
"""

import contextlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from processes import Process
from servers import START_S, free_port

TYPES = ("text/plain text/css text/javascript text/markdown application/javascript application/json application/manifest+json "
         "application/xml application/rss+xml application/wasm image/svg+xml font/ttf")  # fmt: skip

NGINX = """
{module}
user root;
worker_processes 1;
daemon off;
pid {directory}/nginx.pid;
error_log {directory}/nginx.log;
events {{}}
http {{
    include /etc/nginx/mime.types;
    types {{ text/javascript mjs; text/markdown md; application/manifest+json webmanifest; }}
    access_log off;
    sendfile on;
    tcp_nopush on;
    gzip on;
    gzip_vary on;
    gzip_comp_level 6;
    gzip_min_length 256;
    gzip_types {types};
    {brotli}
    server {{
        listen 127.0.0.1:{port} ssl;
        http2 on;
        ssl_certificate {certificate};
        ssl_certificate_key {certificate};
        root {root};
        add_header Cache-Control no-cache;
        location / {{ try_files $uri $uri.html $uri/ =404; }}
        location ~ "{hashed}" {{ add_header Cache-Control "public, max-age=31536000, immutable"; }}
    }}
}}
"""
BROTLI_MODULE = "load_module /usr/lib/nginx/modules/ngx_http_brotli_filter_module.so;"
BROTLI = f"brotli on; brotli_comp_level 6; brotli_min_length 256; brotli_types {TYPES};"

CADDY = """
{{
    admin off
    auto_https off
    servers {{
        protocols h1 h2
    }}
    log {{
        output discard
    }}
}}
https://localhost:{port} {{
    bind 127.0.0.1
    tls {certificate} {certificate}
    root * {root}
    encode zstd gzip
    @hashed path_regexp "{hashed}"
    @others not path_regexp "{hashed}"
    header @others Cache-Control no-cache
    header @hashed Cache-Control "public, max-age=31536000, immutable"
    try_files {{path}} {{path}}.html
    file_server
}}
"""

# Of each site, the names that contain a hash.
HASHED = {
    "vite": r"^/assets/",
    "next": r"^/_next/static/",
    "mkdocs": r"^/assets/.*\.[0-9a-f]{8}\.min\.",
    "hugo": r"\.[0-9a-f]{64}\.",
    "docusaurus": r"^/assets/",
}
NAMES = ("nginx", "nginx-brotli", "caddy", "gatling")


def _process_files(pid, name):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_text()
    return ""


class Server:
    """A server of root. releases: a directory with older ones; root is a symbolic link to one of them."""

    def __init__(self, name, site, root, build, directory, certificate, releases=None):
        self.name, self.port = name, free_port()
        values = {"directory": directory, "port": self.port, "root": root, "certificate": certificate, "hashed": HASHED[site], "types": TYPES}
        path = directory / f"{name}.conf"
        if name == "gatling":
            command = [build / "gatling", "-c", root, "-i", "127.0.0.1", "-p", 0, "--https", "--tls-port", self.port, "--cert", certificate, "-n", "-j", 1]
            command += ["--status", f"unix:{directory}/status", *(["--dictionaries", releases] if releases else [])]
        elif name == "caddy":
            path.write_text(CADDY.format(**values))
            command = ["caddy", "run", "--adapter", "caddyfile", "--config", path]
        else:
            with_brotli = name == "nginx-brotli"
            path.write_text(NGINX.format(**values, module=BROTLI_MODULE * with_brotli, brotli=BROTLI * with_brotli))
            command = ["nginx", "-c", path]
        environment = os.environ | {"XDG_CONFIG_HOME": str(directory), "XDG_DATA_HOME": str(directory)}
        said = directory / f"{name}.stderr"
        with open(said, "wb") as stderr:
            self.process = Process(command, stdout=subprocess.DEVNULL, stderr=stderr, env=environment)
        deadline = time.monotonic() + START_S
        while not self._listens():
            if time.monotonic() > deadline or self.process.poll() is not None:
                self.process.stop()
                sys.exit(f"{name} does not start: {' '.join(map(str, command))}\n{said.read_text()}")
            time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stop()

    def _listens(self):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        return False

    def _pids(self):
        found = [self.process.pid]
        for pid in found:
            for task in Path(f"/proc/{pid}/task").glob("*"):
                found += map(int, _process_files(pid, f"task/{task.name}/children").split())
        return found

    def cpu_s(self):
        """Returns the processor seconds of each process, with all its threads."""
        fields = {pid: _process_files(pid, "stat").rpartition(")")[2].split() for pid in self._pids()}
        return {pid: (int(of[11]) + int(of[12])) / os.sysconf("SC_CLK_TCK") for pid, of in fields.items() if of}

    def pss(self):
        """Returns the proportional set size of all processes, in bytes."""
        lines = "\n".join(_process_files(pid, "smaps_rollup") for pid in self._pids()).splitlines()
        return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def cpu_between(before, after):
    """A process that has ended meanwhile counts as far as it was seen."""
    return sum(seconds - before.get(pid, 0) for pid, seconds in after.items())
