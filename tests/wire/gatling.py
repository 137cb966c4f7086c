"""A server under test, and a client that sends exactly what it is told to."""

import atexit
import contextlib
import ctypes
import functools
import math
import os
import re
import resource
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import tempfile
import threading
import time
from pathlib import Path, PosixPath

TIMEOUT = 20  # seconds after which a test has failed


def eventually(condition, seconds=TIMEOUT):
    """Waits until condition() is true. Returns its value."""
    deadline, pause = time.monotonic() + seconds, 0.002
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(pause)
        pause = min(1.5 * pause, 0.05)  # tested less often if it takes long


def listening(where):
    """Returns whether a port, or the unix socket at a path, takes connections."""
    with socket.socket(socket.AF_INET if isinstance(where, int) else socket.AF_UNIX) as s:
        return s.connect_ex(("127.0.0.1", where) if isinstance(where, int) else str(where)) == 0


class Root:
    """A directory to be served, outside pytest's private one."""

    def __init__(self, files=None):
        self.path = Path(tempfile.mkdtemp(prefix="gatling-wire-"))
        atexit.register(self.remove)
        self.path.chmod(0o755)
        for name, content in (files or {}).items():
            self.write(name, content)

    def write(self, name, content, mode=0o644):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if stat.S_IMODE(path.stat().st_mode) != mode:  # else a server could see one more state of the file
            path.chmod(mode)
        return path

    def mkdir(self, name):
        (self.path / name).mkdir(parents=True, exist_ok=True)

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)


@functools.cache
def certificate(names="DNS:localhost,IP:127.0.0.1", key=("ec", "-pkeyopt", "ec_paramgen_curve:P-256"), expired=False, days=30, begun=0):
    """Returns the paths of a self-signed certificate and its key, valid from begun days ago for
    days from now."""
    directory = Path(tempfile.mkdtemp(prefix="gatling-wire-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    directory.chmod(0o755)
    command = ["openssl", "req", "-x509", "-newkey", *key, "-nodes", "-days", str(math.ceil(days)), "-subj", "/CN=test", "-addext", f"subjectAltName={names}",
               "-keyout", "key.pem", "-out", "cert.pem"]  # fmt: skip
    subprocess.run(command, cwd=directory, check=True, capture_output=True)
    if expired:
        command = ["openssl", "x509", "-in", "cert.pem", "-signkey", "key.pem", "-days", "0", "-out", "cert.pem"]
        subprocess.run(command, cwd=directory, check=True, capture_output=True)
    if begun:
        (directory / "ca").write_text("[ca]\ndefault_ca=c\n[c]\ndatabase=index\nserial=serial\nnew_certs_dir=.\ndefault_md=sha256\n"
                                      "policy=p\ncopy_extensions=copy\n[p]\ncommonName=supplied\n")  # fmt: skip
        (directory / "index").touch()
        (directory / "serial").write_text("01\n")
        start, end = (time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + d * 86400)) for d in (-begun, days))
        for command in (["req", "-new", "-key", "key.pem", "-subj", "/CN=test", "-addext", f"subjectAltName={names}", "-out", "request"],
                        ["ca", "-batch", "-notext", "-config", "ca", "-selfsign", "-keyfile", "key.pem", "-in", "request", "-startdate", start,
                         "-enddate", end, "-out", "cert.pem"]):  # fmt: skip
            subprocess.run(["openssl", *command], cwd=directory, check=True, capture_output=True)
    (directory / "key.pem").chmod(0o644)
    return directory / "cert.pem", directory / "key.pem"


def trusting(*certificates, alpn=("http/1.1",)):
    """Returns a client's context that trusts these certificates, or any."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not certificates:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    for path in certificates:
        context.load_verify_locations(path)
    context.set_alpn_protocols(list(alpn))
    return context


class Response:
    def __init__(self, status, reason, fields, body, head):
        self.status, self.reason, self.fields, self.body, self.head, self.trailers = status, reason, fields, body, head, []

    def __getitem__(self, name):
        """Returns the value of a field, which must not be repeated, or None."""
        values = [value for key, value in self.fields if key.lower() == name.lower()]
        assert len(values) <= 1, f"{name} is there more than once"
        return values[0] if values else None


class Connection:
    """A connection. tls: the context for the handshake, with name. source: its local address."""

    def __init__(self, address, family=socket.AF_INET, receive_buffer=None, tls=None, name="localhost", session=None, source=None,
                 timeout=TIMEOUT):  # fmt: skip
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        if source:
            self.socket.bind((source, 0))
        self.socket.connect(address)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname=name, session=session)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def half_close(self):
        """Sends a FIN, also over TLS, and continues to read."""
        socket.socket.shutdown(self.socket, socket.SHUT_WR)

    def reset(self):
        """Closes with an RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)
        return self

    def get(self, path="/", *fields, method="GET", host="localhost"):
        """Sends a request and returns the response."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *fields, "", ""]
        self.send("\r\n".join(lines).encode("latin-1"))
        return self.response(method)

    def _fill(self):
        data = self.socket.recv(1 << 16)
        self.buffer += data
        return data

    def response(self, method="GET"):
        """Returns the next response, which must be complete."""
        head = self._head()
        lines = head.decode("latin-1").split("\r\n")
        version, status, reason = lines[0].split(" ", 2)
        assert version == "HTTP/1.1"
        fields = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:]]
        response = Response(int(status), reason, fields, b"", head)
        length = int(response["Content-Length"] or 0)
        if method == "HEAD" or response.status in (100, 204, 304):
            length = 0
        if response["Transfer-Encoding"] == "chunked" and method != "HEAD":
            response.body = b"".join(self._chunks())
            while line := self._line():
                response.trailers.append(tuple(line.decode("latin-1").split(": ", 1)))
        else:
            response.body = self._take(length)
        return response

    def _head(self):
        while b"\r\n\r\n" not in self.buffer:
            assert self._fill(), f"closed in the head: {self.buffer!r}"
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        return head

    def chunks(self):
        """Yields the content of the next response, chunk by chunk as they arrive."""
        assert b"chunked" in self._head()
        yield from self._chunks()

    def _line(self):
        while b"\r\n" not in self.buffer:
            assert self._fill(), "closed in a line"
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def _chunks(self):
        while size := int(self._line(), 16):
            yield self._take(size)
            assert self._take(2) == b"\r\n"

    def _take(self, length):
        """Returns the next length bytes. If they do not come in time, those that have come stay in
        the buffer."""
        taken = bytearray(self.buffer)
        try:
            while len(taken) < length:
                data = self.socket.recv(1 << 16)
                assert data, f"closed {length - len(taken)} bytes before the end of the body"
                taken += data
        except TimeoutError:
            self.buffer = bytes(taken)
            raise
        self.buffer = bytes(memoryview(taken)[length:])
        return bytes(memoryview(taken)[:length])

    def rest(self):
        """Returns everything until the server closes; a reset counts as closing."""
        rest = bytearray(self.buffer)
        with contextlib.suppress(ConnectionResetError):
            while data := self.socket.recv(1 << 16):
                rest += data
        self.buffer = b""
        return bytes(rest)

    def assert_closed(self):
        assert self.rest() == b""

    def assert_in_step(self):
        """Checks that the connection can be used for another request."""
        response = self.get("/in-step")
        assert response.status == 404 and self.buffer == b""


@functools.cache
def runnable(build, program="gatling"):
    """Returns a copy of a program that everybody may run, wherever the build is."""
    directory = tempfile.mkdtemp(prefix="gatling-wire-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    os.chmod(directory, 0o755)
    return shutil.copy(build / program, directory)


def share_descriptors(thread, other):
    """Returns whether two threads share descriptors, by kcmp(2), for which the C library has no
    function."""
    number, kcmp_files = {"x86_64": 312, "aarch64": 272}[os.uname().machine], 2
    order = ctypes.CDLL(None, use_errno=True).syscall(number, thread, other, kcmp_files, 0, 0)
    assert order != -1, os.strerror(ctypes.get_errno())
    return order == 0


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def only_child(pid):
    (child,) = children(pid)
    return child


def servers_of(keeper):
    """Returns the servers of a keeper, which lead process groups; the last one serves, those before
    finish their connections."""
    return [child for child in children(keeper) if os.getpgid(child) == child]


def server_of(keeper):
    return servers_of(keeper)[-1]


def unprivileged():
    """Returns options for subprocess that leave root, since as root the server would chroot, and
    leaks would not be searched."""
    return {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}


def descriptors_limited_to(soft, hard=None):
    """Returns options for subprocess with that limit of descriptors."""
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard or soft))}


class OverTls(PosixPath):
    """A build that is tested over TLS. It differs from that build for pytest, too, which keeps servers for equal ones. tcp: its
    servers may be asked over TCP, too."""

    tcp = True

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return super().__hash__()

    def started(self, launcher, as_root, _):
        """Returns these two arguments of Server as they are for it. cwd: the directory in which it is started."""
        return launcher, as_root

    def connect(self, server, **options):
        return Connection(("127.0.0.1", server.tls_port), **{"tls": server.tls, **options})


class Server:
    """The server of a build, on 127.0.0.1 and a free port by default. It ends without delay (None:
    the server's default). launcher: a command that becomes the server."""

    def __init__(self, build, root, *flags, address=("-i", "127.0.0.1"), stdout=subprocess.PIPE, as_root=False, tracer=(), launcher=(), drain_delay=0,
                 **popen):  # fmt: skip
        self.root = root
        self.over = build if isinstance(build, OverTls) else None
        self.tls = trusting() if self.over else None
        if self.over:
            launcher, as_root = self.over.started(launcher, as_root, popen.get("cwd"))
            cert, key = certificate()
            flags = (*flags, "--cert", cert, "--key", key, "--tls-port", "0")
        delay = () if drain_delay is None else ("--limit", f"drain-delay={drain_delay}")
        command = [*tracer, *launcher, runnable(build), "-c", getattr(root, "path", root), "-p", "0", *delay, *address, *flags]
        environment = {"ASAN_OPTIONS": "detect_stack_use_after_return=1", **os.environ, "TZ": "UTC"}
        if tracer:
            environment["ASAN_OPTIONS"] = "detect_leaks=0"
        elif not as_root:
            popen = {**unprivileged(), **popen}
        self.process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, env=environment, **popen)
        self.lines, self.errors = [], []  # its messages before it serves are in errors
        while "gatling: serving" not in (line := self.process.stderr.readline().decode()):
            assert line, self.errors
            self.errors.append(line.rstrip("\n"))
        self.banner = line
        self.sandbox = next((said for said in self.errors if said.startswith("gatling: sandbox:")), None)
        self.hosts = next((said for said in self.errors if said.startswith("gatling: hosts:")), None)
        for said in filter(None, (self.sandbox, self.hosts)):  # workers may have written lines since
            self.errors.remove(said)
        self.keeper = only_child(self.process.pid) if tracer else self.process.pid
        self.pid = server_of(self.keeper)
        self.plain_port, self.tls_port = (
            int(found.group(1)) if (found := re.search(rf"{scheme}://\S+:(\d+)/", self.banner)) else None
            for scheme in ("http", "https")
        )
        self.port = self.tls_port if self.tls else self.plain_port
        if self.over and not self.over.tcp:
            self.plain_port = None
        self.threads = [threading.Thread(target=self._collect, args=(self.process.stderr, self.errors))]
        if stdout == subprocess.PIPE:
            self.threads.append(threading.Thread(target=self._collect, args=(self.process.stdout, self.lines)))
        for thread in self.threads:
            thread.start()

    @staticmethod
    def _collect(stream, lines):
        for line in stream:
            lines.append(line.decode("latin-1").rstrip("\n"))

    def connect(self, **options):
        return self.over.connect(self, **options) if self.over else Connection(("127.0.0.1", self.port), **options)

    def url(self, path):
        assert not self.over or self.over.tcp, "for a client that knows TCP alone"
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}{path}"

    def get(self, path="/", *fields, **options):
        with self.connect() as connection:
            return connection.get(path, *fields, **options)

    def signal(self, number=signal.SIGTERM):
        """Sends a signal to the keeper, or to the server one that the keeper cannot pass on. A
        tracer gets none: it would keep it for itself, or the server's, too."""
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # the tracer is about to end, too
                os.kill(self.pid if number in (signal.SIGSTOP, signal.SIGCONT) else self.keeper, number)

    def kill(self):
        with contextlib.suppress(OSError):  # they are about to end, too
            for process in (*servers_of(self.keeper), self.keeper) if self.process.poll() is None else ():
                os.kill(process, signal.SIGKILL)
        self.process.wait()
        for thread in self.threads:
            thread.join()

    def wait(self, status=0):
        """Waits for the end, which must be a clean one."""
        try:
            assert self.process.wait(TIMEOUT) == status, self.errors
        finally:
            self.kill()
        assert not [line for line in self.errors if "Sanitizer" in line or "runtime error" in line], self.errors

    def stop(self):
        self.signal()
        self.wait()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind and self.process.poll() is None:
            self.kill()
        else:
            self.stop()

    def thread_ids(self):
        return sorted(int(name) for name in os.listdir(f"/proc/{self.pid}/task"))

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self):
        """Returns the resident bytes."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    def descriptors(self, cached=True):
        """Returns the number of open descriptors, counted once for threads that share them. cached:
        including the files of the root."""
        owners = []
        for thread in self.thread_ids():
            if not any(share_descriptors(thread, owner) for owner in owners):
                owners.append(thread)
        tables = [Path(f"/proc/{self.pid}/task/{thread}/fd") for thread in owners]
        return sum(cached or not str(link.readlink()).startswith(f"{self.root.path}/") for table in tables for link in table.iterdir())
