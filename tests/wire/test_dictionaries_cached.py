"""Caches and differences (RFC 9842): whatever clients send, none is ever given bytes through a shared cache that it cannot decode, or that decode to
something else than the file."""

import base64
import collections
import functools
import gzip
import random
import re

import brotli
import pytest
import zstandard
from gatling import Root, Server, eventually
from shared_cache import SharedCache, elements, opaque, values
from test_dictionaries import DIFFERENCES, apply, digest, has

pytestmark = pytest.mark.decided

REQUESTS = 2500
CODINGS = "gzip", "x-gzip", "br", "zstd", "dcb", "dcz", "identity", "*", "deflate", "compress"
WEIGHTS = "", "", "", ";q=1", ";q=0", ";q=0.0", ";q=0.5", ";q=0.9", "; q=0.001", ";Q=0.7", ";q=x"
SITES = "same-origin", "none", "cross-site", "same-site", "nonsense"


def words(seed, changes=0):
    dice = random.Random(seed)
    found = dice.choices([f"word{i}" for i in range(2000)], k=4000)
    for i in range(changes):
        found.insert(dice.randrange(len(found)), f"change{i}")
    return " ".join(found).encode()


FILES = {f"assets/app-{name}.js": words(1, changes) for name, changes in (("BxK2a9fQ", 0), ("C7dR4t_w", 3), ("D8eS5u-x", 5))}
FILES |= {"other/app-BxK2a9fQ.js": words(2), "plain.js": words(3), "index.html": b"<!doctype html><p>" + words(4), "page.html": b"<!doctype html><p>" + words(4, 2)}
PATHS = {"/" + name: content for name, content in FILES.items()} | {"/": FILES["index.html"], "/none": None, "/assets/app-ZxK2a9fQ.js": None}


@pytest.fixture(scope="module")
def server(build):
    root = Root(FILES)
    root.write("404.html", b"<p>" + words(5))
    root.write("plain.js.br", brotli.compress(FILES["plain.js"]))
    root.write("plain.js.zst", zstandard.compress(FILES["plain.js"]))
    with Server(build, root, "-j", "1") as running:
        for name, content in FILES.items():  # each is kept, if it can be
            if "assets/" in name:
                eventually(lambda: running.get("/" + name, "Accept-Encoding: dcz, dcb", has(content))["Content-Encoding"] in DIFFERENCES)
        yield running
    root.remove()


class Dice(random.Random):
    """Makes requests up."""

    def accept(self):
        kind = self.random()
        if kind < 0.1:
            return []
        if kind < 0.4:
            return ["gzip, deflate, br, zstd, dcb, dcz"]
        lists = [", ".join(self.choice(CODINGS) + self.choice(WEIGHTS) for _ in range(self.randrange(5)))]
        return lists if kind < 0.95 else [*lists, self.choice(CODINGS)]

    def dictionary(self):
        """Returns values of Available-Dictionary, and the content that the client has."""
        content = self.choice(list(FILES.values()))
        right = ":" + base64.b64encode(digest(content)).decode() + ":"
        kind = self.random()
        if kind < 0.25:
            return [], None
        if kind < 0.8:
            return [right], content
        wrong = ":" + base64.b64encode(self.randbytes(32)).decode() + ":"
        odd = [wrong, right[:-1], right[1:], right.lower(), right + ";a=1", right + ", " + right, "::", ":AAAA:", ":" + "A" * 44 + ":", '"' + right + '"', ":" + "A" * 2000 + ":",
               digest(content).hex(), "?1", "", right.replace("=", ""), right[:-2] + "=:", ":" + base64.b64encode(digest(content) * 2).decode() + ":", "\t" + right]  # fmt: skip
        return ([self.choice(odd)], content) if kind < 0.95 else ([right, self.choice([right, wrong])], content)

    def condition(self, tags):
        some = self.sample(sorted(tags), min(len(tags), self.randrange(1, 4))) if tags else ['"x"']
        kind = self.random()
        if kind < 0.5:
            return []
        if kind < 0.8:
            weak = ["W/" + tag if self.random() < 0.2 else tag for tag in some]
            return [("If-None-Match", self.choice(["*", ", ".join(weak), ", ".join(weak), ", ".join(weak)]))]
        if kind < 0.9:
            return [("If-Match", ", ".join(some))]
        return [("If-Range", some[0])]

    def request(self, tags):
        """Returns a method, a path, fields and the dictionary of the client. tags: of earlier answers, by path."""
        path = self.choice(list(PATHS) + [path for path in PATHS if "app-" in path] * 2)
        dictionary, content = self.dictionary()
        fields = [("Accept-Encoding", value) for value in self.accept()] + [("Available-Dictionary", value) for value in dictionary] + self.condition(tags[path])
        if self.random() < 0.2:
            start = self.randrange(3000)
            fields.append(("Range", self.choice([f"bytes={start}-{start + self.randrange(500)}", f"bytes={start}-", "bytes=-7", "bytes=0-0,5-9", "bytes=900000-"])))
        if self.random() < 0.4:
            fields.append(("Sec-Fetch-Site", self.choice(SITES)))
        if self.random() < 0.2:
            fields += [("Sec-Fetch-Dest", "document"), ("Sec-Fetch-Mode", "navigate"), ("Sec-CH-UA", '"Chromium";v="150"')]
        if self.random() < 0.2:
            fields.append(("Origin", "https://elsewhere.example"))
        self.shuffle(fields)
        return self.choices(["GET", "HEAD", "POST", "OPTIONS", "PUT"], [80, 14, 2, 2, 2])[0], path, fields, content


@functools.cache
def undo(coding, body, dictionary, build):
    """Returns the content of a body."""
    if coding in DIFFERENCES:
        return apply({"Content-Encoding": coding}, dictionary, build, body)
    return {None: bytes, "gzip": gzip.decompress, "br": brotli.decompress, "zstd": lambda b: zstandard.ZstdDecompressor().decompress(b, 1 << 23)}[coding](body)


def names(fields, coding):
    """Returns whether Accept-Encoding has a coding, which it does not refuse in every place."""
    listed = [re.split(r"\s*;\s*[qQ]=", element) for element in elements(values(fields, "Accept-Encoding"))]
    return any(one[0].lower() == coding and not (len(one) > 1 and re.fullmatch(r"0(\.0*)?", one[1])) for one in listed)


class Clients:
    """Checks what they get."""

    def __init__(self, build):
        self.build, self.tags, self.bodies, self.parts, self.seen = build, collections.defaultdict(set), {}, [], collections.Counter()

    def check(self, method, path, fields, dictionary, response):
        content, coding, tag = PATHS[path], response["Content-Encoding"], response["ETag"]
        self.seen[response.status, coding] += 1
        assert response.status in (200, 204, 206, 304, 400, 404, 405, 406, 412, 416, 501, 503)
        if response.status == 304:
            sent = elements(values(fields, "If-None-Match"))
            assert "*" in sent or opaque(tag) in map(opaque, sent)
            return
        if method not in ("GET", "HEAD") or response.status not in (200, 206):
            assert coding not in DIFFERENCES
            return
        assert content is not None
        if coding in DIFFERENCES:
            assert names(fields, coding) and values(fields, "Available-Dictionary") == has(dictionary).partition(": ")[2]
            assert response.status == 200 and (response["Vary"] == "*" or "Available-Dictionary" in response["Vary"])
        elif coding:
            assert coding in ("gzip", "br", "zstd")
            assert names(fields, coding) or names(fields, "*") or (coding == "gzip" and names(fields, "x-gzip")) or values(fields, "Accept-Encoding") is None
        if tag:
            self.tags[path].add(tag)
        if response.status == 206:
            self.parts.append((path, response))
        elif method == "GET":
            assert undo(coding, response.body, dictionary, self.build) == content
            assert self.bodies.setdefault((path, tag), (coding, response.body)) == (coding, response.body)  # the tag is strong

    def check_parts(self):
        """Parts are of what has their entity-tag."""
        for path, response in self.parts:
            known = self.bodies.get((path, response["ETag"]))
            found = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", response["Content-Range"] or "")
            if known and found:
                first, last, whole = map(int, found.groups())
                assert known[0] == response["Content-Encoding"] and whole == len(known[1]) and response.body == known[1][first : last + 1]


@pytest.mark.parametrize("all_tags", [False, True])
def test_no_client_is_given_what_it_cannot_decode(server, build, all_tags):
    dice, clients, connections = Dice(all_tags), Clients(build), []

    def ask(method, path, fields):
        connections[:] = connections or [server.connect()]
        response = connections[0].get(path, *(f"{name}: {value}" for name, value in fields), method=method)
        if response.status >= 400 or method not in ("GET", "HEAD"):
            connections.pop().close()
        return response

    cache = SharedCache(ask, all_tags)
    for _ in range(REQUESTS):
        method, path, fields, dictionary = dice.request(clients.tags)
        response = cache.get(method, path, fields)
        clients.check(method, path, fields, dictionary, response)
    clients.check_parts()
    for connection in connections:
        connection.close()
    # with all tags most requests are for what the client may be sent already, in one coding or another
    differences = sum(count for (_, coding), count in clients.seen.items() if coding in DIFFERENCES)
    assert cache.hits > REQUESTS / 50 and cache.revalidated > REQUESTS / 500 and differences > (0 if all_tags else REQUESTS / 100), (cache.hits, cache.revalidated, clients.seen)
    missing = {(200, None), (200, "gzip"), (200, "br"), (200, "zstd"), (206, None), (304, None)} - set(clients.seen)
    assert not missing, clients.seen
