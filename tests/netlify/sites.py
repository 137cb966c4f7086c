"""Sites with rules, and requests for them: those that a rule is for, and those that it nearly is for."""

import dataclasses
import functools
import itertools
import re
import urllib.parse

from rule_lines import NAME, filled, header_blocks, read, split

MOST_RULES = 120  # of a file, for which there are requests
SAFE = "!$&'()*+,;:@=/-._~"


@dataclasses.dataclass(frozen=True)
class Probe:
    path: str  # decoded
    query: str = ""
    scheme: str = "http"
    host: str = ""  # empty: that of the site
    language: str = ""  # Accept-Language
    cookie: str = ""

    @property
    def target(self):
        return urllib.parse.quote(self.path, safe=SAFE)


@dataclasses.dataclass
class Site:
    """A directory. Its files contain their paths."""

    name: str
    redirects: str | None
    headers: str | None
    files: set = dataclasses.field(default_factory=set)
    probes: list = dataclasses.field(default_factory=list)
    hosts: set = dataclasses.field(default_factory=set)  # of its rules
    cloudflare: bool = False

    @functools.cached_property
    def rules(self):
        return read(self.redirects or "")


def possible(path):
    """Returns whether a file can have the path, and is served."""
    names = path.split("/")[1:]
    return path.startswith("/") and all(0 < len(name) < 200 and name[0] not in ".:" and "\\" not in name for name in names) and "*" not in path


def no_more_files(files):
    """Returns the files without those that would have to be directories as well, or are the page of another file."""
    directories = {path[:at] for path in files for at in range(1, len(path)) if path[at] == "/"}
    files = files - directories
    return {path for path in files if path.removesuffix(".html") == path or path.removesuffix(".html") not in files}


def targets(rules):
    """Returns the paths that rules lead to without a redirect, some of them as other names of a page."""
    files = set()
    for number, rule in enumerate(rules):
        scheme, _, path = split(rule.to or rule.path)
        if scheme or rule.redirects:
            continue
        path = filled(path, itertools.repeat("one"), "two/three").replace(":splat", "two/three")
        stem = path.rstrip("/")
        path = f"{stem}/index.html" if path.endswith("/") else [path, f"{path}.html"][number % 2 and "." not in path]
        if number % 5 != 4 and possible(path):
            files.add(path)
    return files


def nearly(path):
    """Returns paths that are nearly the same."""
    yield path.rstrip("/") if path.endswith("/") else f"{path}/"
    yield f"{path.rstrip('/')}/more"
    yield path[:-1]
    if path.upper() != path:
        yield path[:1] + path[1:2].upper() + path[2:] if path[1:2].islower() else path.upper()
    yield path.rsplit("/", 1)[0]


def paths_for(rule):
    """Returns paths that a rule is for, as far as can be seen."""
    words = [f"v{number}" for number in range(20)]
    ways = [(words, "one"), (itertools.repeat("a-b.c"), "one/two.html"), (itertools.repeat("x"), "")]
    pattern = urllib.parse.unquote(rule.path, errors="replace")
    return list(dict.fromkeys(filled(pattern, *way) for way in (ways if NAME.search(pattern) or "*" in pattern else ways[:1])))


def queries_for(rule):
    if not rule.parameters:
        return [""]
    pairs = [(name, "v7" if value.startswith(":") else value) for name, value in rule.parameters.items()]
    joined = ["=".join(pair) for pair in pairs]
    return ["&".join(joined), "&".join([*reversed(joined), "more=1"]), "&".join(joined[1:]), "", "&".join(f"{name}=other" for name, _ in pairs)]


def clients_for(rule):
    """Returns pairs of Accept-Language and Cookie."""
    languages, cookies = rule.conditions.get("Language", "").split(","), rule.conditions.get("Cookie", "").split(",")
    found = [("", "")]
    if languages[0]:
        found += [(languages[0], ""), (f"{languages[-1]}-XX,q1;q=0.7", ""), ("tlh", "")]
    if cookies[0]:
        found += [("", f"{cookies[0]}=1; other=2"), ("", f"none=1; {cookies[-1]}=yes"), ("", f"{cookies[0]}x=1")]
    if languages[0] and cookies[0]:
        found.append((languages[0], f"{cookies[0]}=1"))
    return found


def redirect_sites(name, text, most=None):
    """Returns two sites with the rules of a _redirects: where only what they lead to is there, and where files are in
    the way."""
    rules = read(text)
    hosts = {filled(rule.host, itertools.repeat("any"), "any").lower() for rule in rules if rule.host} - {""}
    there, in_way = targets(rules), set()
    probes = [Probe("/"), Probe("/nothing/here"), Probe("/nothing.html")]
    step = max(1, len(rules) // MOST_RULES)
    for rule in rules[::step]:
        host = filled(rule.host, itertools.repeat("any"), "any").lower()
        paths = paths_for(rule)
        for number, path in enumerate(paths):
            schemes = ["http", "https"] if hosts else ["http"]
            for scheme, query, client in itertools.product(schemes, queries_for(rule), clients_for(rule)):
                probes.append(Probe(path, query, scheme, host, *client))
            if number == 0:
                probes += [Probe(near, queries_for(rule)[0], "http", host) for near in nearly(path)]
                if not rule.parameters:
                    probes.append(Probe(path, "a=b&c=d%20e", "http", host))
            if host:
                probes.append(Probe(path))
        if possible(paths[0]):
            in_way.add(paths[0])
        elif possible(f"{paths[0]}index.html"):
            in_way.add(f"{paths[0]}index.html")
    probes = [probe for probe in dict.fromkeys(probes) if probe.path.startswith("/") and "//" not in probe.path]
    if most:
        probes = probes[:: max(1, len(probes) // most)]
    sites = []
    for letter, files in (("a", there), ("b", there | in_way)):
        files = no_more_files(files)
        sites.append(Site(f"{letter}-{name}.test", text, None, files, probes, hosts))
    return sites


def header_site(name, text):
    """Returns a site with the fields of a _headers, and files at the paths of its patterns."""
    files, probes, hosts = {"/index.html", "/other/page.html"}, [Probe("/"), Probe("/other/page.html")], set()
    for pattern, _ in header_blocks(text):
        scheme, host, path = split(pattern)
        host = filled(host, itertools.repeat("any"), "any").lower()
        hosts |= {host} - {""}
        for splat in ("one.css", "two/three.js"):
            full = filled(path, ("v0", "v1", "v2", "v3", "v4", "v5"), splat)
            full = f"{full}index.html" if full.endswith("/") else full
            if possible(full):
                files.add(full)
                probes.append(Probe(full.removesuffix("index.html"), "", "http", host))
                probes.append(Probe(f"/deep{full}"))
    files = no_more_files(files)
    return Site(f"h-{name}.test", None, text, files, list(dict.fromkeys(probes)), hosts, cloudflare=True)


def page_site(name, random):
    """Returns a site without rules, with pages under some of the names that they may have."""
    files, probes = set(), []
    for word in ("about", "blog", "8.0.0", "a-b", "x"):
        forms = (f"/{word}", f"/{word}.html", f"/{word}/index.html", f"/{word}/page.html", f"/{word}/deep/index.html")
        files |= {form for form in forms if random.random() < 0.4}
        paths = (*forms, f"/{word}/", f"/{word}/index", f"/{word}/page", f"/{word}/page/", f"/{word}/deep", f"/{word}/deep/", f"/{word}/none")
        probes += [Probe(path, query) for path in paths for query in ("", "a=b")]
    files |= {file for file in ("/index.html", "/404.html") if random.random() < 0.7}
    probes += [Probe(path) for path in ("/", "/index", "/index.html", "/404", "/404.html", "/none", "/none/", "/none.html")]
    return Site(f"p-{name}.test", None, None, no_more_files(files), probes, cloudflare=True)
