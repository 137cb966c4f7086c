"""Compares the server with Netlify's engine on files _redirects, and with Cloudflare's asset server on _headers and pages:

    python3 tests/netlify/compare.py [--build DIR] [--node NODE_MODULES] [--seed N] [--show N] [FILE...]

FILEs are called something with _redirects or _headers; without any, those that the tests have are compared, which are
real ones with other words (anonymise.py), and others that are made up. Real rules that pass requests on lead to an
upstream of this program instead."""

import argparse
import collections
import dataclasses
import contextlib
import gzip
import http.server
import json
import random
import re
import subprocess
import sys
import threading
import urllib.parse
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
sys.path[:0] = [str(TOP / "tests/wire"), str(HERE)]

# pylint: disable=wrong-import-position
import classes  # noqa: E402
import rule_lines  # noqa: E402
import sites as made  # noqa: E402
from gatling import Connection, Root, Server, certificate, trusting  # noqa: E402
from invented import Generator  # noqa: E402

REAL = HERE / "real.gz"
MADE_UP = 500  # files, for which there are ten requests each
TOGETHER = 100  # requests that are sent at once
MARK, PASSED = b"file ", b"passed "
PLAIN = "plain-"


def real_files(path=REAL):
    """Returns the texts of the files in REAL by name."""
    blocks = re.split(r"(?m)^=== (.+)\n", gzip.decompress(path.read_bytes()).decode())
    return dict(zip(blocks[1::2], blocks[2::2], strict=True))


class Upstream(http.server.BaseHTTPRequestHandler):
    """Says what it has been asked for."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and content leave together

    def do_GET(self):  # pylint: disable=invalid-name
        content = PASSED + self.path.encode("latin-1")
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def upstream():
    """Runs an upstream, and returns its address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def sites_for(texts, address):
    """Returns the sites for files by name. address: of an upstream."""
    sites = []
    for number, (name, text) in enumerate(texts.items()):
        if "_headers" in name:
            sites.append(made.header_site(f"{number}", text))
        else:
            sites += made.redirect_sites(f"{number}", rule_lines.led_to(text, address))
    return sites


def made_up(seed, count=MADE_UP):
    sites = []
    for number in range(count):
        generator = Generator(random.Random(f"{seed} {number}"))
        sites += made.redirect_sites(f"m{number}", generator.rules(f"m{number}.test"), most=5)
        if number % 20 == 0:
            sites.append(made.page_site(f"m{number}", generator.random))
        if number % 4 == 0:
            sites.append(made.header_site(f"m{number}", generator.headers(f"m{number}.test")))
    return sites


# --- what Netlify and Cloudflare answer ---


def first_language(field):
    return re.split("[,;]", field)[0].strip()


def as_json(site):
    probes = [{"path": probe.path, "target": probe.target, "query": probe.query, "scheme": probe.scheme, "host": probe.host or site.name,
               "language": first_language(probe.language), "cookies": dict(pair.split("=", 1) for pair in probe.cookie.split("; ") if pair)}
              for probe in site.probes]  # fmt: skip
    return json.dumps({"redirects": site.redirects, "headers": site.headers, "files": sorted(site.files), "probes": probes,
                       "cloudflare": site.cloudflare})  # fmt: skip


def ask_others(sites, node):
    """Returns for each site what Netlify and Cloudflare answer to its probes."""
    command = ["node", HERE / "answers.js", node]
    lines = "".join(f"{as_json(site)}\n" for site in sites)
    output = subprocess.run(command, input=lines.encode(), stdout=subprocess.PIPE, check=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def page(files, path):
    """Returns the file that is sent for a path, or None."""
    stem = path.rstrip("/")
    names = [f"{stem}/index.html", f"{stem}.html"] if path.endswith("/") else [path, f"{path}.html", f"{path}/index.html"]
    return next((name for name in names if name in files), None)


def canonical(url):
    """Returns a URL, written in one way."""

    def octet(found):
        character = chr(int(found[1], 16))
        return character if re.fullmatch("[A-Za-z0-9_.~-]", character) else found[0].upper()

    return re.sub("%([0-9a-fA-F]{2})", octet, urllib.parse.quote(url, safe=made.SAFE + "%?#[]"))


def with_query(target, query):
    """Returns the target of a redirect with the query of the request, if it has none of its own."""
    url, hash_, fragment = target.partition("#")
    return (f"{url}?{query}" if query and "?" not in url else url) + hash_ + fragment


def expected(site, probe, match):
    """Returns the answers that are right if Netlify's engine has found this. It does not say whether the rule has
    parameters if one for the same path has some: then the query of the request is not passed on."""
    there = page(site.files, probe.path)
    missing = ("file", 404, "/404.html") if "/404.html" in site.files else ("none", 404)
    if not match or not match.get("to") or (there and not match["force"]):
        return [("file", 200, there) if there else missing]
    if match["status"] // 100 == 3 or "://" in match["to"]:
        place = match["host"], match["from"].rstrip("/")
        passed = {bool(rule.parameters) for rule in site.rules if (rule.host, rule.path.rstrip("/")) == place}
        queries = [query for query, parameters in ((probe.query, False), ("", True)) if parameters in passed or not passed]
        targets = [canonical(with_query(match["to"], query)) for query in queries]
        if match["status"] // 100 == 3:
            return [("redirect", match["status"], target) for target in targets]
        return [("upstream", re.sub("^http://127.0.0.1:[0-9]+/?", "/", target)) for target in targets]
    found = page(site.files, urllib.parse.unquote(re.split("[?#]", match["to"])[0]))
    if found:
        return [("file", match["status"], found)]
    return [missing if match["status"] in (200, 404) else ("none", match["status"])]


def expected_page(site, answer):
    """Returns what is answered if Cloudflare answers this."""
    if answer["status"] // 100 == 3:
        return ("redirect", answer["status"], canonical(answer["location"]))
    if answer["status"] == 404:
        return ("file", 404, "/404.html") if "/404.html" in site.files else ("none", 404)
    return ("file", answer["status"], answer["file"])


# --- what gatling answers ---


def write(root, site):
    directory = Path(root, site.name)
    directory.mkdir()
    for name, text in (("_redirects", site.redirects), ("_headers", site.headers)):
        if text is not None:
            (directory / name).write_text(text, newline="")
    for path in site.files:
        file = directory / path[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(MARK + path.encode())
    for host in site.hosts:
        if not (link := Path(root, host)).exists():
            link.symlink_to(site.name)


def without_headers(root, site):
    """Makes a site with the same files, and returns it."""
    plain = made.Site(PLAIN + site.name, None, None, site.files, [dataclasses.replace(probe, host="") for probe in site.probes])
    write(root, plain)
    return plain


def request(site, probe):
    lines = [f"GET {probe.target}{'?' if probe.query else ''}{probe.query} HTTP/1.1", f"Host: {probe.host or site.name}"]
    if probe.language:
        lines.append(f"Accept-Language: {probe.language}")
    if probe.cookie:
        lines.append(f"Cookie: {probe.cookie}")
    return "\r\n".join([*lines, "", ""]).encode()


def outcome(response):
    if response.status // 100 == 3:
        return ("redirect", response.status, canonical(response["Location"] or ""))
    if response.body.startswith(MARK):
        return ("file", response.status, response.body[len(MARK) :].decode())
    if response.body.startswith(PASSED):
        return ("upstream", canonical(response.body[len(PASSED) :].decode("latin-1")))
    return ("none", response.status)


def ask_gatling(server, sites):
    """Returns the responses of the server, by the names of the sites and probes."""
    asked = [(site.name, probe, request(site, probe)) for site in sites for probe in site.probes]
    responses = {}
    for scheme, port, tls in (("http", server.plain_port, None), ("https", server.tls_port, trusting())):
        these = [one for one in asked if one[1].scheme == scheme]
        with Connection(("127.0.0.1", port), tls=tls) as connection:
            for at in range(0, len(these), TOGETHER):
                connection.send(b"".join(one[2] for one in these[at : at + TOGETHER]))
                for name, probe, _ in these[at : at + TOGETHER]:
                    responses[name, probe] = connection.response()
    return responses


class Comparison:
    """All answers to the probes of some sites."""

    def __init__(self, build, node, sites, address):
        self.address = address
        with_link = {}
        for site in sites:  # a host can be that of one site
            for host in site.hosts:
                with_link.setdefault((site.name[0], host), site.name)
        for site in sites:
            other = {host for host in site.hosts if with_link[site.name[0], host] != site.name}
            site.probes = [probe for probe in site.probes if probe.host not in other]
        self.probes = sum(len(site.probes) for site in sites)
        self.differences, self.fields = [], []
        others = ask_others(sites, node)
        for letter in sorted({site.name[0] for site in sites}):
            some = [(site, other) for site, other in zip(sites, others, strict=True) if site.name[0] == letter]
            self._compare(build, some)

    def _compare(self, build, pairs):
        root = Root()
        cert, key = certificate()
        for site, _ in pairs:
            write(root.path, site)
        plain = [without_headers(root.path, site) for site, _ in pairs if site.headers is not None]
        flags = ("-v", "-D", "--cert", cert, "--key", key, "--tls-port", "0", "--upstream", self.address)
        with Server(build, root, *flags) as server:
            responses = ask_gatling(server, [site for site, _ in pairs] + plain)
        root.remove()
        for site, answers in pairs:
            for probe, answer in zip(site.probes, answers, strict=True):
                response = responses[site.name, probe]
                if site.redirects is not None:
                    right = [one for match in answer["netlify"] for one in expected(site, probe, match)]
                    if outcome(response) not in right:
                        self.differences.append(classes.Difference(site, probe, right[0], outcome(response), answer["netlify"][0]))
                elif site.headers is None:
                    right = expected_page(site, answer["cloudflare"])
                    if outcome(response) != right:
                        self.differences.append(classes.Difference(site, probe, right, outcome(response), None))
                elif response.status == 200:
                    own = responses[PLAIN + site.name, dataclasses.replace(probe, host="")].fields
                    self._compare_fields(site, probe, answer["cloudflare"]["fields"], response.fields, own)

    def _compare_fields(self, site, probe, fields, sent, own):
        """own: the fields that the server sends without rules. A type that the owner does not give depends on the coding."""
        theirs = collections.Counter((name, value) for name, value in fields.items() if value is not None)
        given = {name for name, _ in theirs}
        ours = [(name.lower(), value) for name, value in sent if name.lower() in given or (name, value) not in own]
        ours = collections.Counter(pair for pair in ours if pair[0] in given or pair[0] not in ("date", "last-modified", "content-type"))
        if theirs != ours:
            missing, more = (("fields", *sorted((one - other).elements())) for one, other in ((theirs, ours), (ours, theirs)))
            self.fields.append(classes.Difference(site, probe, missing, more, None))

    def by_class(self):
        """Returns the differences by the name of their class, or None."""
        found = collections.defaultdict(list)
        for difference in self.differences + self.fields:
            found[classes.class_of(difference)].append(difference)
        return found


def check(build, texts):
    """Returns how many files gatling --check finds no mistake in, and the mistakes in the others."""
    root = Root()
    mistakes = collections.Counter()
    clean = 0
    for number, (name, text) in enumerate(texts.items()):
        directory = Path(root.path, f"c{number}")
        directory.mkdir()
        (directory / ("_headers" if "_headers" in name else "_redirects")).write_text(text, newline="")
        done = subprocess.run([build / "gatling", "--check", "-p", "0", "-c", directory], capture_output=True, text=True, check=False)
        lines = [line for line in (done.stdout + done.stderr).splitlines() if re.search(r"_(redirects|headers):\d+", line)]
        clean += not lines
        for line in lines:
            reason = re.sub(r".*?_(redirects|headers):\d+:? *", "", line)
            mistakes[re.sub("'[^']*'|line \\d+", "...", re.sub("^'.*?': (?=[a-z'])", "", reason))] += 1
    root.remove()
    return clean, mistakes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=TOP / "build")
    parser.add_argument("--node", type=Path, default=TOP / "build/tools/netlify/node_modules")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--show", type=int, default=3, help="differences of each class")
    parser.add_argument("--made-up", type=int, default=None, help="files that are made up")
    parser.add_argument("files", nargs="*", type=Path)
    arguments = parser.parse_args()
    texts = {str(path): path.read_text(encoding="utf-8") for path in arguments.files} if arguments.files else real_files() if REAL.exists() else {}
    clean, mistakes = check(arguments.build, texts)
    print(f"{len(texts)} files, {clean} without a mistake for gatling --check; lines that it reports:")
    for mistake, count in mistakes.most_common():
        print(f"{count:7} {mistake}")
    count = arguments.made_up if arguments.made_up is not None else 0 if arguments.files else MADE_UP
    with upstream() as address:
        compared = Comparison(arguments.build, arguments.node, sites_for(texts, address) + made_up(arguments.seed, count), address)
    found = compared.by_class()
    pages = {one.name for one in classes.CLASSES if one.pages}
    for what, names in (("rules decide otherwise", found.keys() - pages), ("another page is found", found.keys() & pages)):
        total = sum(len(found[name]) for name in names)
        print(f"{compared.probes} requests, {total} for which {what} ({100 * total / max(1, compared.probes):.2f} %)")
    for name, some in sorted(found.items(), key=lambda pair: -len(pair[1])):
        kinds = collections.defaultdict(list)
        for difference in some:
            kinds[difference.kind()].append(difference)
        print(f"{len(some):7} {name or 'of no class'}")
        for kind, alike in sorted(kinds.items(), key=lambda pair: -len(pair[1])):
            print(f"{len(alike):11} {kind}")
            for difference in list({one.site.name: one for one in alike}.values())[: arguments.show]:
                print(f"            {difference}")


if __name__ == "__main__":
    main()
