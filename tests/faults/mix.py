"""Mixed requests, and whether their answers are right: files, ranges, listings, compression,
passwords, rules, and responses of an upstream, over HTTP/1.1, HTTP/2 and TLS. Each place is a
virtual host with its own files, so that the answer of another place is a wrong one."""

import base64
import contextlib
import gzip
import json
import os
import random
import struct
import subprocess
import time

from gatling import Connection, trusting
from http2 import DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PREFACE, RST_STREAM, SETTINGS, WINDOW_UPDATE
from http2 import Http2, Inflater, block, frame, settings

# How a request ended: the right answer; an answer that there is none; the end of the connection or
# stream, which the client notices; none of these in time; and what must never happen.
RIGHT, ERROR, CLOSED, HANGING, WRONG = "right", "error", "closed", "hanging", "wrong"

LISTED = ["a.txt", "b b.txt", "c.bin"]
LONG = 10_000  # lines
PASSWORD = base64.b64encode(b"ann:secret").decode()


class Place:
    """A virtual host."""

    def __init__(self, root, number, password_hash, upstream):
        self.host, self.number, self.changes = f"place{number}.example", number, 0
        text = "".join(f"<p>place {number}, line {line}\n" for line in range(600)).encode()
        self.files = {
            "index.html": b"<h1>place %d</h1>\n" % number,
            "small.bin": b"place %d " % number * 100,
            "large.bin": random.Random(number).randbytes(300_000),
            "text.html": text,
            "long.txt": text * 8,
            "style.css": b"p { order: %d }\n" % number,
            "style.css.br": b"not really brotli %d" % number,
            "about.html": b"about place %d" % number,
            "404.html": b"place %d has no such page" % number,
            "dir/index.html": b"in the directory of place %d" % number,
            "private/secret.txt": b"secret of place %d" % number,
            "private/.htaccess": b"Friends\nann:" + password_hash.encode() + b"\n",
            "_headers": b"/*\n  X-Place: %d\n" % number,
            "_redirects": b"/old/*  /new/:splat  301\n/gone  /about.html  200\n/api/*  http://%s/:splat  200\n" % upstream.encode(),
            **{f"list/{name}": name.encode() for name in LISTED},
        }
        self.packed = b"packed %d\n" % number * 500
        self.contents = {**self.files, "packed.txt.gz": gzip.compress(self.packed)}
        for name, content in self.contents.items():
            root.write(f"{self.host}/{name}", content)
        self.path = root.path / self.host
        os.symlink(f"https://example.org/{number}", self.path / "link")
        self.requests = requests(self)

    def change(self):
        """Changes its files for the server, which has to open, read, hash and compress them again:
        each one is touched, replaced or written to in turn. One name is added and one removed."""
        self.changes += 1
        now = time.time_ns() - 10**9
        for n, (name, content) in enumerate(self.contents.items(), self.changes):
            path = self.path / name
            if n % 3 == 1:
                new = path.with_name("new")
                new.write_bytes(content)
                new.chmod(0o644)
                new.replace(path)
            elif n % 3 == 2:
                with open(path, "r+b") as file:
                    file.write(content)
            os.utime(path, ns=(now, now + self.number))
        (self.path / f"name{self.changes - 1}").unlink(missing_ok=True)
        (self.path / f"name{self.changes}").touch()


class Request:
    """fields: {name: value}. right: a function of the answer that returns whether it is right."""

    def __init__(self, place, path, right, method="GET", errors=(500, 503), body=b"", **fields):
        self.host, self.path, self.is_right, self.method, self.errors, self.body = place.host, path, right, method, errors, body
        self.fields = {name.replace("_", "-"): value for name, value in fields.items()}
        if body:
            self.fields["content-length"] = str(len(body))

    def __repr__(self):
        return f"{self.method} {self.path} of {self.host} {self.fields}"

    def verdict(self, answer):
        if answer.status in self.errors:
            return ERROR
        try:
            return RIGHT if self.is_right(answer) else WRONG
        except (ValueError, EOFError, OSError, KeyError):  # raised by decoding its body
            return WRONG


class Answer:
    """fields: {name in lower case: value}."""

    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    def __repr__(self):
        return f"{self.status} {self.fields} {self.body[:200]!r} ({len(self.body)} bytes)"

    @property
    def content(self):
        return gzip.decompress(self.body) if self.fields.get("content-encoding") == "gzip" else self.body


def requests(place):
    """Returns the requests of a place."""
    files, mark = place.files, str(place.number)

    def sends(name, status=200):
        def right(a):
            return a.status == status and a.content == files[name] and a.fields.get("x-place") == mark

        return right

    def part(start, end):
        whole = sends("large.bin")

        def right(a):
            span = f"bytes {start}-{end - 1}/{len(files['large.bin'])}"
            return whole(a) or (
                a.status == 206 and a.body == files["large.bin"][start:end] and a.fields["content-range"] == span
            )

        return right

    def parts(a):
        large = files["large.bin"]
        return sends("large.bin")(a) or (a.status == 206 and large[:10] in a.body and large[200000:200100] in a.body)

    def of_length(name):
        return lambda a: a.status == 200 and a.fields["content-length"] == str(len(files[name])) and not a.body

    def redirects(to):
        return lambda a: a.status == 301 and a.fields["location"] == to

    def not_modified(a):
        return a.status == 304 and not a.body or sends("text.html")(a)

    def lists(a):
        return a.status == 200 and all(name.replace(" ", "%20").encode() in a.content for name in LISTED)

    def lists_as_json(a):
        return a.status == 200 and sorted(entry["name"] for entry in json.loads(a.content)) == LISTED

    def styled(a):
        if a.fields.get("content-encoding") == "br":
            return a.status == 200 and a.body == files["style.css.br"]
        return sends("style.css")(a)

    def asks_for_password(a):
        return a.status == 401 and "Friends" in a.fields["www-authenticate"]

    def passed(method, path, times=1, body=b""):
        line = f"{method} /{path} HTTP/1.1 {place.host}\n".encode()
        return lambda a: a.status == 200 and a.content == line * times + body

    locked, behind = {"errors": (500, 503, 403)}, {"errors": (500, 502, 503, 504)}

    def ask(path, right, **rest):
        return Request(place, path, right, **rest)

    return [
        ask("/", sends("index.html")),
        ask("/small.bin", sends("small.bin")),
        ask("/large.bin", sends("large.bin")),
        ask("/text.html", sends("text.html"), accept_encoding="gzip"),
        ask("/large.bin", part(1000, 1100), range="bytes=1000-1099"),
        ask("/large.bin", parts, range="bytes=0-9,200000-200099"),
        ask("/text.html", of_length("text.html"), method="HEAD"),
        ask("/list/", lists),
        ask("/list/?format=json", lists_as_json, accept_encoding="gzip"),
        ask("/private/secret.txt", asks_for_password, **locked),
        ask("/private/secret.txt", sends("private/secret.txt"), authorization=f"Basic {PASSWORD}", **locked),
        ask("/about", sends("about.html")),
        ask("/missing", lambda a: a.status == 404),
        ask("/old/page", redirects("/new/page")),
        ask("/gone", sends("about.html")),
        ask("/dir", redirects("/dir/")),
        ask("/dir/", sends("dir/index.html")),
        ask("/link", redirects(f"https://example.org/{mark}")),
        ask("/api/short", passed("GET", "short"), **behind),
        ask("/api/long", passed("GET", "long", LONG), **behind),
        ask("/api/form", passed("POST", "form", body=b"a body"), method="POST", body=b"a body", **behind),
        ask("/style.css", styled, accept_encoding="br"),
        ask("/text.html", not_modified, if_modified_since="Fri, 01 Jan 2100 00:00:00 GMT"),
        ask("/long.txt", sends("long.txt"), accept_encoding="gzip", if_none_match='"none"'),
        ask("/packed.txt", lambda a: a.status == 200 and a.content == place.packed),
        ask("/small.bin", lambda a: a.status == 405, method="POST", body=b"a body"),
    ]


class Http1:
    def __init__(self, port, tls, asked, timeout):
        self.asked, self.verdicts = asked, []
        self.connection = Connection(("127.0.0.1", port))
        self.connection.socket.settimeout(timeout)
        self.tls = tls

    def ask(self):
        if self.tls:
            self.connection.socket = self.tls.wrap_socket(self.connection.socket, server_hostname="localhost")
        text = b""
        for r in self.asked:
            lines = [f"{r.method} {r.path} HTTP/1.1", f"Host: {r.host}", *(f"{n}: {v}" for n, v in r.fields.items()), "", ""]
            text += "\r\n".join(lines).encode() + r.body
        self.connection.send(text)

    def read(self):
        for r in self.asked:
            response = self.connection.response(r.method)
            fields = {name.lower(): value for name, value in response.fields}
            yield r, Answer(response.status, fields, response.body)


class Http2Client(Http2):
    """Sends all requests at once, each as a stream."""

    def __init__(self, port, tls, asked, timeout):
        Connection.__init__(self, ("127.0.0.1", port))  # pylint: disable=super-init-not-called,non-parent-init-called
        self.inflate, self.next_stream, self.tls, self.asked, self.connection = Inflater(), 1, tls, asked, self
        self.socket.settimeout(timeout)

    def ask(self):  # pylint: disable=arguments-differ
        if self.tls:
            self.socket = self.tls.wrap_socket(self.socket, server_hostname="localhost")
        text = PREFACE + frame(SETTINGS, payload=settings(window=1 << 30))
        text += frame(WINDOW_UPDATE, payload=struct.pack(">I", 1 << 30))
        for stream, r in enumerate(self.asked):
            fields = [(":method", r.method), (":scheme", "https"), (":authority", r.host), (":path", r.path), *r.fields.items()]
            text += frame(HEADERS, END_HEADERS | (0 if r.body else END_STREAM), 2 * stream + 1, block(*fields))
            if r.body:
                text += frame(DATA, END_STREAM, 2 * stream + 1, r.body)
        self.send(text)

    def frame(self):
        try:
            return super().frame()
        except AssertionError as error:  # the end, within a frame
            raise ConnectionResetError from error

    def read(self):
        """Yields the answers, and None for each stream that the server resets."""
        open_streams = {2 * stream + 1: [r, None, b""] for stream, r in enumerate(self.asked)}
        while open_streams:
            f = self.frame()
            if f is None or f.type == GOAWAY and int.from_bytes(f.payload[4:8]):
                raise ConnectionResetError
            if f.stream not in open_streams:
                continue
            state = open_streams[f.stream]
            if f.type == RST_STREAM:
                del open_streams[f.stream]
                yield state[0], None
                continue
            if f.type == HEADERS:
                state[1] = dict(f.fields)
            if f.type == DATA:
                state[2] += f.payload
            if f.type in (DATA, HEADERS) and f.flags & END_STREAM:
                del open_streams[f.stream]
                fields = state[1]
                assert state[0].method == "HEAD" or int(fields.get("content-length", len(state[2]))) == len(state[2])
                yield state[0], Answer(int(fields[":status"]), fields, state[2])


class Mix:
    """Makes requests to a server. ask() returns [(request, verdict, answer)]."""

    def __init__(self, server):
        self.server, self.clear, self.http2 = server, trusting(), trusting(alpn=("h2",))

    def ask(self, place, timeout):
        asked = place.requests
        found, clients = [], []
        ways = [(Http1, False, asked[:-2]), (Http1, False, asked[-2:]), (Http2Client, False, asked), (Http1, True, asked[:4]),
                (Http2Client, True, asked[2:4])]  # fmt: skip
        for kind, tls, some in ways:
            context = (self.http2 if kind is Http2Client else self.clear) if tls else None
            try:
                clients.append(kind(self.server.tls_port if tls else self.server.plain_port, context, some, timeout))
            except OSError:
                found += [(request, CLOSED, None) for request in some]
        for number, client in enumerate(clients, 1):
            found += self.ask_one(client)
            if found[-1][1] == HANGING and timeout < 1:  # the others will, too
                for other in clients[number:]:
                    other.connection.socket.settimeout(timeout / 10)
        return found

    @staticmethod
    def ask_one(client):
        found, left, how = [], list(client.asked), CLOSED
        try:
            client.ask()
            for request, answer in client.read():
                left.remove(request)
                found.append((request, request.verdict(answer) if answer else CLOSED, answer))
        except TimeoutError:
            how = HANGING
        except OSError:  # the client notices that the answer is incomplete
            pass
        except (AssertionError, KeyError, ValueError) as error:
            if not str(error).startswith("closed"):
                return [*found, (left[0] if left else None, WRONG, repr(error))]
        finally:
            client.connection.close()
        if client.connection.buffer and how == CLOSED and not left:
            return [*found, (None, WRONG, client.connection.buffer)]
        return found + [(request, how, None) for request in left]


def tell_whom(link):
    """An upstream that answers with the request line and the host, LONG times for /long, and with
    the content. It keeps the connection until /short."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            request = link.request()
            line = f"{request.line} {request['Host']}\n".encode()
            if "/short" in request.line:
                link.answer(line, "Connection: close")
                return
            link.answer(line * (LONG if "/long" in request.line else 1) + request.body)


def password_hash():
    return subprocess.run(["openssl", "passwd", "-1", "secret"], check=True, capture_output=True, text=True).stdout.strip()
