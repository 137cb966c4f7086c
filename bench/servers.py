"""Starts the servers that are compared. Each has the fastest configuration for static files that
its manual describes.

A server has one worker on the first core, or several on all cores, and no access log. Where there
are such settings, it caches open files, keeps connections open without limit, defers accepting, and
has a large backlog:

    nginx     sendfile, tcp_nopush, open_file_cache; "listen ... deferred reuseport backlog"
    h2o       one thread; defers by itself
    lighttpd  stat-cache-engine simple, sendfile, listen-backlog, defer-accept; 65,535 requests are the most
    caddy     GOMAXPROCS; it has no cache of open files and cannot defer
    uring     gatling again, built with IO=uring
    epoll     smallest: the smallest program that answers from memory with epoll(7), one file
    lazy      the same with TCP_DEFER_ACCEPT, registering only connections that have to wait

With production settings, each server has its default timeouts and backlog (nginx 511, h2o 65535,
lighttpd 1024; gatling and Caddy what the kernel allows, 4096), and accepts connections as it does
by default. It takes as many connections as the limit on descriptors allows, for the process (h2o,
Caddy) or for each worker.

Each listens for one of PROTOCOLS. For TLS all have the same certificate (ECDSA, P-256), TLS 1.2 and
1.3, tickets, and encryption by the kernel if they support it. Not all of them can select the suite
of TLS 1.3, so the client should offer only one. A connection takes any number of requests, over
HTTP/2, too, of which 128 may be under way. With HTTP/3 they also speak HTTP/2, on the same port of
TCP:

    nginx     http2_chunk_size is a record of TLS; a port for HTTP/2 in clear text takes no HTTP/1.1
    h2o       uses the key in its own process, without neverbleed
    lighttpd  mod_openssl, else it does not speak TLS; it answers 8 requests of a connection at a time
    caddy     does not announce HTTP/3 in each answer, unless it is to speak that

They are those of the system: versus/today.py is one with today's.
"""

import contextlib
import functools
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from processes import Process

BACKLOG = 65535
CONNECTIONS_MAX = 19000  # of a worker, fewer than its limit on descriptors
START_S = 10
IP_BIND_ADDRESS_NO_PORT = 24  # ip(7); Python 3.11 lacks it
YARDSTICKS = ("epoll", "lazy")
PROTOCOLS = ("http", "https", "h2", "h2c", "h3")  # HTTP/1.1 and HTTP/2 with TLS, HTTP/2 in clear text, HTTP/3
TLS_PROTOCOLS = ("https", "h2", "h3")

NGINX = """
worker_processes {workers};
worker_rlimit_nofile 20000;
{more}
daemon off;
pid {directory}/nginx-{port}.pid;
error_log /dev/null crit;
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    {lasting}
    open_file_cache max=10000 inactive=3600s;
    open_file_cache_valid 60s;
    server {{ listen 127.0.0.1:{port}{listen}{protocol}; root {root}; }}
}}
"""

H2O = """
num-threads: {workers}
max-connections: {connections}
{lasting}
http2-max-concurrent-requests-per-connection: 128
user: {user}
pid-file: {directory}/h2o-{port}.pid
error-log: /dev/null
listen:
  host: 127.0.0.1
  port: {port}{protocol}
hosts:
  default:
    paths:
      /:
        file.dir: {root}
"""

LIGHTTPD = """
server.document-root = "{root}"
server.bind = "127.0.0.1"
server.port = {port}
server.max-worker = {extra_workers}
server.max-fds = 20000
server.max-connections = {connections}
{lasting}
server.stat-cache-engine = "simple"
server.network-backend = "sendfile"
mimetype.assign = ( "" => "application/octet-stream" )
{protocol}
"""

CADDY = """
{{
    admin off
    auto_https off
    log {{
        output discard
    }}
    servers {{
        protocols h1 h2 h2c{more}
    }}
}}
{scheme}://127.0.0.1:{port} {{
    bind 127.0.0.1
    root * {root}
    file_server
    {protocol}
}}
"""

CONFIGURED = {
    "nginx": (NGINX, ["nginx", "-c"]),
    "h2o": (H2O, ["h2o", "-m", "worker", "-c"]),
    "lighttpd": (LIGHTTPD, ["lighttpd", "-D", "-f"]),
    "caddy": (CADDY, ["caddy", "run", "--adapter", "caddyfile", "--config"]),
}

# The text for {lasting} in a configuration. With production settings it is empty, so that the
# server's defaults apply.
LASTING = {
    "nginx": """keepalive_requests 1000000000;
    keepalive_timeout 3600s;""",
    "h2o": """http1-request-timeout: 3600
http2-idle-timeout: 3600""",
    "lighttpd": f"""server.max-keep-alive-requests = 65535
server.max-keep-alive-idle = 3600
server.max-read-idle = 3600
server.listen-backlog = {BACKLOG}
server.defer-accept = 10""",
}

# The text for {protocol} in a configuration.
TLS = {
    "nginx": """ ssl http2;
        ssl_certificate {certificate};
        ssl_certificate_key {certificate};
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_session_cache shared:sessions:10m;
        ssl_session_timeout 1h;
        ssl_conf_command Options KTLS;
        http2_chunk_size 16k""",
    "h2o": """
  ssl:
    certificate-file: {certificate}
    key-file: {certificate}
    minimum-version: TLSv1.2
    neverbleed: OFF""",
    "lighttpd": """server.modules += ( "mod_openssl" )
ssl.engine = "enable"
ssl.pemfile = "{certificate}"
ssl.openssl.ssl-conf-cmd = ( "MinProtocol" => "TLSv1.2", "Options" => "KTLS" )""",
    "caddy": "tls {certificate} {certificate}",
}
CLEAR_HTTP2 = {"nginx": " http2"}  # the others recognise it by its first bytes
HTTP3 = {
    "nginx": """;
        listen 127.0.0.1:{port} quic reuseport;
        quic_gso on""",
    "caddy": "",
}
# The text for {more} in a configuration with HTTP/3. With quic_bpf fewer connections break at a reload.
HTTP3_MORE = {"nginx": "quic_bpf on;", "caddy": " h3"}

SAYS_VERSION = ["nginx", "-v"], ["h2o", "--version"], ["lighttpd", "-v"], ["caddy", "version"], ["haproxy", "-v"], ["openssl", "version"]
VERSION = r"\d+(\.\d+)+"


def raise_descriptor_limit():
    """Raises the limit of descriptors to the hard limit."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def bound_socket(address, kind=socket.SOCK_STREAM):
    """Returns a socket with that address, which gets its port when it connects."""
    s = socket.socket(type=kind)
    s.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
    s.bind((address, 0))
    return s


def free_port():
    """Returns a port that is free for TCP and UDP."""
    while True:
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp, contextlib.suppress(OSError):
            tcp.bind(("127.0.0.1", 0))
            udp.bind(tcp.getsockname())
            return tcp.getsockname()[1]


def tcp_memory():
    """Returns how many bytes the kernel holds for TCP (/proc/net/sockstat)."""
    pages = int(Path("/proc/net/sockstat").read_text().split("TCP:")[1].split("mem ")[1].split()[0])
    return pages * os.sysconf("SC_PAGESIZE")


def scheme(protocol):
    return "https" if protocol in TLS_PROTOCOLS else "http"


def configuration(name, port, root, directory, protocol="http", certificate=None, workers=1, listen="", production=False):
    """Returns the configuration of a server. See Servers.start()."""
    words = CLEAR_HTTP2.get(name, "") if protocol == "h2c" else ""
    if protocol in TLS_PROTOCOLS:
        words = (TLS[name] + (HTTP3[name] if protocol == "h3" else "")).format(certificate=certificate, port=port)
    return CONFIGURED[name][0].format(
        workers=workers, extra_workers=workers if workers > 1 else 0, port=port, root=root, directory=directory,
        listen="" if production else f" backlog={BACKLOG}{listen}", lasting="" if production else LASTING.get(name, ""),
        connections=CONNECTIONS_MAX, user=os.environ.get("USER", "root"), scheme=scheme(protocol), protocol=words,
        more=HTTP3_MORE[name] if protocol == "h3" else "",
    )  # fmt: skip


def _files(pid, pattern):
    """Yields the content of these files of a process, as long as it exists."""
    for path in Path(f"/proc/{pid}").glob(pattern):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            yield path.read_text()


class Server:
    """A running server: its port and protocol, and the processor time and memory of its processes."""

    def __init__(self, name, port, protocol, command, cores, directory):
        self.name, self.port, self.protocol = name, port, protocol
        words = directory / f"{name}-{port}.stderr"
        environment = os.environ | {"GOMAXPROCS": str(len(cores)), "XDG_CONFIG_HOME": str(directory), "XDG_DATA_HOME": str(directory)}
        with open(words, "wb") as stderr:
            self.process = Process(command, cores, stdout=subprocess.DEVNULL, stderr=stderr, env=environment)
        deadline = time.monotonic() + START_S
        while not self.listens():
            if time.monotonic() > deadline or self.process.poll() is not None:
                self.stop()
                sys.exit(f"{name} does not start: {' '.join(map(str, command))}\n{words.read_text()}")
            time.sleep(0.02)

    def listens(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def url(self, path):
        return f"{scheme(self.protocol)}://127.0.0.1:{self.port}{path}"

    def processes(self):
        found = [self.process.pid]
        for pid in found:
            for children in _files(pid, "task/*/children"):
                found += map(int, children.split())
        return found

    def cpu_s(self):
        """Returns the processor seconds of all its threads, as the scheduler counts them."""
        return sum(int(text.split()[0]) for pid in self.processes() for text in _files(pid, "task/*/schedstat")) / 1e9

    def resident(self):
        """Returns the resident bytes of all its processes."""
        pages = sum(int(text.split()[1]) for pid in self.processes() for text in _files(pid, "statm"))
        return pages * os.sysconf("SC_PAGESIZE")

    def stop(self):
        self.process.stop()


def make_certificate(address):
    """Returns a certificate for an IP address, and its key."""
    return subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                           "-subj", f"/CN={address}", "-addext", f"subjectAltName=IP:{address},DNS:localhost", "-keyout", "-", "-out", "-"],
                          capture_output=True, check=True).stdout  # fmt: skip


class Servers:
    """Starts servers of a temporary directory. At the end stops them and removes it."""

    def __init__(self, build):
        self.build = Path(build)
        self.directory = Path(tempfile.mkdtemp(prefix="gatling-versus-"))
        self.directory.chmod(0o755)
        self.root = self.directory / "root"
        self.root.mkdir()
        self.cores = sorted(os.sched_getaffinity(0))
        self.running = []

    def __enter__(self):
        print(versions(), flush=True)
        return self

    def __exit__(self, *_):
        for server in self.running:
            server.stop()
        shutil.rmtree(self.directory, ignore_errors=True)  # a server that ends may also remove its files

    def add_file(self, name, length):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(length))
        return path

    @functools.cached_property
    def certificate(self):
        """Makes a certificate with its key. Returns its path."""
        path = self.directory / "certificate.pem"
        path.write_bytes(make_certificate("127.0.0.1"))
        return path

    def program(self, name):
        """Returns the path of a program of the build."""
        return self.build / name

    def command(self, name, port, workers, file, once, listen, protocol, production=False):
        if name in ("gatling", "uring"):
            ports = ["-p", port]
            if protocol in TLS_PROTOCOLS:
                ports = ["-p", 0, "--https", "--tls-port", port, "--cert", self.certificate]
            return [self.program("uring/gatling" if name == "uring" else name), "-c", self.root, "-i", "127.0.0.1", *ports, "-n", "-j", workers, *([] if production else ["-T", "3600"])]
        if name in YARDSTICKS:
            flags = ["-1"] * once + ["-l"] * (name == "lazy")
            return [self.program("bench/smallest"), *flags, port, self.root / file]
        path = self.directory / f"{name}-{port}.conf"
        certificate = self.certificate if protocol in TLS_PROTOCOLS else None
        path.write_text(configuration(name, port, self.root, self.directory, protocol, certificate, workers, listen, production))
        return [*CONFIGURED[name][1], path]

    def start(self, name, workers=1, file=None, once=False, listen=" deferred reuseport", protocol="http", production=False):
        """Starts a server. file and once are for yardsticks, which have a single answer; listen
        adds words to nginx's directive. production: timeouts and backlog are the server's defaults,
        and it accepts connections as it does by default."""
        port = free_port()
        command = self.command(name, port, workers, file, once, listen, protocol, production)
        cores = set(self.cores if workers > 1 else self.cores[:1])
        server = Server(name, port, protocol, command, cores, self.directory)
        self.running.append(server)
        return server

    def stop(self, server):
        self.running.remove(server)
        server.stop()


os.environ["PATH"] += ":/usr/local/sbin:/usr/sbin"  # where servers are installed


def installed(name):
    return name not in CONFIGURED or shutil.which(name) is not None


def version_in(text):
    found = re.search(VERSION, text)
    return found[0] if found else "?"


def versions():
    """Returns a line with the versions of what is installed, and of the kernel."""
    found = []
    for words in SAYS_VERSION:
        if shutil.which(words[0]):
            said = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout
            found.append(f"{words[0]} {version_in(said)}")
    return f"# {', '.join(found)}, {os.uname().sysname} {version_in(os.uname().release)}"


def those_installed(names, program):
    """Returns those of the servers that are installed, and prints which are not."""
    for name in [n for n in names if not installed(n)]:
        print(f"{program}: {name} is not installed", file=sys.stderr)
    return [name for name in names if installed(name)]


@functools.cache
def speaks(name, protocol):
    if name in YARDSTICKS:
        return protocol == "http"
    if name != "lighttpd" or protocol not in TLS_PROTOCOLS:
        return True
    text = 'server.document-root = "/"\nserver.modules = ( "mod_openssl" )\n'
    return subprocess.run(["lighttpd", "-tt", "-f", "-"], input=text, text=True, capture_output=True).returncode == 0
