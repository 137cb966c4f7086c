"""Makes up served directories, rules and requests for fuzz.py. The names are few, so that they meet."""

import dataclasses
import urllib.parse

ANN, BOB = ("ann", "secret"), ("bob", "hunter")
HASHES = {"$1$ab$dslkcXxVH.x8LwW1W/oAB/": "secret", "$1$cd$6MxtIg0xzYetOSlmz1ZnX.": "hunter"}  # openssl passwd -1
LINES = dict(zip((ANN, BOB), (f"{user}:{hashed}\n" for (user, _), hashed in zip((ANN, BOB), HASHES))))
STRANGER, NOBODY = 1234, 65534  # a user whom nobody knows, and the one that starts the server if root does not
TRUSTED = [(0o644, 0), (0o644, 0), (0o644, NOBODY)]  # the mode and owner of _redirects that may pass requests on

DIRECTORIES = ["private", "docs", "a", "sub", "x-", "p.d", "about"]
FILES = ["index.html", "about.html", "docs.html", "p.d.html", "x.txt", "app.php", "note.html", "up", "LIB.PHP", "index.php", "404.html", "403.html", "50x.html", ".secret"]
SEGMENTS = DIRECTORIES + FILES + ["note", "missing", "api", "x-..", "x-.", "f-", "f-..", "old", "%2e", "a b", "_redirects", "_redirects.gz"]
VALUES = ["5", "5", "", ".", "..", "../x/", "%2e%2e", "%2e%2e%2f", "a/b", "%2E.", ".%2e/..", "%252e%252e", "x.txt", "private/x.txt", "a%2Fb", "a+b", "x%20y", "..;x", "a;b"]
METHODS = ["GET"] * 12 + ["HEAD", "HEAD", "POST", "POST", "OPTIONS", "DELETE"]


@dataclasses.dataclass
class Site:
    """name: of its directory, in which {port} stands for that of the server. entries: what is in it, by path:
    ("file", content, mode), ("directory", mode) or ("directory", mode, owner), or ("link", target). owned: the mode, and owner, of _redirects."""

    name: str
    entries: dict = dataclasses.field(default_factory=dict)
    rules: list = dataclasses.field(default_factory=list)
    owned: tuple = (0o644, 0)


@dataclasses.dataclass
class Asked:
    """A request. In host and target {site} stands for the name of the site, {port} for that of the server."""

    method: str
    host: str
    target: str
    credentials: tuple = ()


def passwords(random, realm):
    """Returns an entry for .htaccess: mostly a right one."""
    right = f"{realm}\n{LINES[random.choice((ANN, ANN, BOB))]}"
    return random.choice([("file", right, 0o644)] * 9 + [
        ("file", right + "# a comment\n\n" + LINES[BOB], 0o644),
        ("file", "", 0o644),
        ("file", "AuthType Basic\nAuthName x\n", 0o644),
        ("file", right + "allow 127.0.0.0/8\n", 0o644),
        ("file", "allow 10.0.0.0/8\n" + right, 0o644),
        ("file", random.choice(["allow ::/0\n", "allow 127.0.0.0/8\n"]), 0o644),
        ("file", random.choice(["RewriteEngine on\n", "Require all granted\n", "Require all denied\n", "Require ip 127\n"]), 0o644),
        ("file", right, 0),
        ("link", ".htaccess"),
        ("link", "nowhere"),
        ("directory", 0o755),
    ])  # fmt: skip


def _fill(random, entries, directory, depth):
    number = len(entries)
    if random.random() < 0.3:
        entries[directory + ".htaccess"] = passwords(random, f"R{number}")
    if random.random() < 0.05:
        entries[directory + ".htaccess_global"] = passwords(random, f"G{number}")
    for name in random.sample(FILES, random.randrange(1, 6)):
        entries[directory + name] = ("file", f"<{directory}{name}>", random.choice([0o644] * 9 + [0o640, 0]))
    if random.random() < 0.15:
        target = random.choice(["private", "..", "loop", "nowhere", "x.txt", "https://elsewhere.example/a?b", ".secret"])
        entries[directory + random.choice(["loop", "link", "index.html", "about"])] = ("link", target)
    for name in random.sample(DIRECTORIES, random.randrange(0, 4 - depth)) if depth < 3 else []:
        entries[directory + name] = ("directory", random.choice([0o755] * 24 + [0, 0o711]))
        _fill(random, entries, f"{directory}{name}/", depth + 1)


def _pattern(random, entries):
    """Returns a pattern, and the names in it."""
    path = random.choice(sorted(entries) or ["a"])
    above = path.rpartition("/")[0]
    return random.choice([
        ("/*", ["splat"]), (f"/{above}/*" if above else "/a/*", ["splat"]), (f"/{path}", []), (f"/{above}/:a".replace("//", "/"), ["a"]),
        ("/api/*", ["splat"]), ("/private/*", ["splat"]), ("/x-:a", ["a"]), ("/f-*", ["splat"]), ("/:a/x-:b", ["a", "b"]),
        ("/*/x.txt", ["splat"]), ("/old", []), ("/docs/:a-b", ["a-b"]), ("/:a/:a-b", ["a", "a-b"]), ("/f-:", []), ("/a/:b/*", ["b", "splat"]), ("/docs/", []),
    ])  # fmt: skip


def rule(random, entries):
    pattern, names = _pattern(random, entries)
    parameters = random.choice([[]] * 4 + [["id=:id"], ["id=:id"], ["id=5"], ["id=:id", "k=v"]])
    names = names + [p[1:] for p in (word.partition("=")[2] for word in parameters) if p.startswith(":")]
    random.shuffle(names)
    name = f":{names[0]}" if names else "x.txt"
    other = f":{names[-1]}" if names else "y"
    file = random.choice(sorted(path for path, entry in entries.items() if entry[0] == "file" and "/." not in f"/{path}") or ["x.txt"])
    up = random.choice(["/", "/u/", "/lit/a/", "/u/v-"])
    target, statuses = random.choice([
        (f"http://127.0.0.1:{{up}}{up}{name}", ["200"]),
        (f"http://127.0.0.1:{{up}}{up}{name}", ["200"]),
        (f"http://127.0.0.1:{{up}}{up}{name}/{other}?q={other}", ["200"]),
        (f"http://127.0.0.1:{{up}}{up}{name}{other}.html", ["200"]),
        ("fcgi://127.0.0.1:{fcgi}", ["200"]),
        (f"fcgi://127.0.0.1:{{fcgi}}/{random.choice(['app.php', 'private/app.php', f'private/{name}', f'{name}.php', name])}", ["200"]),
        (f"/{file}", ["200", "200", "404", "410", "401", "418", "500"]),
        (f"/to/{name}x:y:z", ["301"]),
        (f"/{random.choice(['private', 'docs', 'a'])}/{name}", ["200", "404"]),
        (f"https://elsewhere.example/to/{name}", ["301", "302", ""]),
        (f"/to/{name}?from={other}", ["301", "308"]) if "splat" not in names else ("https://elsewhere.example/", ["303"]),
    ])  # fmt: skip
    if random.random() < 0.05:
        return " ".join([pattern, *parameters, random.choice(["200", "200!"])])
    if target == "fcgi://127.0.0.1:{fcgi}":
        pattern, parameters = random.choice(["/*.php", "/private/*", "/*"]), []
    status = random.choice(statuses)
    status += random.choice(["", "", "!"]) if status else ""
    return " ".join([pattern, *parameters, target, status]).strip()


def site(random, name):
    made = Site(name)
    _fill(random, made.entries, "", 0)
    if random.random() < 0.1:
        made.entries[".well-known"] = ("directory", 0o755)
        made.entries[".well-known/x.txt"] = ("file", "well known", 0o644)
    if random.random() < 0.75:
        made.rules = [rule(random, made.entries) for _ in range(random.randrange(1, 5))]
    made.owned = random.choice(TRUSTED * 3 + [(0o646, 0), (0o644, STRANGER)])
    if random.random() < 0.1:  # rules that cannot be read
        made.owned = (0, 0)
    if random.random() < 0.05 and not made.rules:
        made.entries["_redirects"] = random.choice([("link", "nowhere"), ("link", "_redirects"), ("directory", 0o755)])
    if random.random() < 0.1:  # the directory itself
        made.entries["."] = random.choice([("directory", 0o777, 0), ("directory", 0o755, STRANGER)])
    return made


def site_name(random, number):
    return random.choice([f"s{number}.example"] * 7 + [f"s{number}", f"s{number}.example:{{port}}", f"s{number}:{{port}}"])


def root(random):
    """Returns what is in the served directory beside the sites."""
    made = Site("")
    if random.random() < 0.5:
        return made
    made = site(random, "")
    for name in (name for name in ("default", "localhost", "nodot", "other.example") if random.random() < 0.4):
        made.entries[name] = ("directory", 0o755)
        inner = site(random, name)
        made.entries |= {f"{name}/{path}": entry for path, entry in inner.entries.items()}
        if inner.rules:
            made.entries[f"{name}/_redirects"] = ("file", "\n".join(inner.rules), 0o644)
    return made


def _long(random):
    letter = random.choice("ab")
    return random.choice([letter * 255, letter * 256, letter * 300, (letter * 200 + "/") * 20 + letter * random.randrange(60, 100),
                          letter * 4100, (letter * 250 + "/") * 30 + letter * random.randrange(300), "/".join(["a"] * random.randrange(60, 68))])  # fmt: skip


def _disguised(random, path):
    """Returns the same path, or one like it, otherwise written."""
    n = random.randrange(1, len(path) + 1)
    kind = random.randrange(12)
    if kind == 0 and n < len(path):
        return f"{path[:n]}%{ord(path[n]):02{random.choice('xX')}}{path[n + 1:]}"
    if kind == 1:
        return path.replace("/", "//", 1)
    if kind == 2:
        return path.replace("/", random.choice(["/./", "/x/../", "/%2e/", "/private/%2E%2e/", "/../", "/.git/../"]), 1)
    if kind == 3:
        return path[:n] + random.choice(["%2F", "%00", "%", "%zz", "\\", "%5c", "%c0%ae", "%ff", "%0a", "..", "%2e%2e/", ";", "%3B", "+", ":"]) + path[n:]
    if kind == 4:
        return path + random.choice(["/", "/.", "/..", "/../", "//", "%2f"])
    if kind == 5 and len(path) > 1 and path.endswith("/"):
        return path[:-1]
    return path


def request(random, made, vhosts):
    """Returns a request that has to do with the site."""
    path = "/" + random.choice(sorted(made.entries) or [""])
    choice = random.random()
    if choice < 0.3:
        path = "/" + "/".join(random.choice(SEGMENTS) for _ in range(random.randrange(4)))
    elif choice < 0.6 and made.rules:
        path = random.choice(made.rules).split()[0]
        for name in (":a-b", ":a", ":b", "*"):
            path = path.replace(name, random.choice([*SEGMENTS, "../x.txt", "..", ".", "../../q", "b/c/", "", "x.txt"]))
    elif choice < 0.7:
        path = path.rpartition("/")[0] + "/" + random.choice(SEGMENTS)
    elif choice < 0.75:
        path += "/" + random.choice(SEGMENTS)
    if random.random() < 0.12:
        path = path.rstrip("/") + "/" + _long(random)
    path = urllib.parse.quote(path, safe="/%:;=\\+")
    if random.random() < 0.5:
        path = _disguised(random, path)
    if random.random() < 0.35:
        parts = [f"{random.choice(['id', 'id', 'k', 'i%64'])}={random.choice(VALUES)}" for _ in range(random.randrange(1, 3))]
        path += "?" + "&".join(parts + random.choice([[], ["k=v"]]))
    host = random.choice(["{site}"] * 12 + ["{bare}", "{bare}:{port}", "{bare}.", "{upper}", "{bare}:1", "none.example", "default", "localhost", "nodot",
                                          "other.example", "[::1]", "127.0.0.1", "private", "docs"])  # fmt: skip
    if "{" not in host and made.name and random.random() < 0.7:
        path = "/{site}" + path
    credentials = random.choice([()] * 10 + [ANN] * 6 + [BOB] * 2 + [("ann", "wrong")] * (random.random() < 0.02))
    return Asked(random.choice(METHODS), host, path, credentials)
