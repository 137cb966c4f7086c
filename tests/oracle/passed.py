"""An upstream, in a process of its own, that answers each request with the path that reached it: X-Passed
over HTTP/1.1, X-Script and X-Info over FastCGI."""

import contextlib
import multiprocessing
import socket
import struct
import threading


def _http(link):
    with link, link.makefile("rb") as lines:
        while line := lines.readline():
            length = 0
            while field := lines.readline().strip():
                name, _, value = field.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            lines.read(length)
            link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Passed: %s\r\n\r\n" % line.split(b" ")[1])


def _pairs(data):
    """Returns the name-value pairs of FastCGI."""
    at, pairs = 0, {}
    while at < len(data):
        lengths = []
        for _ in range(2):
            size = 4 if data[at] & 128 else 1
            lengths.append(int.from_bytes(data[at : at + size]) & 0x7FFFFFFF)
            at += size
        pairs[data[at : at + lengths[0]]] = data[at + lengths[0] : at + sum(lengths)]
        at += sum(lengths)
    return pairs


def _fcgi(link):
    with link, link.makefile("rb") as stream:
        parameters, kind = b"", 0
        while kind != 5 or length:  # FCGI_STDIN, which an empty one ends
            _, kind, number, length, padding = struct.unpack(">BBHHBx", stream.read(8))
            content = stream.read(length + padding)[:length]
            parameters += content if kind == 4 else b""
        pairs = _pairs(parameters)
        info = pairs.get(b"PATH_INFO", b"").hex().encode()  # it may have any octets
        out = b"Status: 200\r\nX-Script: %s\r\nX-Info: %s\r\n\r\n" % (pairs.get(b"SCRIPT_FILENAME", b""), info)
        link.sendall(struct.pack(">BBHHBx", 1, 6, number, len(out), 0) + out + struct.pack(">BBHHBx", 1, 6, number, 0, 0) +
                     struct.pack(">BBHHBxIBxxx", 1, 3, number, 8, 0, 0, 0))  # fmt: skip


def _handle(handle, link):
    with contextlib.suppress(OSError, struct.error):
        handle(link)


def _serve(listeners):
    def accept(listener, handle):
        while True:
            link, _ = listener.accept()
            threading.Thread(target=_handle, args=(handle, link), daemon=True).start()

    for listener, handle in zip(listeners, (_http, _fcgi)):
        threading.Thread(target=accept, args=(listener, handle), daemon=True).start()
    threading.Event().wait()


@contextlib.contextmanager
def running():
    """Yields the ports for HTTP and FastCGI."""
    listeners = [socket.create_server(("127.0.0.1", 0), backlog=128) for _ in range(2)]
    process = multiprocessing.get_context("fork").Process(target=_serve, args=(listeners,), daemon=True)
    process.start()
    try:
        yield [listener.getsockname()[1] for listener in listeners]
    finally:
        process.kill()
        process.join()
        for listener in listeners:
            listener.close()
