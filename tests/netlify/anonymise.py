"""Makes the rules that the tests have of real files, so that nothing of them is left but their form:

    python3 tests/netlify/anonymise.py FILE... > tests/netlify/real.gz

FILEs are called something with _redirects or _headers. Each word becomes a made up one, the same word always the same
one, and each number another one; placeholders, splats, dots, colons, statuses, conditions, blanks, names of fields and
what their values have by their definition stay. Comments are dropped."""

import gzip
import itertools
import re
import sys
from pathlib import Path

# What means something to a server: names of files, schemes, words of the format itself, languages and countries.
KEPT = set("""
http https splat index html htm xhtml php asp aspx css js mjs cjs map json jsonld xml rss atom txt md pdf png jpg jpeg gif svg ico webp avif
woff woff ttf otf eot mp wasm zip gz br webmanifest netlify functions well known Language Country Role Cookie User Agent www
""".split())  # fmt: skip
# Words in the values of fields that are defined somewhere.
DEFINED = set("""
public private no cache store must revalidate proxy immutable max age s maxage stale while if error transform only understood DENY SAMEORIGIN ALLOW
FROM nosniff mode block strict origin when cross same referrer unsafe inline eval self none data blob script src style img font connect frame
ancestors default object base uri form action worker manifest media child upgrade insecure requests sandbox allow scripts report to navigate
wasm hashes dynamic elem attr geolocation camera microphone payment usb interest cohort accelerometer gyroscope magnetometer fullscreen
autoplay browsing topics sync xhr midi display capture encrypted picture in screen wake lock web share publickey credentials get clipboard read write ambient
light sensor battery document domain execution while not rendered out of viewport idle detection serial hid bluetooth gamepad speaker selection storage access
attribution reporting run ad auction join group private state token issuance redemption shared unload keyboard local fonts window management
includeSubDomains preload text plain application javascript octet stream charset utf image video audio x icon UTF Accept Encoding Origin Language Cookie
Content Type Authorization Requested With Range GET POST PUT DELETE PATCH HEAD OPTIONS true false on off noindex nofollow noarchive nosnippet noimageindex index follow all
require corp credentialless isolate popups attachment filename rel stylesheet as modulepreload preconnect dns prefetch crossorigin anonymous fetch
gzip br zstd identity Secure HttpOnly SameSite Lax Strict Path Expires Basic Auth cross policy master permitted policies expect ct enforce
""".split())  # fmt: skip
DEFINED |= KEPT | {word.lower() for word in DEFINED}
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
PARTS = re.compile(r"(?:%[89A-Fa-f][0-9A-Fa-f])+|%[0-7][0-9A-Fa-f]|\d+\.\d+\.\d+\.\d+|[^\W\d_]+|\d+|.", re.DOTALL)


class Words:
    """Replaces the words of one file."""

    def __init__(self, file):
        self.file, self.words, self.numbers = file, {}, {}
        self.new = ("".join(parts) for count in (2, 3) for parts in itertools.product(SYLLABLES, repeat=count))

    def word(self, word):
        if word not in self.words:
            new = next(self.new)
            if not word.isascii():
                new += "é"
            self.words[word] = new.upper() if word.isupper() and len(word) > 1 else new.title() if word[0].isupper() else new
        return self.words[word]

    def number(self, digits):
        if digits not in self.numbers:
            self.numbers[digits] = str(len(self.numbers) * 7 + 3).rjust(len(digits), "1")[-len(digits) :]
        return self.numbers[digits]

    def text(self, text, kept):
        def one(found):
            part = found[0]
            if part.startswith("%"):
                return part if len(part) == 3 and part[1] < "8" else "%C3%A9"
            if re.fullmatch(r"[\d.]+\.[\d.]+", part):
                return "192.0.2.1"
            if part.isdigit():
                return self.number(part)
            return part if part in kept or not part.isalpha() else self.word(part)

        return PARTS.sub(one, text)

    def value(self, text):
        """Returns the value of a field. Numbers stay that stand alone."""

        def one(found):
            return found[0] if re.fullmatch(r"[\d.:+-]+|(?i:utf-8)", found[0]) else self.url(found[0]) if "://" in found[0] else self.text(found[0], DEFINED)

        return re.sub(r"[^\s;,=()\"'<>]+", one, text)

    def url(self, text):
        """Returns a URL, path or anything else with its words replaced. A host ends with the number of the file."""
        found = re.match(r"((?:\w+:)?//)([^/?#\s]*)", text)
        if not found:
            return self.path(text)
        host, colon, port = found[2].partition(":")
        host = self.text(host, {"www"})
        if "." in host and not host[-1].isdigit():
            host += f".n{self.file}"
        return found[1] + host.lower() + colon + port + self.path(text[found.end() :])

    def path(self, text):
        """404 and 500 are the names of pages."""
        return "".join(part if part in ("404", "500", "50x", "403") else self.text(part, KEPT) for part in re.split(r"(?<=/)(404|500|50x|403)(?=[./]|$)", text))


def redirects(text, words):
    lines = []
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            continue
        parts = re.split(r"(\s+)", line)
        for at, part in enumerate(parts):
            if part.startswith("#") and at:
                parts[at:] = ["# comment"]
                break
            if re.fullmatch(r"\d{3}!?|\s*", part):
                continue
            name, equals, value = part.partition("=")
            if equals and name in ("Language", "Country"):
                continue
            if equals and not re.search("[/?]", name):
                parts[at] = words.text(name, KEPT) + "=" + words.text(value, KEPT)
            else:
                parts[at] = words.url(part)
        lines.append("".join(parts))
    return "\n".join(lines) + "\n"


def headers(text, words):
    lines = []
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            continue
        if re.match(r"\s*(/|https?://|$)", line):
            lines.append(re.sub(r"\S+", lambda word: words.url(word[0]), line, count=1))
        elif found := re.match(r"(\s*(?:!\s*)?[\w-]+\s*:?)(.*)", line):
            lines.append(found[1] + words.value(found[2]))
        else:
            lines.append(words.text(line, KEPT))
    return "\n".join(lines) + "\n"


def main():
    output = []
    for number, name in enumerate(sorted(sys.argv[1:])):
        text = Path(name).read_text(encoding="utf-8").removeprefix("\ufeff")
        kind, replace = ("_headers", headers) if "_headers" in name else ("_redirects", redirects)
        output.append(f"=== {number}{kind}\n{replace(text, Words(number))}")
    sys.stdout.buffer.write(gzip.compress("".join(output).encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
