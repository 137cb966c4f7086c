"""The differences from Netlify and Cloudflare that gatling-site(5) lists: the sentence is in its table, too. A difference
that no class names is a failure, and so is a class to which none belongs."""

import collections
import dataclasses
import re
import typing
import urllib.parse

import rule_lines


@dataclasses.dataclass(frozen=True)
class Difference:
    site: object
    probe: object
    # ("redirect", status, location), ("file", status, path), ("none", status), ("upstream", path or URL), or what only
    # one of them sends: ("fields", (name, value)...)
    expected: tuple
    got: tuple
    match: dict | None  # what Netlify's engine found

    def kind(self):
        """Returns what differences of one cause have in common."""
        if self.expected[0] == "fields":
            return f"fields {', '.join(sorted({name for name, _ in self.expected[1:] + self.got[1:]}))}"
        return " ".join(map(str, ("expected", *self.expected[: 1 + (self.expected[0] != "upstream")], "got", *self.got[:2])))

    def __str__(self):
        p = self.probe
        client = "".join(f" {name}: {value}" for name, value in (("Accept-Language", p.language), ("Cookie", p.cookie)) if value)
        rule = self.match and [self.match.get(name) for name in ("host", "from", "to", "status", "force")]
        return (f"{self.site.name}: {p.scheme}://{p.host or '-'}{p.target}{'?' if p.query else ''}{p.query}{client}\n"
                f"    expected {self.expected}, got {self.got}; rule {rule}")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Class:
    name: str
    sentence: str  # of the manual
    applies: typing.Callable[[Difference], bool]
    pages: bool  # about which file is the page of a path, not about rules


CLASSES = []


def allowed(name, sentence, pages=False):
    def add(applies):
        CLASSES.append(Class(name, sentence, applies, pages))
        return applies

    return add


def class_of(difference):
    """Returns the name of the first class that a difference belongs to, or None."""
    return next((one.name for one in CLASSES if one.applies(difference)), None)


def same_but_slash(difference):
    """Returns whether the server redirects to the same path with a slash at its end, or without."""
    probe = difference.probe
    other = probe.path.rstrip("/") if probe.path.endswith("/") else f"{probe.path}/"
    target = difference.got[2].partition("?")[0] if difference.got[0] == "redirect" else None
    return target is not None and urllib.parse.unquote(target) == other


@allowed("slash", "A page has one address: one with or without a slash at the end too many is redirected to it (301), where Netlify sends the page.", pages=True)
def _(difference):
    return difference.site.redirects is not None and difference.expected[0] == "file" and same_but_slash(difference)


@allowed("moved", "Redirects to the address of a page are 301, Cloudflare's are 308.", pages=True)
def _(difference):
    expected = difference.expected
    return difference.site.redirects is None and expected[:2] == ("redirect", 308) and difference.got == ("redirect", 301, expected[2])


@allowed("file", "Paths that end with .html or /index are those of files, where Cloudflare redirects to the address of the page.", pages=True)
def _(difference):
    named = re.search(r"\.html$|/index/?$", difference.probe.path)
    return difference.site.redirects is None and named and difference.expected[:2] == ("redirect", 308) and difference.got[0] != "redirect"


@allowed("single", "Without a 404.html, what is missing is 404, where Cloudflare sends index.html.", pages=True)
def _(difference):
    alone = difference.site.redirects is None and "/404.html" not in difference.site.files
    return alone and difference.expected == ("file", 200, "/index.html") and (difference.got[1] in (403, 404) or same_but_slash(difference))


@allowed("directory", "A directory without an index is 403, or a listing, where Netlify and Cloudflare say that it is missing.", pages=True)
def _(difference):
    directory = f"{difference.probe.path.rstrip('/')}/"
    is_one = directory == "/" or any(path.startswith(directory) for path in difference.site.files)
    return is_one and difference.expected[:2] in (("none", 404), ("file", 404)) and (difference.got == ("none", 403) or same_but_slash(difference))


@allowed("itself", "A redirect to the URL of the request is skipped, where Netlify sends it.")
def _(difference):
    match, probe = difference.match or {}, difference.probe
    scheme, host, path = rule_lines.split(match.get("to", ""))
    same_place = not host or (host.lower() == (probe.host or difference.site.name) and scheme == probe.scheme)
    return match.get("status", 0) // 100 == 3 and same_place and urllib.parse.unquote(path) == probe.path


@allowed("splat", "A redirect with a * is skipped for paths that begin as its target does; at Netlify it ends the search there.")
def _(difference):
    def ends(rule):
        scheme, _, target = rule_lines.split(rule.to)
        begin = target.partition("/:splat")[0]
        return "*" in rule.path and not scheme and begin and difference.probe.path.startswith(begin) and rule.status != 200

    match = difference.match or {}
    return any(ends(rule) and rule.may_match(difference.probe.path) and (not match.get("to") or match["from"] == rule.path) for rule in difference.site.rules)


@allowed("hidden", "A rule with ! and a status from 400 on hides files also below a rule that leaves its paths to them, where Netlify sends them.")
def _(difference):
    hiding = [rule for rule in difference.site.rules if rule.forced and rule.status >= 400 and rule.may_match(difference.probe.path)]
    return difference.expected[0] in ("file", "none") and any(rule.status == difference.got[1] for rule in hiding)


@allowed("refused", "A wrong rule with a !, other than a redirect, refuses its paths, since it may hide files; Netlify ignores it.")
def _(difference):
    wrong = [rule for rule in difference.site.rules if rule.forced and not rule.redirects and (not rule.to or rule.to.startswith("https:"))]
    paths = (difference.probe.path, f"{difference.probe.path}index.html")
    return difference.got in (("none", 503), ("none", 403)) and any(rule.may_match(path) for rule in wrong for path in paths)


@allowed("target", "A rule without a target keeps the path, at Netlify only if its pattern has a *.")
def _(difference):
    return any(not rule.to and "*" not in rule.path and rule.may_match(difference.probe.path) for rule in difference.site.rules)


@allowed("end", "What a * before a slash at the end of a pattern matches ends without a slash, so that the target has one there, not two.")
def _(difference):
    return difference.match and "*" in difference.match.get("from", "") and difference.got == tuple(
        part.replace("//", "/") if at and isinstance(part, str) else part for at, part in enumerate(difference.expected)
    )


@allowed("script", "Scripts, such as those of PHP, are not sent (403) if --upstream is given.")
def _(difference):
    return difference.expected[:2] == ("file", 200) and difference.expected[2].endswith(".php") and difference.got == ("none", 403)


@allowed("empty", "A pattern with an empty segment is refused and reported: two slashes in a path are one.")
def _(difference):
    return difference.match and "//" in difference.match.get("from", "")


@allowed("expression", "A pattern that looks like a regular expression is refused and reported, where Netlify compares its characters.")
def _(difference):
    return difference.match and re.search(r"\(.*[.\[\\^]|\$$", difference.match.get("from", ""))


@allowed("upstream", "Requests are passed on only to addresses that --upstream allows; without it such a rule is ignored.")
def _(difference):
    match = difference.match or {}
    return match.get("to", "").startswith("https://") and match["status"] // 100 != 3


@allowed("comment", "A # after a pattern of _headers begins a comment, where Cloudflare takes it for part of the path.")
def _(difference):
    return difference.expected[0] == "fields" and re.search(r"(?m)^[ \t]*(https?:/)?/\S*[ \t]+#", difference.site.headers)


@allowed("order", "The lines of a pattern of _headers apply in their order, also those with !, which Cloudflare takes first.")
def _(difference):
    def undone(names):
        return any(f"!{name}" in names[at:] for at, name in enumerate(names))

    return difference.expected[0] == "fields" and any(undone(names) for _, names in rule_lines.header_blocks(difference.site.headers))


@allowed("twice", "A pattern that is in _headers twice applies twice; Cloudflare takes the last one.")
def _(difference):
    patterns = [pattern for pattern, _ in rule_lines.header_blocks(difference.site.headers or "")]
    return difference.expected[0] == "fields" and len(set(patterns)) < len(patterns)


@allowed("gzip", "Content-Encoding: gzip is left out for a file that is not in gzip, where Cloudflare sends it.")
def _(difference):
    return ("content-encoding", "gzip") in difference.expected[1:] and difference.got == ("fields",)


@allowed("once", "A field that a response has once is that of the last pattern, where Cloudflare joins the values.")
def _(difference):
    if difference.expected[0] != "fields":
        return False
    expected, got = (collections.defaultdict(str, dict(one[1:])) for one in (difference.expected, difference.got))
    return all(expected[name].endswith(f", {got[name]}") for name in {*expected, *got})
