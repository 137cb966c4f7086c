"""An upstream that behaves as a test tells it to."""

import contextlib
import shutil
import socket
import tempfile
import threading
from pathlib import Path


from gatling import TIMEOUT

SWITCHES = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"


class Request:
    def __init__(self, line, fields, body):
        self.line, self.fields, self.body, self.trailers = line, fields, body, []

    def __getitem__(self, name):
        """Returns the value of a field, which must not be repeated, or None."""
        values = [value for key, value in self.fields if key.lower() == name.lower()]
        assert len(values) <= 1, self.fields
        return values[0] if values else None


class Link:
    """A connection from the server."""

    def __init__(self, connected, requests):
        self.socket, self.requests, self.buffer = connected, requests, bytearray()
        connected.settimeout(TIMEOUT)

    def _fill(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise EOFError
        self.buffer += data

    def take(self, length):
        while len(self.buffer) < length:
            self._fill()
        data = bytes(self.buffer[:length])
        del self.buffer[:length]
        return data

    def line(self):
        while b"\r\n" not in self.buffer:
            self._fill()
        return self.take(self.buffer.index(b"\r\n") + 2)[:-2].decode("latin-1")

    def head(self):
        """Reads the head of a request."""
        request = Request(self.line(), self.fields(), b"")
        self.requests.append(request)
        return request

    def fields(self):
        """Reads field lines, and the empty line behind them."""
        fields = []
        while line := self.line():
            name, value = line.split(": ", 1)
            fields.append((name, value))
        return fields

    def body(self, request):
        if request["Content-Length"]:
            request.body = self.take(int(request["Content-Length"]))
        elif request["Transfer-Encoding"]:
            assert request["Transfer-Encoding"] == "chunked"
            chunks = []
            while size := int(self.line(), 16):
                chunks.append(self.take(size))
                assert self.line() == ""
            request.trailers = self.fields()
            request.body = b"".join(chunks)
        return request

    def request(self):
        """Reads a whole request."""
        return self.body(self.head())

    def send(self, data):
        self.socket.sendall(data)

    def answer(self, body=b"ok", *fields):
        lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *fields, "", ""]
        self.send("\r\n".join(lines).encode() + body)

    def reset(self):
        """Ends the connection with an RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.close()

    def ended(self):
        """Waits for the end of the connection, however it comes."""
        with contextlib.suppress(ConnectionError, EOFError):
            while True:
                self._fill()


def ends_tunnel(goes, resets):
    """Returns a handler that opens a tunnel, and when goes is set, says "bye" and ends it, in order or not."""

    def handle(link):
        link.head()
        link.send(SWITCHES + b"\r\n")
        goes.wait()
        link.send(b"bye")
        if resets:
            link.reset()

    return handle


def echo(link):
    """Answers each request with what arrived of it."""
    while True:
        request = link.request()
        lines = [request.line, *(f"{name}: {value}" for name, value in request.fields)]
        link.answer("\n".join(lines).encode() + b"\n\n" + request.body)


class Upstream:
    """Handles each connection by handle(link), in its own thread, and closes it when that
    returns."""

    def __init__(self, handle=echo, port=0, link=Link, unix=False, tls=None, host="127.0.0.1"):
        """unix: over a socket in its own directory. tls: the context for TLS."""
        self.handle, self.requests, self.links, self.failures, self.kind, self.tls = handle, [], [], [], link, tls
        self.directory = Path(tempfile.mkdtemp(prefix="gatling-wire-")) if unix else None
        if unix:
            self.directory.chmod(0o755)
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(str(self.directory / "app.sock"))
            (self.directory / "app.sock").chmod(0o777)
            self.listener.listen()
            self.address, self.allowed = f"unix:{self.directory}/app.sock", str(self.directory)
        else:
            self.listener = socket.create_server((host, port))
            self.port = self.listener.getsockname()[1]
            self.address, self.allowed = f"{host}:{self.port}", f"https://{host}:{self.port}" if tls else host
        self.threads = [threading.Thread(target=self._accept, daemon=True)]
        self.threads[0].start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connected, _ = self.listener.accept()
                link = self.kind(connected, self.requests)
                self.links.append(link)
                self.threads.append(threading.Thread(target=self._run, args=(link,), daemon=True))
                self.threads[-1].start()

    def _run(self, link):
        try:
            if self.tls:
                link.socket = self.tls.wrap_socket(link.socket, server_side=True)
            self.handle(link)
        except (OSError, EOFError):
            pass  # the server has ended it
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.failures.append(error)
        finally:
            link.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for link in self.links:
            with contextlib.suppress(OSError):
                link.socket.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()
        if self.directory:
            shutil.rmtree(self.directory)
        assert not self.failures, self.failures
