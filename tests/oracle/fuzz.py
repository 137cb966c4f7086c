"""Compares the server with the manual (reference.py), on directories, rules and requests that
generator.py makes up, over HTTP/1.1 and HTTP/2:

    python3 tests/oracle/fuzz.py build/asan [--seconds N] [--seed N] [--first N]

It prints how often the two differ, by kind, and of each kind one case, which it makes as small as it can
while the difference stays. Round N of a seed is always the same."""

import argparse
import base64
import collections
import contextlib
import dataclasses
import os
import random
import re
import shutil
import sys
import time
import urllib.parse
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(TOP / "tests/wire"), str(TOP / "tests/oracle")]

# pylint: disable=wrong-import-position
import generator  # noqa: E402
import passed  # noqa: E402
import reference  # noqa: E402
from gatling import Connection, Root, Server  # noqa: E402
from http2 import Http2  # noqa: E402

SITES, REQUESTS = 30, 80  # of a round
TOGETHER, OCTETS = 40, 48 * 1024  # requests that are sent at once
TRIES = 400  # to make a case smaller
NOBODY = 65534
BUSY = (("error", 503), ("error", 429))  # perhaps not if asked alone
FLAGS = [("--upstream", "127.0.0.1"), ("--upstream", "127.0.0.1", "-v"), (), ("-v",), ("--upstream", "127.0.0.1", "-V")]


def named(outcome):
    return "/".join(map(str, outcome[: 2 if outcome[0] in ("error", "file", "redirect") else 1]))


@dataclasses.dataclass
class Case:
    flags: tuple
    root: generator.Site
    site: generator.Site
    asked: generator.Asked
    http2: bool
    expected: set = dataclasses.field(default=frozenset(), compare=False)
    got: tuple = dataclasses.field(default=(), compare=False)
    nameless: bool = dataclasses.field(default=False, compare=False)  # a directory of that name is not that of a host

    def kind(self):
        """Returns what cases of the same cause have in common."""
        path, _, query = self.asked.target.partition("?")
        sites = (self.site, self.root)
        topics = {
            "host": self.nameless,
            "long": len(path) > 3900 or any(len(name) > 255 for name in path.split("/")),
            "owner": ("error", 503) in self.expected and any(site.owned not in generator.TRUSTED or "." in site.entries for site in sites),
            "parameter": query and any("=:" in rule for site in sites for rule in site.rules),
        }
        topic = next((topic for topic, applies in topics.items() if applies), "other")
        expected = " or ".join(sorted({named(outcome) for outcome in self.expected}))
        return f"{topic}: {expected} expected, got {named(self.got)}"

    def __str__(self):
        lines = [f"flags: {' '.join(self.flags)}   {'HTTP/2' if self.http2 else 'HTTP/1.1'}"]
        for title, site in (("root", self.root), (f"site {self.site.name}/", self.site)):
            lines += [f"{title}: {path}: {entry}" for path, entry in site.entries.items()]
            if site.rules:
                lines += [f"{title}: _redirects, mode {site.owned[0]:o}, owner {site.owned[1]}:"] + [f"    {rule}" for rule in site.rules]
        shown = [text if len(text) < 300 else f"{text[:80]}...({len(text)} characters)...{text[-40:]}"
                 for text in (self.asked.target, *map(repr, self.expected), repr(self.got))]  # fmt: skip
        lines.append(f"request: {self.asked.method} {shown[0]}  Host: {self.asked.host}  {':'.join(self.asked.credentials)}")
        return "\n    ".join([*lines, f"expected: {' or '.join(shown[1:-1])}", f"got:      {shown[-1]}"])


class Bench:
    """A server and its directory."""

    def __init__(self, build, ports, flags, root):
        self.ports, self.flags = dict(zip(("up", "fcgi"), ports)), flags
        self.directory = Root()
        self.uid = NOBODY if os.geteuid() == 0 else os.geteuid()
        self.place(root)
        self.server = Server(build, self.directory, "-j", "1", "-n", *flags)
        self.ports["port"] = self.server.plain_port
        vhosts = {"-v": "only", "-V": "off"}.get(flags[-1] if flags else "", "try")
        self.world = reference.World(os.open(self.directory.path, os.O_RDONLY), self.server.plain_port, vhosts, "--upstream" in flags,
                                     frozenset((0, self.uid)), generator.HASHES)  # fmt: skip

    def close(self):
        os.close(self.world.root)
        try:
            self.server.stop()
        finally:
            shutil.rmtree(self.directory.path, ignore_errors=True)

    def _ported(self, text):
        for name, port in self.ports.items():
            text = text.replace(f"{{{name}}}", str(port))
        return text

    def place(self, site):
        """Makes the directory of a site, first under another name, so that all of it appears at once."""
        name = self._ported(site.name)
        base = self.directory.path / (f".new-{name}" if name else "")
        base.mkdir(exist_ok=True)
        modes = {}
        for path, (kind, what, *mode) in site.entries.items():
            at = base / path
            at.parent.mkdir(exist_ok=True, parents=True)
            if kind == "link":
                at.symlink_to(what)
            elif kind == "directory":
                at.mkdir(exist_ok=True)
                modes[at] = what
                if mode and os.geteuid() == 0:
                    os.chown(at, mode[0], mode[0])
            else:
                at.write_text(self._ported(what), encoding="latin-1")
                modes[at] = mode[0]
        if site.rules:
            at = base / "_redirects"
            at.write_text(self._ported("".join(rule + "\n" for rule in site.rules)), encoding="latin-1")
            modes[at] = site.owned[0]
            if os.geteuid() == 0:
                os.chown(at, site.owned[1], site.owned[1])
        for at, mode in reversed(modes.items()):
            at.chmod(mode)
        if name:
            base.rename(self.directory.path / name)

    def is_nameless(self, host):
        """Returns whether a directory has the name of the host, or is called default, but is that of no host."""
        names = [name for name in (re.sub(r":\d+$|\.$", "", host).lower(), "default") if "." not in name and name != "localhost"]
        return self.world.vhosts == "try" and any((self.directory.path / name).is_dir() for name in names)

    def requests(self, site, asked):
        """Returns requests with the names that stand in them replaced."""
        name = self._ported(site.name)
        bare = name.partition(":")[0]
        names = {"{site}": name, "{bare}": bare, "{upper}": bare.upper(), "{port}": str(self.ports["port"])}
        out = []
        for a in asked:
            host, target = a.host, a.target
            for key, value in names.items():
                host, target = host.replace(key, value), target.replace(key, value)
            out.append(reference.Request(a.method, host, target, a.credentials))
        return out

    def expectations(self, requests):
        """Returns what the reference expects, as the user of the server sees the files."""
        privileged = os.geteuid() == 0
        if privileged:
            os.seteuid(self.uid)
        try:
            return [reference.decide(self.world, request) for request in requests]
        finally:
            if privileged:
                os.seteuid(0)

    def outcome(self, fields, status, body):
        """Returns what an answer says, in the words of the reference."""
        if "x-passed" in fields:
            return ("passed", fields["x-passed"])
        if "x-script" in fields:
            script = fields["x-script"].removeprefix(f"{self.directory.path}/")
            script = script if os.path.isfile(self.directory.path / script) else ""
            return ("script", script, bytes.fromhex(fields.get("x-info", "")).decode("latin-1"))
        if "www-authenticate" in fields:
            return ("realm", re.search('realm="([^"]*)"', fields["www-authenticate"])[1])
        if 300 <= status < 400:
            return ("redirect", status, fields["location"])
        if status == 200 and body.startswith(b"<!doctype html"):
            return ("listing",)
        if status < 300 and status != 204 or body.startswith(b"<") and not body.startswith(b"<!"):
            return ("file", status, body)
        return ("error", status)

    def answers(self, requests, http2):
        """Sends requests. Returns their outcomes."""
        out, source = [], f"127.{random.randrange(1, 250)}.{random.randrange(250)}.{random.randrange(1, 250)}"
        together = TOGETHER
        while len(out) < len(requests):
            with (Http2(self.server, source=source) if http2 else Connection(("127.0.0.1", self.server.plain_port), source=source)) as link:
                before = len(out)
                with contextlib.suppress(AssertionError, OSError):
                    while len(out) < len(requests):
                        batch, size = [], 0
                        for request in requests[len(out) : len(out) + together]:
                            size += len(request.target) + 200
                            if batch and size > OCTETS:
                                break
                            batch.append(request)
                        for answer in (self._http2 if http2 else self._http1)(link, batch):
                            out.append(self.outcome(*answer))
            if len(out) == before:  # the next one alone closes the connection, or it is lost with what follows it
                if together == 1:
                    out.append(("closed",))
                together = 1 if together > 1 else TOGETHER
        return out

    @staticmethod
    def _fields(request):
        if not request.credentials:
            return []
        return [("authorization", "Basic " + base64.b64encode(":".join(request.credentials).encode()).decode())]

    def _http1(self, link, batch):
        out = []
        for request in batch:
            fields = "".join(f"{name}: {value}\r\n" for name, value in self._fields(request))
            content = "Content-Length: 2\r\n\r\nhi" if request.method == "POST" else "\r\n"
            out.append(f"{request.method} {request.target} HTTP/1.1\r\nHost: {request.host}\r\n{fields}{content}")
        link.send("".join(out).encode("latin-1"))
        for request in batch:
            response = link.response(request.method)
            fields = {name.lower(): value for name, value in response.fields}
            yield fields, response.status, self._or_length(request, fields, response.body)

    def _http2(self, link, batch):
        streams = [link.ask(request.target, *self._fields(request), method=request.method, host=request.host) for request in batch]
        for request, answer in zip(batch, link.answers(*streams)):
            fields = dict(answer.fields or {":status": "0"})
            yield fields, int(fields[":status"]), self._or_length(request, fields, bytes(answer.body))

    @staticmethod
    def _or_length(request, fields, body):
        """Returns the content, for HEAD as many octets as it would have."""
        return b"?" * int(fields.get("content-length", 0)) if request.method == "HEAD" else body


def agrees(request, expected, got):
    if got == ("error", 429):  # too many wrong passwords
        return bool(request.credentials) and any(outcome[0] == "realm" for outcome in expected)
    if request.method != "HEAD" or got[0] not in ("file", "error"):
        return got in expected
    if got[1] >= 400:
        return any(outcome[0] in ("file", "error") and outcome[1] == got[1] for outcome in expected)
    # of the content only the length is known
    return any(outcome == ("listing",) or named(outcome) == named(got) and len(outcome[2]) == len(got[2]) for outcome in expected)


def literal_parts(site):
    """Returns the starts of the paths that the rules of a site may lead to at upstreams."""
    inner = [entry[1] for path, entry in site.entries.items() if path.endswith("_redirects") and entry[0] == "file"]
    rules = [*site.rules, *"\n".join(inner).split("\n")]
    return tuple("/" + re.split("[:?]", target.split("/", 3)[3])[0] for rule in rules for target in rule.split() if target.startswith("http:"))


def stays(case):
    """Returns whether what reached an upstream is what a rule allows, whatever the reference says."""
    if case.got[0] != "passed":
        return True
    path = case.got[1].partition("?")[0]
    dots = any(urllib.parse.unquote(segment) in (".", "..") for segment in path.split("/"))
    return not dots and path.startswith(literal_parts(case.site) + literal_parts(case.root))


def compare(bench, case_of, site, asked, http2):
    """Yields the cases in which the server and the reference differ."""
    requests = bench.requests(site, asked)
    for one, request, expected, got in zip(asked, requests, bench.expectations(requests), bench.answers(requests, http2)):
        if got in BUSY and not agrees(request, expected, got):  # too many passwords wait to be checked, for example
            (got,) = bench.answers([request], http2)
        case = case_of(one, expected, got)
        case.nameless = bench.is_nameless(request.host)
        if not agrees(request, expected, got):
            yield case.kind(), case
        elif not stays(case):
            yield "left the rule", case


def smaller(case):
    """Yields cases that are a little smaller."""
    site, root, asked = case.site, case.root, case.asked
    replace = dataclasses.replace

    def without(made, path):
        return replace(made, entries={p: entry for p, entry in made.entries.items() if p != path and not p.startswith(path + "/")})

    yield replace(case, root=generator.Site(""))
    yield replace(case, http2=False)
    yield replace(case, root=replace(root, rules=[]))
    yield from (replace(case, site=replace(site, rules=site.rules[:n] + site.rules[n + 1 :])) for n in range(len(site.rules)))
    for made, name in ((root, "root"), (site, "site")):
        for size in (len(made.entries) // 2, len(made.entries) // 4):
            for n in range(0, len(made.entries), size) if size > 1 else ():
                dropped = list(made.entries)[n : n + size]
                kept = {path: entry for path, entry in made.entries.items() if path not in dropped}
                yield replace(case, **{name: replace(made, entries=kept)})
        yield from (replace(case, **{name: without(made, path)}) for path in made.entries)
    yield replace(case, root=replace(root, owned=(0o644, 0)))
    yield replace(case, site=replace(site, owned=(0o644, 0)))
    yield replace(case, asked=replace(asked, credentials=()))
    yield replace(case, asked=replace(asked, method="GET"))
    yield replace(case, asked=replace(asked, host="{site}"))
    path, mark, query = asked.target.partition("?")
    yield replace(case, asked=replace(asked, target=path))
    for n in range(1, query.count("&") + 1):
        yield replace(case, asked=replace(asked, target=path + mark + "&".join(query.split("&")[:n])))
    names = path.split("/")
    yield from (replace(case, asked=replace(asked, target="/".join(names[:n] + names[n + 1 :]) + mark + query)) for n in range(1, len(names)))
    yield replace(case, flags=tuple(flag for flag in case.flags if flag != "-v"))


class Shrinker:
    """Makes cases smaller. Keeps the last server, and gives each site a new name there."""

    def __init__(self, build, ports):
        self.build, self.ports, self.bench, self.served, self.number = build, ports, None, None, 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.bench:
            self.bench.close()

    def examine(self, case):
        """Returns the kind of a single case, and the case with both answers, or None if they agree."""
        if not self.bench or self.served != (case.flags, case.root):
            self.__exit__()
            self.bench, self.served = Bench(self.build, self.ports, case.flags, case.root), (case.flags, case.root)
        self.number += 1
        site = dataclasses.replace(case.site, name=f"t{self.number}{case.site.name}")
        self.bench.place(site)

        def answered(_, expected, got):
            return dataclasses.replace(case, expected=expected, got=got)

        return next(compare(self.bench, answered, site, [case.asked], case.http2), None)

    def shrink(self, case, kind):
        """Returns a case of the same kind that is as small as possible."""
        tries, again = TRIES, True
        while again:
            again = False
            for candidate in smaller(case):
                if tries == 0:
                    return case
                tries -= candidate != case
                found = self.examine(candidate) if candidate != case else None
                if found and found[0] == kind:
                    case, again = found[1], True
                    break
        return case


def rounds(build, ports, seed, first, deadline, found):
    """Compares until the deadline. Adds to found, {kind: [cases]}, and returns how many requests were compared."""
    count, number = 0, first
    while time.monotonic() < deadline:
        choose = random.Random(f"{seed}/{number}")
        flags, root = choose.choice(FLAGS), generator.root(choose)
        bench = Bench(build, ports, flags, root)
        try:
            for n in range(SITES):
                site = generator.site(choose, generator.site_name(choose, n))
                bench.place(site)
                asked = [generator.request(choose, site, bench.world.vhosts) for _ in range(REQUESTS)]

                def case(one, expected, got):
                    return Case(flags, root, site, one, n % 2 == 1, expected, got)  # pylint: disable=cell-var-from-loop

                for kind, differs in compare(bench, case, site, asked, http2=n % 2 == 1):
                    found[kind].append((number, differs))
                count += len(asked)
                if time.monotonic() >= deadline:
                    break
        finally:
            bench.close()
        number += 1
    return count


def fuzz(build, seconds, seed, first=0, shrink=12):
    """Returns the text of what was found, empty for nothing."""
    found, out = collections.defaultdict(list), []
    with passed.running() as ports:
        began = time.monotonic()
        count = rounds(build, ports, seed, first, began + seconds, found)
        print(f"seed {seed}: {count} requests compared, {count / (time.monotonic() - began):.0f} a second", flush=True)
        with Shrinker(build, ports) as shrinker:
            for n, (kind, cases) in enumerate(sorted(found.items(), key=lambda item: -len(item[1]))):
                number, case = cases[0]
                if n < shrink:
                    case = shrinker.shrink(case, kind)
                out.append(f"{len(cases)} times, first in round {number}: {kind}\n    {case}")
    return "\n\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--first", type=int, default=0, help="the round to begin with")
    parser.add_argument("--shrink", type=int, default=12, help="how many kinds are made smaller")
    options = parser.parse_args()
    found = fuzz(options.build, options.seconds, options.seed, options.first, options.shrink)
    print(found)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
