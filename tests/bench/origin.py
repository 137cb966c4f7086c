"""An origin server that behaves as a test tells it to."""

import socket
import ssl
import subprocess
import threading

NOT_FOUND = b"HTTP/1.1 404 None\r\nContent-Length: 0\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


class Origin:
    """behave(connection, number, request) answers the request with that number, counted from 1 over
    all connections. It returns the bytes to send, or None if it has done everything itself; then
    the connection is closed. With an ssl.SSLContext the server speaks TLS. accepted(connection) is
    called first."""

    def __init__(
        self,
        behave=lambda connection, number, request: OK,
        family=socket.AF_INET,
        address=("127.0.0.1", 0),
        context=None,
        accepted=lambda connection: None,
    ):
        self.behave = behave
        self.context = context
        self.accepted = accepted
        self.requests = 0
        self.peers = []
        self.lock = threading.Lock()
        self.listener = socket.socket(family, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(address)
        self.listener.listen(1000)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        return f"{'https' if self.context else 'http'}://127.0.0.1:{self.listener.getsockname()[1]}/"

    def _accept(self):
        while True:
            try:
                connection, peer = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.peers.append(peer)
            self.accepted(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        data = b""
        with connection:
            try:
                if self.context:
                    connection = self.context.wrap_socket(connection, server_side=True)
                while True:
                    while b"\r\n\r\n" not in data:
                        more = connection.recv(65536)
                        if not more:
                            return
                        data += more
                    request, data = data.split(b"\r\n\r\n", 1)
                    with self.lock:
                        self.requests += 1
                        number = self.requests
                    answer = self.behave(connection, number, request)
                    if answer is None:
                        return
                    connection.sendall(answer)
                    if b"Connection: close" in request:
                        return
            except OSError:
                return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.refuse()

    def refuse(self):
        """Stops listening."""
        if self.listener.fileno() != -1:
            self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def certificate(directory, name, alternative):
    """Makes a self-signed certificate. Returns the path of a file that holds it and its key."""
    path = directory / f"{name}.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path,
         "-out", directory / "cert.pem", "-subj", f"/CN={name}", "-addext", f"subjectAltName={alternative}"],
        check=True, capture_output=True,
    )  # fmt: skip
    path.write_text(path.read_text() + (directory / "cert.pem").read_text())
    return path


def speaking(path, version=ssl.TLSVersion.TLSv1_3):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    context.minimum_version = context.maximum_version = version
    return context
