"""Counts what crosses the wire when people visit sites, and come back after a deploy, from gatling, nginx and Caddy.

    revisits.py BUILD [--out DIRECTORY] [--sites SITE,...] [--servers SERVER,...] [--deploy switch|rsync]

The sites are those of sites/build_sites.py, each in three releases: a; b, with a small change; c, which is b built again. A
visitor is Chromium, over HTTP/2 and TLS: it opens the front page, follows a link, and another one, and waits each time until
nothing is under way. It visits release a with an empty profile, and b and c with what it has kept, in a browser started again.

With "switch", releases are directories beside each other, and what is served is a symbolic link, which is replaced; gatling has
--dictionaries. That is what its manual recommends. With "rsync", files are copied over those that are there, and none is removed.

Before each visit another visitor with a profile of its own makes the same one, and its requests are made again, once a second,
until the answers have not become shorter for CALM_S: others have been there before, as they have when a site is in use, and
what a server makes beside its answers is there.

Octets of a response are those of its head and body, as the browser counts them (HTTP/2 frames of head and data). "tcp" is what
a proxy between browser and server passed on, both ways, of which "tls" belongs to handshakes: it does not depend on what the
browser believes. cpu and pss are those of the server: processor seconds of all that was asked of it since the deploy, by both
visitors, and what its memory grew by since it was started.
"""

import argparse
import base64
import contextlib
import filecmp
import hashlib
import http.client
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "sites"), str(HERE.parent)]

import build_sites
import processes
import servers
import serving
from counting import Proxy
from visitor import Visitor, replay

DEPLOYS = {"a": "first visit", "b": "small change", "c": "no change"}
LINKS = {
    "vite": ['a[href="/report"]', 'a[href="/articles"]'],
    "next": ["main li a", 'a[href="/about"]'],
    "mkdocs": ['a[href$="first/"]', 'nav.md-nav--primary li:nth-child(3) a[href]'],
    "hugo": ["main h2 a", "main > p a"],
    "docusaurus": ["main a", "a.pagination-nav__link--next"],
}
SWITCH_S = 20
DEPLOY_S = 3600  # from one to the next
CALM_S, CALM_LIMIT_S = 6, 120
MARK = "release.txt"
NOT_COUNTED = "/favicon.ico"  # the builders make none, as people do


class Deploys:
    """What a server serves: root, into which releases are deployed."""

    def __init__(self, directory, site, built, way):
        self.way, self.releases, self.root = way, directory / "releases", directory / "current"
        for release in DEPLOYS:
            shutil.copytree(built / site / release, self.releases / release)
            self.releases.joinpath(release, MARK).write_text(release)
            set_times(self.releases / release, time.time() - DEPLOY_S * "cba".index(release) - DEPLOY_S)
        if way == "rsync":
            shutil.copytree(self.releases / "a", self.root)

    def deploy(self, release):
        if self.way == "rsync":
            subprocess.run(["rsync", "-a", "--checksum", "--delay-updates", f"{self.releases / release}/", self.root], check=True)
        else:
            new = self.root.with_name("new")
            new.symlink_to(f"releases/{release}")
            new.rename(self.root)


def set_times(path, seconds):
    """Sets all times, of a build that is as old as that: here one may have followed the other within a second."""
    for file in path.rglob("*"):
        os.utime(file, (seconds, seconds))


def get(port, path):
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=ssl._create_unverified_context(), timeout=5)
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"Host": f"localhost:{port}"})
        return connection.getresponse().read().decode()


def await_release(port, release):
    deadline = time.monotonic() + SWITCH_S
    while True:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if get(port, "/" + MARK) == release:
                return
        assert time.monotonic() < deadline, f"release {release} is not served"
        time.sleep(0.1)


def warm(port, responses):
    """Makes requests again until the answers have not become shorter for a while."""
    least, since = replay(port, responses), time.monotonic()
    started = since
    while time.monotonic() < min(since + CALM_S, started + CALM_LIMIT_S):
        time.sleep(1)
        length = replay(port, responses)
        if length < least:
            least, since = length, time.monotonic()


def key_of(certificate):
    """Returns what the browser calls its key: the SHA-256 of the public one, in base64."""
    public = subprocess.run(["openssl", "x509", "-in", certificate, "-pubkey", "-noout"], capture_output=True, check=True).stdout
    der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "DER"], input=public, capture_output=True, check=True).stdout
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


def visit(profile, key, proxy, site):
    """Returns the responses, and what the proxy counted."""
    before = proxy.now()
    with Visitor(profile, key) as visitor:
        responses = visitor.visit(f"https://localhost:{proxy.port}/", LINKS[site])
    return responses, proxy.now() - before


class Row:
    """A visit of the measured visitor."""

    def __init__(self, site, server, release, responses, counted, cpu_s, grown):
        self.site, self.server, self.release = site, server, release
        self.responses = [response for response in responses if not (response.kept or response.url.endswith(NOT_COUNTED))]
        self.counted, self.cpu_s, self.grown = counted, cpu_s, grown
        self.octets = sum(response.octets for response in self.responses)


def measure(site, name, options, built, directory, certificate):
    """Yields the rows of a site and a server."""
    deploys = Deploys(directory, site, built, options.deploy)
    deploys.deploy("a")
    proxy, key = Proxy(), key_of(certificate)
    releases = deploys.releases if options.deploy == "switch" else None
    with serving.Server(name, site, deploys.root, options.build, directory, certificate, releases) as server:
        proxy.target = server.port
        await_release(server.port, "a")
        pss = server.pss()
        for release in DEPLOYS:
            if release != "a":
                deploys.deploy(release)
                await_release(server.port, release)
            cpu = server.cpu_s()
            warm(server.port, visit(directory / "other", key, proxy, site)[0])
            responses, counted = visit(directory / "visitor", key, proxy, site)
            yield Row(site, name, release, responses, counted, serving.cpu_between(cpu, server.cpu_s()), server.pss() - pss)


def show(row, base, file):
    ratio = f"{100 * row.octets / base:.1f}" if base else "-"
    not_modified = sum(response.status == 304 for response in row.responses)
    print(row.site, row.server, row.release, row.octets, ratio, len(row.responses), not_modified, row.counted.down + row.counted.up,
          row.counted.handshakes, row.counted.connections, f"{row.cpu_s:.2f}", row.grown // 1024, sep="\t", file=file, flush=True)  # fmt: skip


HEAD = "site\tserver\trelease\toctets\tof nginx %\tresponses\t304\ttcp\ttls\tconnections\tcpu s\tpss KiB"


def describe(row, file):
    """One line for each response."""
    for response in row.responses:
        path = "/" + response.url.split("/", 3)[3]
        print(row.site, row.server, row.release, response.status, response.coding or "-", response.octets, response.whole,
              "yes" if "available-dictionary" in response.request else "no", response.headers.get("use-as-dictionary", "-"),
              response.headers.get("cache-control", "-"), path, sep="\t", file=file, flush=True)  # fmt: skip


def changed(built, site):
    """Returns how many files of b differ from those of a of the same name, and how many have no such; the same for c and b."""
    found = []
    for old, new in ("ab", "bc"):
        files = [path.relative_to(built / site / new) for path in (built / site / new).rglob("*") if path.is_file()]
        there = [path for path in files if (built / site / old / path).is_file()]
        differ = [path for path in there if not filecmp.cmp(built / site / old / path, built / site / new / path, shallow=False)]
        found.append(f"{new}: {len(files)} files, {len(files) - len(there)} new names, {len(differ)} changed")
    return "; ".join(found)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--sites", type=lambda text: text.split(","), default=list(LINKS))
    parser.add_argument("--servers", type=lambda text: text.split(","), default=list(serving.NAMES))
    parser.add_argument("--deploy", choices=("switch", "rsync"), default="switch")
    options = parser.parse_args()
    processes.end_on_signals()
    options.build = options.build.resolve()
    out = (options.out or options.build / "versus").resolve()
    out.mkdir(parents=True, exist_ok=True)
    built = options.build / "sites"
    build_sites.build_all(built, options.sites)
    with open(out / f"revisits-{options.deploy}.tsv", "w") as table, open(out / f"revisits-{options.deploy}-responses.tsv", "w") as all_responses:
        print(servers.versions(), file=table)
        print(HEAD, file=table)
        for site in options.sites:
            print(f"# {site}: {changed(built, site)}", file=table)
            base = {}
            for name in options.servers:
                with tempfile.TemporaryDirectory(prefix="gatling-revisits-") as directory:
                    directory = Path(directory)
                    directory.chmod(0o755)
                    certificate = directory / "certificate.pem"
                    certificate.write_bytes(servers.make_certificate("127.0.0.1"))
                    for row in measure(site, name, options, built, directory, certificate):
                        base.setdefault(row.release, row.octets)  # nginx is the first
                        for file in (table, sys.stdout):
                            show(row, base[row.release], file)
                        describe(row, all_responses)


if __name__ == "__main__":
    main()
