"""Files that are written to in place while they are served: an answer is of one version, with the
entity-tag of that version, or ends short. Run as a program, this file counts what clients of a
build get:

    python3 tests/wire/test_rewritten.py BUILD [SECONDS [SIZE...]]
"""

import bisect
import collections
import contextlib
import gzip
import hashlib
import itertools
import random
import re
import statistics
import sys
import threading
import time
import zlib
from pathlib import Path

import pytest

from gatling import TIMEOUT, Connection, Root, Server, certificate, eventually, trusting
from http2 import Http2

MEMORY, SMALL, LARGE = 40_000, 200_000, 2_000_000  # bytes: kept in memory, and sent from the file
READERS, VERSIONS = 4, 16


def versions(size):
    """Returns contents that differ in each byte, so that a mixture of two is noticed; some of them
    have another size."""
    return [bytes([n + 1]) * (size + (n % 4 == 3) * size // 3) for n in range(VERSIONS)]


class Writer(threading.Thread):
    """Writes one version after the other over a file, in place, pausing between them and sometimes
    in the middle."""

    def __init__(self, path, contents, rest, settle):
        super().__init__()
        self.path, self.contents, self.rest, self.settle = path, contents, rest, settle
        self.ended = threading.Event()

    def run(self):
        chance = random.Random(3)
        for turn in itertools.count(1):
            content = self.contents[turn % VERSIONS]
            middle = chance.randrange(len(content)) if turn % 6 == 1 else len(content)
            with open(self.path, "wb" if turn % 5 == 0 else "r+b", buffering=0) as file:
                for part in (content[:middle], content[middle:]):
                    file.write(part)
                    time.sleep(self.rest * chance.random())
                file.truncate()
            if self.ended.wait(chance.choice((0, self.rest, self.settle)) * chance.random()):
                return


class Short(Exception):
    """An answer that the client knows to be incomplete."""


class Http1:
    """An HTTP/1.1 client. slow: it has a small buffer, and pauses while it reads."""

    def __init__(self, server, tls=False, slow=False):
        self.server, self.tls, self.slow = server, tls, slow
        self.connection = None

    def connect(self):
        port = self.server.tls_port if self.tls else self.server.plain_port
        return Connection(("127.0.0.1", port), tls=trusting() if self.tls else None)

    def get(self, path, *fields):
        c = self.connection = self.connection or self.connect()
        try:
            if self.slow:
                c.send("\r\n".join([f"GET {path} HTTP/1.1", "Host: a", *fields, "", ""]).encode())
                time.sleep(0.02)
                return c.response()
            return c.get(path, *fields)
        except (AssertionError, OSError) as error:
            self.close()
            raise Short from error

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


class Http2Client(Http1):
    def connect(self):
        return Http2(self.server)

    def get(self, path, *fields):
        c = self.connection = self.connection or self.connect()
        try:
            pairs = [tuple(part.strip() for part in field.lower().split(":", 1)) for field in fields]
            answer = c.answers(c.ask(path, *pairs))[0]
        except (AssertionError, OSError) as error:
            self.close()
            raise Short from error
        if answer.reset is not None:
            raise Short
        answer.body = bytes(answer.body)
        return answer


class Etags:
    """The entity-tags of contents, according to a server whose files are not rewritten."""

    def __init__(self, server):
        self.server, self.known, self.lock = server, {}, threading.Lock()

    def __call__(self, content):
        name = hashlib.sha256(content).hexdigest()
        with self.lock:
            if name not in self.known:
                (self.server.root.path / name).write_bytes(content)
                self.known[name] = self.server.get(f"/{name}", 'If-None-Match: "another"')["ETag"].strip('"')
            return self.known[name]


class Judge:
    """Judges an answer: "right"; "half", which is right, too: what the writer had not finished,
    with exactly its entity-tag; or "wrong": other bytes than those of the entity-tag."""

    def __init__(self, etag_of, contents, stored=None):
        self.etag_of, self.stored = etag_of, stored or contents
        self.version = {etag_of(tagged): content[0] for tagged, content in zip(self.stored, contents)}

    def __call__(self, etag, *parts, whole=True):
        if not etag:  # there was no time for a hash: a version, or one over another
            runs = [byte for byte, _ in itertools.groupby(b"".join(parts))]
            return "right" if len(set(runs)) == 1 else "half" if len(runs) == 2 else "wrong"
        etag = etag.strip('"').split("-")[0]
        if etag in self.version:
            return "right" if all(set(part) == {self.version[etag]} for part in parts) else "wrong"
        return "half" if not whole or etag == self.etag_of(parts[0]) else "wrong"

    def packed(self, etag, body):
        """Judges content that is not a whole gzip."""
        unfinished = self.etag_of(body) == etag.strip('"') if etag else self.is_one_over_another(body)
        return "half" if unfinished else "wrong"

    def is_one_over_another(self, body):
        for new in self.stored:
            over = bisect.bisect_left(range(len(body)), True, key=lambda n: not new.startswith(body[: n + 1]))
            if over and any(body[over:] == old[over:] for old in (new[:over], *self.stored)):
                return True
        return False


def parts_of(answer):
    """Returns the content: that of each range, or the whole, decompressed."""
    if answer.status == 206:
        return [part.split(b"\r\n\r\n", 1)[1] for part in answer.body.split(b"\r\n--")[1:-1]]
    return [gzip.decompress(answer.body) if answer["content-encoding"] else answer.body]


def ask(client, judge, path, *fields, whole=True):
    answer = client.get(path, *fields)
    if answer.status not in (200, 206):  # there was nothing yet, or less than the range
        return "half"
    try:
        return judge(answer["etag"], *parts_of(answer), whole=whole and answer.status == 200)
    except (OSError, EOFError, zlib.error):  # packed by the writer, who had not finished, or by the server
        return judge.packed(answer["etag"], answer.body)


CLIENTS = {  # client, file, fields; unpacked: it is there only as .gz, and the entity-tag is that of the packed file
    "HTTP/1.1": (Http1, {}, "/f.bin", ()),
    "slow": (Http1, {"slow": True}, "/f.bin", ()),
    "ranges": (Http1, {}, "/f.bin", ("Range: bytes=10-19,100-30000",)),
    "gzip": (Http1, {}, "/f.txt", ("Accept-Encoding: gzip",)),
    "unpacked": (Http1, {}, "/packed.bin", ()),
    "HTTPS": (Http1, {"tls": True}, "/f.bin", ()),
    "HTTP/2": (Http2Client, {}, "/f.bin", ()),
}


def read(client, arguments, whole, until, found):
    while time.monotonic() < until or (not found["right"] and time.monotonic() < until + TIMEOUT):
        try:
            found[ask(client, *arguments, whole=whole)] += 1
        except Short:
            found["short"] += 1
    client.close()


@contextlib.contextmanager
def serving(build):
    """Yields a server whose files are rewritten, and the entity-tags of contents."""
    root, others = Root({}), Root({})
    cert, key = certificate()
    with contextlib.ExitStack() as stack:
        stack.callback(root.remove)
        stack.callback(others.remove)
        reference = stack.enter_context(Server(build, others, "-j", "1", "-n"))
        server = stack.enter_context(Server(build, root, "-j", "2", "-n", "--cert", cert, "--key", key, "--tls-port", "0"))
        yield server, Etags(reference)


def count(server, etags, kind, size, seconds, rest=0.01, settle=0.2):
    """Returns what clients of one kind get in that many seconds, {"right": n, "short": n, ...}."""
    make, options, path, fields = CLIENTS[kind]
    contents, found, packed = versions(size), collections.Counter(), kind == "unpacked"
    stored = [gzip.compress(content, 0, mtime=0) for content in contents] if packed else contents
    file = server.root.path / (path[1:] + ".gz" * packed)
    file.write_bytes(stored[0])
    judge = Judge(etags, contents, stored)
    writer = Writer(file, stored, rest, settle)
    until = time.monotonic() + seconds
    arguments = (judge, path, *fields), not packed
    readers = [threading.Thread(target=read, args=(make(server, **options), *arguments, until, found)) for _ in range(READERS)]
    for thread in (writer, *readers):
        thread.start()
    for thread in readers:
        thread.join()
    writer.ended.set()
    writer.join()
    return found


@pytest.mark.alone  # a writer that is interrupted for long in the middle of a write(2) cannot be told from one that has ended
@pytest.mark.clear
@pytest.mark.moving
@pytest.mark.parametrize("size", [MEMORY, SMALL, LARGE])
def test_an_answer_is_of_one_version_or_ends_short(build, size):
    with serving(build) as (server, etags):
        found = {kind: count(server, etags, kind, size, 0.7) for kind in CLIENTS}
    assert all(of_kind["right"] and not of_kind["wrong"] for of_kind in found.values()), found


def main(build, seconds="5", *sizes):
    print("bytes\tclient\tright\thalf\tshort\twrong")
    for size in map(int, sizes or (MEMORY, SMALL, LARGE)):
        for kind in CLIENTS:
            with serving(Path(build)) as (server, etags):
                found = count(server, etags, kind, size, float(seconds))
            print(size, kind, *(found[what] for what in ("right", "half", "short", "wrong")), sep="\t", flush=True)


@pytest.mark.alone
@pytest.mark.clear
def test_a_text_that_keeps_changing_is_not_compressed_again_and_again(build):
    """A request waits for that once, for 100 ms and a little; when it waited until the server gave up, 450."""
    root, end = Root({"a.txt": b"A" * 200_000}), threading.Event()

    def rewrite():
        for letter in itertools.cycle(b"BC"):
            root.write("new", bytes([letter]) * 200_000)
            (root.path / "new").rename(root.path / "a.txt")
            if end.wait(0.025):
                return

    with Server(build, root, "-j", "1") as server:
        writer = threading.Thread(target=rewrite)
        writer.start()
        try:
            times = []
            for _ in range(9):
                started = time.monotonic()
                assert server.get("/a.txt", "Accept-Encoding: gzip").status == 200
                times.append(time.monotonic() - started)
        finally:
            end.set()
            writer.join()
    assert statistics.median(times) < 0.3, times


@pytest.mark.decided
@pytest.mark.tcp
def test_a_file_that_is_written_to_between_the_read_and_the_look_is_read_again(build, tmp_path):
    """A small file that has not changed lately is read before its status is."""
    old, new = b"old" * 500, b"new" * 500
    log = tmp_path / "strace"
    delay = ["strace", "-f", "-qq", "-o", log, "-e", "trace=openat2,newfstatat,preadv2", "-e", "inject=preadv2:delay_exit=1000000"]
    root = Root({"a.txt": old})
    with contextlib.ExitStack() as stack:
        stack.callback(root.remove)
        path = root.path / "a.txt"
        eventually(lambda: time.time() - path.stat().st_ctime > 3, 10)  # not lately
        with Server(build, root, "-j", "1", tracer=delay) as server, server.connect() as c:
            for _ in range(3):
                c.get("/missing")  # its names are known then,
            time.sleep(0.6)  # but not so lately that all is looked at again (NAMES_LATELY_MS)
            c.send(b"GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n")
            eventually(lambda: '"a.txt"' in log.read_text())  # it is opened, and what follows takes a second
            time.sleep(0.1)
            with open(path, "r+b", buffering=0) as file:
                file.write(new)
            assert c.response().body == new
            assert server.get("/a.txt").body == new
        opened = log.read_text().split('"a.txt"', 1)[1]
        assert re.search(r"(newfstatat|preadv2)\(", opened)[1] == "preadv2"


if __name__ == "__main__":
    main(*sys.argv[1:])
