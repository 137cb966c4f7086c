"""Makes up files _redirects and _headers, with what real ones have, and what they nearly have."""

WORDS = ("a", "b", "blog", "docs", "new", "old", "post-id", "v1.2", "x_y", "page.html", "en", "de")
FIELDS = ("X-Frame-Options", "Cache-Control", "Referrer-Policy", "X-Own", "Link", "Content-Security-Policy", "x-robots-tag", "Content-Language")
VALUES = ("DENY", "max-age=60", "a:b", "one, two", "no-store", "</a.css>; rel=preload", "default-src 'self'", ":splat", "to :id")
NAMES = ("id", "post-id", "slug", "a", "year", "x_1")


class Generator:
    def __init__(self, random):
        self.random = random

    def one(self, *choices):
        return self.random.choice(choices)

    def path(self, names, splat):
        """Returns a path with up to three segments. names: that its placeholders may have; those it has are appended
        to `used`."""
        segments, used = [], []
        for _ in range(self.one(0, 1, 1, 2, 2, 3)):
            if names and self.random.random() < 0.3:
                name = self.one(*names)
                if name not in used:
                    used.append(name)
                    segments.append(f":{name}")
                    continue
            segments.append(self.one(*WORDS))
        if splat:
            segments.append("*")
        elif segments and self.random.random() < 0.2:
            segments.append("")
        return "/" + "/".join(segments), used

    def target(self, used, splat):
        segments = [self.one(*WORDS) for _ in range(self.one(0, 1, 1, 2))]
        segments += [f":{name}" for name in used if self.random.random() < 0.8]
        if splat and self.random.random() < 0.7:
            segments.append(":splat")
        elif self.random.random() < 0.1:
            segments.append(self.one("Help:Contents", "x:latest", "index.html", ":missing", ""))
        path = "/" + "/".join(segments)
        if self.random.random() < 0.1:
            path += self.one("?t=12:30", "?a=b", "#part", "#/#room:h.test")
        return path

    def rule(self):
        splat = self.random.random() < 0.35
        path, used = self.path(NAMES, splat)
        words = [path]
        if self.random.random() < 0.1:
            words[0] = self.one("http", "https", "https") + "://" + self.one("one.{host}", "two.{host}") + path
        if self.random.random() < 0.12:
            name = self.one("q", "num", "lang")
            captured = self.random.random() < 0.5
            words.append(f"{name}=:{name}" if captured else f"{name}=5")
            used = used + [name] if captured else used
        status = self.one("", "", "301", "302", "301!", "302!", "200", "200", "200!", "404", "404!", "303", "307", "308", "410", "401", "418", "500")
        url = self.random.random() < 0.15 and status in ("", "200") or status[:1] == "3" and self.random.random() < 0.15
        target = self.target(used, splat)
        if status.endswith("!") and self.random.random() < 0.15:
            words.append(status)
        else:
            words += [f"https://h.test{target}" if url else target] + ([status] if status else [])
        if self.random.random() < 0.08:
            words.append(self.one("Language=en", "Language=de,fr", "Cookie=key", "Cookie=a,b", "Country=us", "Role=admin"))
        if self.random.random() < 0.05:
            words.append("# why")
        return self.one(" ", " ", "\t", "    ").join(words)

    def rules(self, host):
        lines = [self.rule() for _ in range(self.random.randint(1, 7))]
        if self.random.random() < 0.3:
            lines.append(self.one("/* /index.html 200", "/* /404.html 404", "/* /other/:splat 302!"))
        return "".join(f"{line}\n" for line in lines).replace("{host}", host)

    def headers(self, host):
        lines = []
        for _ in range(self.random.randint(1, 5)):
            pattern, used = self.path(NAMES, self.random.random() < 0.6)
            if self.random.random() < 0.1:
                pattern = f"https://one.{host}{pattern}"
            lines.append(pattern + self.one("", "", "", "", "", "", "  # why"))
            for _ in range(self.random.randint(1, 3)):
                field, colon = self.one(*FIELDS), self.one(": ", ":", ": ", " : ")
                lines.append(f"  ! {field}" if self.random.random() < 0.15 else f"  {field}{colon}{self.one(*VALUES, *(f':{name}' for name in used))}")
            if self.random.random() < 0.05:
                lines.append("  Content-Encoding: gzip")
        return "".join(f"{line}\n" for line in lines)
