"""Reads files of rules as far as is needed to make up requests for them. What the rules mean is for others to say."""

import dataclasses
import re

NAME = re.compile(r":[A-Za-z][A-Za-z0-9_-]*")
URL = re.compile(r"(https?)://([^/?#]*)([^?#]*)", re.IGNORECASE)
STATUS = re.compile(r"(\d{3})(!?)")


@dataclasses.dataclass
class Rule:
    """A line of _redirects. scheme and host are empty if its pattern is a path."""

    scheme: str
    host: str
    path: str
    to: str = ""
    status: int = 301
    forced: bool = False
    parameters: dict = dataclasses.field(default_factory=dict)
    conditions: dict = dataclasses.field(default_factory=dict)

    @property
    def redirects(self):
        return self.status // 100 == 3

    @property
    def passes_on(self):
        return not self.redirects and "://" in self.to

    def may_match(self, path):
        """Returns whether the path may be one that the rule is for, whatever the host and the query."""
        parts = re.split(r"(\*|:[^/]+)", self.path.rstrip("/"))
        pattern = "".join(".*" if part == "*" else "[^/]+" if part[:1] == ":" else re.escape(part) for part in parts)
        return re.fullmatch(f"{pattern}/?", path) or re.fullmatch(pattern, f"{path}/")


def split(url):
    """Returns scheme, host and path of a URL or path."""
    found = URL.match(url)
    return (found[1].lower(), found[2], found[3] or "/") if found else ("", "", re.split("[?#]", url)[0])


def read(text):
    """Returns the rules of a _redirects, without lines that are none."""
    rules = []
    for line in text.splitlines():
        words = line.partition(" #")[0].split()
        if not words or words[0][0] not in "/h":
            continue
        rule = Rule(*split(words[0]))
        for word in words[1:]:
            name, equals, value = word.partition("=")
            if found := STATUS.fullmatch(word):
                rule.status, rule.forced = int(found[1]), bool(found[2])
            elif not rule.to and (word[0] == "/" or "://" in word):
                rule.to = word
            elif equals:
                (rule.conditions if rule.to else rule.parameters)[name] = value
        rules.append(rule)
    return rules


def header_blocks(text):
    """Returns the patterns of a _headers with the names of their fields, in lower case, in the order of the lines; an
    entry for a field that is removed begins with "!"."""
    blocks = []
    for line in text.splitlines():
        if re.match(r"\s*(/|https?://)", line):
            blocks.append((line.split()[0], []))
        elif blocks and (found := re.match(r"\s*(!?)\s*([\w-]+)", line)):
            blocks[-1][1].append(found[1] + found[2].lower())
    return blocks


def filled(pattern, values, splat):
    """Returns a pattern with its names and its splat replaced."""
    values = iter(values)
    return NAME.sub(lambda _: next(values), pattern).replace("*", splat)


def led_to(text, address):
    """Returns a _redirects whose rules that pass requests on lead to an address."""
    lines = []
    for line in text.splitlines(keepends=True):
        for rule in read(line):
            if rule.passes_on:
                line = line.replace(rule.to, re.sub("^https?://[^/]*", f"http://{address}", rule.to), 1)
        lines.append(line)
    return "".join(lines)
