"""Switches the served directory from release to release, as Capistrano does, under requests over
connections that are kept, new ones, and HTTP/2 with TLS, and looks for wrong, mixed, late and lost
answers:

    python3 tests/wire/switching.py BUILD [--switches N] [--rate REQUESTS_A_SECOND]

Each file of a release, and a field of its answer, names the release. An answer is wrong if it is no
file, mixed if its parts name different releases or one that is older than the answer before on that
connection, late if it names an old release though the request was sent FOLLOWED_S after the switch,
and lost if it does not come."""

import argparse
import collections
import itertools
import os
import ssl
import struct
import sys
import threading
import time
from pathlib import Path

from gatling import Connection, Root, Server, certificate, eventually, server_of, trusting
from http2 import DATA, END_STREAM, GOAWAY, HEADERS, PING, ACK, Http2, frame

FOLLOWED_S = 2
FILES = {"index.html": 2_000, "style.css": 30_000}
PATHS = ("/", "/style.css")


class Releases:
    """A directory with releases and the symlink `current`."""

    def __init__(self):
        self.root, self.number, self.begun = Root(), 0, [time.monotonic()]
        self.current = self.root.path / "current"
        self.make()

    def make(self):
        """Makes the next release, and switches to it."""
        number = self.number + 1
        for name, size in FILES.items():
            self.root.write(f"{number}/{name}", (f"{number}\n" * size)[:size].encode())
        self.root.write(f"{number}/_headers", f"/*\n  X-Release: {number}\n".encode())
        (self.root.path / "new").symlink_to(str(number))
        (self.root.path / "new").rename(self.current)
        self.number = number
        self.begun.append(time.monotonic())

    def newest(self, at):
        """Returns the release that was current at a time."""
        return max(n for n, begun in enumerate(self.begun) if begun <= at or n <= 1)


class Http2Client(Http2):
    """Makes one request after the other. told: whether the server has told it to go."""

    def __init__(self, server):
        super().__init__(server, tls=trusting(alpn=("h2",)))
        self.told = False

    def fetch(self, path):
        stream = self.ask(path)
        fields, body, ended = [], b"", False
        while not ended:
            f = self.frame()
            assert f, "the connection has ended"
            if f.type == GOAWAY:
                self.told = True
                assert stream <= struct.unpack(">I", f.payload[:4])[0], "a request is refused"
            elif f.type == PING and not f.flags & ACK:
                self.send(frame(PING, ACK, 0, f.payload))
            if f.stream != stream:
                continue
            assert f.type in (HEADERS, DATA), f
            if f.type == HEADERS:
                fields = f.fields
            else:
                body += f.payload
            ended = f.flags & END_STREAM
        fields = dict(fields)
        return int(fields[":status"]), fields.get("x-release"), body


class Http1Client(Connection):
    def __init__(self, server, fields=()):
        super().__init__(("127.0.0.1", server.plain_port))
        self.told, self.fields = False, fields

    def fetch(self, path):
        response = self.get(path, *self.fields)
        self.told = response["Connection"] == "close"
        return response.status, response["X-Release"], response.body


class Secure:
    """What Http2 needs to know of a server."""

    def __init__(self, server):
        self.plain_port = server.tls_port


CONNECT = {
    "kept": Http1Client,
    "new": lambda server: Http1Client(server, ("Connection: close",)),
    "http2": lambda server: Http2Client(Secure(server)),
}


class Client(threading.Thread):
    def __init__(self, kind, server, releases, pause_s):
        super().__init__()
        self.connect, self.server, self.releases, self.pause_s = CONNECT[kind], server, releases, pause_s
        self.done, self.newest, self.failures, self.stopping = 0, 0, collections.Counter(), False
        self.examples = []

    def fail(self, what, how):
        self.failures[what] += 1
        self.examples.append(f"{what}: {how}")

    def look(self, path, answer, sent, last):
        """Looks at an answer. Returns its release, or last."""
        status, field, body = answer
        named = {int(line) for line in set(body.split(b"\n")[:-1])}
        size = FILES[path[1:] or "index.html"]
        if status != 200 or len(body) != size or not named:
            self.fail("wrong", f"{path} {status} {len(body)}")
            return last
        if {int(field or 0)} != named or min(named) < last:
            self.fail("mixed", f"{path} {field} {named} after {last}")
        if min(named) < self.releases.newest(sent - FOLLOWED_S):
            self.fail("late", f"{path} {named}, {self.releases.number} is current")
        self.newest = max(named)
        return max(named)

    def run(self):
        connection, last = None, 0
        for path in itertools.cycle(PATHS):
            if self.stopping:
                break
            begun = time.monotonic()
            try:
                if not connection:
                    connection, last = self.connect(self.server), 0
                sent = time.monotonic()
                last = self.look(path, connection.fetch(path), sent, last)
                self.done += 1
                if connection.told:
                    connection.close()
                    connection = None
            except (OSError, AssertionError, ssl.SSLError) as error:
                self.fail("lost", repr(error))
                connection = None
            time.sleep(max(0, begun + self.pause_s - time.monotonic()))
        if connection:
            connection.close()


class Load:
    """Clients that make so many requests a second together."""

    def __init__(self, server, releases, rate):
        kinds = ("kept", "new", "http2")
        self.clients = [Client(kind, server, releases, len(kinds) * 2 / rate) for kind in kinds for _ in range(2)]

    def __enter__(self):
        for client in self.clients:
            client.start()
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.stopping = True
        for client in self.clients:
            client.join()

    def all_see(self, number):
        return all(client.newest == number for client in self.clients)

    def done(self):
        return sum(client.done for client in self.clients)

    def failures(self):
        return sum((client.failures for client in self.clients), collections.Counter())

    def examples(self):
        return [example for client in self.clients for example in client.examples[:3]]


def held(pid):
    """Returns how many descriptors a process has."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def switch(server, releases, rate, switches, told=lambda line: None):
    """Switches under load. Returns the load, the seconds until all clients saw each release, and the
    processes and descriptors of the keeper before and after."""
    seen_s, kept = [], []
    with Load(server, releases, rate) as load:
        for _ in range(switches):
            eventually(lambda: load.all_see(releases.number))
            kept.append((len(os.listdir(f"/proc/{server.keeper}/task")), held(server.keeper)))
            releases.make()
            begun = time.monotonic()
            eventually(lambda: load.all_see(releases.number))
            seen_s.append(time.monotonic() - begun)
            time.sleep(max(0, begun + FOLLOWED_S + 0.3 - time.monotonic()))  # in which late answers would come
            told(f"release {releases.number} after {seen_s[-1]:.2f} s, {load.done()} answers, {dict(load.failures())}")
    return load, seen_s, kept


def main():
    parser = argparse.ArgumentParser(description="Switches the served directory under load.")
    parser.add_argument("build", type=Path)
    parser.add_argument("--switches", type=int, default=50)
    parser.add_argument("--rate", type=int, default=500)
    options = parser.parse_args()
    releases, (cert, key) = Releases(), certificate()
    flags = ("-n", "--cert", cert, "--key", key, "--tls-port", "0", *(("-u", "nobody") if os.geteuid() == 0 else ()))
    with Server(options.build, releases.current, *flags, as_root=True) as server:
        load, seen_s, kept = switch(server, releases, options.rate, options.switches, print)
        print(f"{load.done()} answers, {dict(load.failures()) or 'none wrong, mixed, late or lost'}; "
              f"a switch was seen after {min(seen_s):.2f} to {max(seen_s):.2f} s; descriptors of the keeper: {kept[0][1]}, then {kept[-1][1]}")  # fmt: skip
        print("\n".join(load.examples()))
        server.pid = server_of(server.keeper)
    releases.root.remove()
    sys.exit(bool(load.failures()))


if __name__ == "__main__":
    main()
