"""A TCP proxy on the loopback interface that counts what it passes on, and how much of that were TLS handshakes."""

import socket
import threading


class Counter:
    """Octets of TCP's payload. handshakes: those of both directions until the client has sent what follows its first message and
    the server's answer: in TLS 1.3 the ClientHello and all that the server sends of the handshake."""

    def __init__(self):
        self.down = self.up = self.handshakes = self.connections = 0

    def __sub__(self, before):
        difference = Counter()
        for name in vars(self):
            setattr(difference, name, getattr(self, name) - getattr(before, name))
        return difference


class Proxy:
    """Passes connections on to a port, which may be another one for each connection."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.target = self.listener.getsockname()[1], None
        self.counted, self.lock = Counter(), threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def now(self):
        with self.lock:
            return self.counted - Counter()

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            with self.lock:
                self.counted.connections += 1
            state = {"answered": False, "done": False}
            for ends in ((client, server, "up", state), (server, client, "down", state)):
                threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _count(self, direction, octets, state):
        with self.lock:
            setattr(self.counted, direction, getattr(self.counted, direction) + octets)
            state["done"] |= direction == "up" and state["answered"]
            state["answered"] |= direction == "down"
            if not state["done"]:
                self.counted.handshakes += octets

    def _pass(self, source, sink, direction, state):
        try:
            while data := source.recv(1 << 16):
                self._count(direction, len(data), state)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            source.close()
            sink.close()
