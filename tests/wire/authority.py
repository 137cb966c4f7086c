"""Certificate authorities (RFC 8555): pebble, and one whose answers a test chooses."""

import contextlib
import http.server
import json
import os
import socket
import ssl
import subprocess
import threading
import urllib.request

from gatling import certificate, eventually, trusting


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def trusting_launcher(directory):
    """Returns a launcher that makes a command, and all that it starts, trust the certificate of
    these authorities, in a mount namespace."""
    trust = directory / "trust"
    trust.mkdir(exist_ok=True)
    (trust / "ca-certificates.crt").write_bytes(certificate("DNS:localhost")[0].read_bytes())
    return ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/ssl/certs && exec "$@"', trust]


MADE_UP = """#!/bin/sh
here=${0%/*}
echo "$*" >> "$here/asked"
[ "$1" != --version ] || { ls -l /proc/$$/fd > "$here/open"; echo 'uacme: version VERSION' >&2; exit 0; }
while [ $# -gt 2 ]; do
	case $1 in
	-c) state=$2 ;;
	-d) [ "$2" -gt 0 ] || exit 2 ;;
	esac
	shift
done
mkdir -p "$state/private/$2" "$state/$2"
case $1 in
new) openssl ecparam -name prime256v1 -genkey -noout -out "$state/private/key.pem" ;;
check) rm "$here/renew" ;;
issue)
	case $2 in *[!0-9.:a-f]*) kind=DNS ;; *) kind=IP ;; esac
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 6 -subj / -addext "subjectAltName=$kind:$2" \\
		-keyout "$state/private/$2/key.pem" -out "$state/$2/cert.pem" ;;
esac
"""


def made_up_uacme(directory, version="1.8.1"):
    """Writes a uacme that signs for itself what is asked for, and notes that in the file asked, and in the file open the
    descriptors that it has when it is asked for its version. It says that a certificate has to be renewed if there is a file
    renew, which it removes."""
    (directory / "uacme").write_text(MADE_UP.replace("VERSION", version))
    (directory / "uacme").chmod(0o755)
    return directory


@contextlib.contextmanager
def authority(directory, http_port, acme_port=None, **config):
    """Runs pebble, which requests proof over http_port for any name; all names lead to 127.0.0.1.
    Yields the address of its directory, and that of its root certificate. config: further members
    of its configuration."""
    cert, key = certificate("DNS:localhost")
    management, dns, tools, unused = (free_port() for _ in range(4))
    acme = acme_port or free_port()
    config = {"listenAddress": f"127.0.0.1:{acme}", "managementListenAddress": f"127.0.0.1:{management}",
              "certificate": str(cert), "privateKey": str(key), "httpPort": http_port, "tlsPort": unused, **config}  # fmt: skip
    (directory / "pebble.json").write_text(json.dumps({"pebble": config}))
    environment = os.environ | {"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0", "PEBBLE_AUTHZREUSE": "0"}
    names_server = ["pebble-challtestsrv", "-defaultIPv4", "127.0.0.1", "-defaultIPv6=", "-http01=", "-https01=", "-tlsalpn01=",
                    "-dns01", f"127.0.0.1:{dns}", "-management", f"127.0.0.1:{tools}"]  # fmt: skip
    pebble = ["pebble", "-config", directory / "pebble.json", "-dnsserver", f"127.0.0.1:{dns}"]
    with contextlib.ExitStack() as running:
        for command in (names_server, pebble):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
            running.callback(process.wait)
            running.callback(process.kill)
        url = f"https://localhost:{acme}/dir"

        def answers():
            with contextlib.suppress(OSError):
                return urllib.request.urlopen(url, context=trusting(), timeout=5).status == 200

        eventually(answers)
        yield url, f"https://localhost:{management}/roots/0"


@contextlib.contextmanager
def pretender(answer):
    """Runs an HTTPS server in which answer(handler) answers all requests. Yields its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer(self)

        do_GET = do_POST = do_HEAD = answer

        def log_message(self, *_):
            pass

        def say(self, status, text, **fields):
            self.send_response(status)
            for name, value in {"Content-Length": len(text), **fields}.items():
                self.send_header(name.replace("_", "-"), str(value))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text.encode())

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate("DNS:localhost"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"https://localhost:{server.server_port}/dir"
    finally:
        server.shutdown()
        server.server_close()
