"""What the manual says about a request: whether it is answered, and with what, asked for a password,
denied, or passed on. Written from gatling-site(5) and the headers of gatling/site/rules alone, and as short
as that can be said, it is what fuzz.py compares the server with.

Paths are str with a character for each octet (latin-1), relative to the served directory. The files are
looked at with the permissions of the calling process, which must be those of the server.

An outcome is one of
    ("file", status, content)     ("listing",)     ("redirect", status, location)
    ("realm", name): 401          ("error", status)
    ("passed", target)            ("script", path, path info)
decide() returns a set of them, since the manual is silent about which of several refusals comes first."""

import errno
import ipaddress
import os
import re
import stat
import typing
import urllib.parse

NAME_MAX, PATH_MAX, SEGMENTS_MAX, TARGET_MAX = 255, 4096, 64, 8192
UNRESERVED = "-._~"  # besides letters and digits
IN_PATHS = UNRESERVED + "!$&'()*+,;=:@/"  # RFC 3986, pchar
IN_VALUES = UNRESERVED + "!$'()*+,:@=%"  # of parameters in paths, which a client has encoded
SCRIPTS = (".php", ".phtml", ".phar", ".cgi", ".fcgi")
NOT_FOUND, FORBIDDEN, REFUSED_RULE = (frozenset({("error", status)}) for status in (404, 403, 503))
UNKNOWN = FORBIDDEN | REFUSED_RULE  # what cannot be determined is denied


class World(typing.NamedTuple):
    root: int  # descriptor of the served directory
    port: int  # of the server
    vhosts: str  # "try", "only" (-v), or "off" (-V)
    upstream: bool  # --upstream is given
    users: frozenset  # whose _redirects may pass requests on, besides the owner of the directory
    passwords: dict  # by hash


class Request(typing.NamedTuple):
    method: str
    host: str
    target: str
    credentials: tuple = ()  # user and password


class Rule(typing.NamedTuple):
    pattern: str
    parameters: list
    target: str  # empty: the path of the request
    status: int
    forced: bool

    @property
    def scheme(self):
        return self.target.partition("://")[0] if "://" in self.target else ""

    @property
    def redirects(self):
        return self.status in (301, 302, 303, 307, 308)

    @property
    def passes(self):
        return self.scheme in ("http", "fcgi") and self.status == 200

    @property
    def path(self):
        """Returns the path of its target, absent (None) in a rule for the scripts of the site."""
        rest = self.target.partition("://")[2] or self.target
        return "/" + rest.partition("/")[2].partition("?")[0] if "/" in rest else None

    @property
    def scripts(self):
        return self.scheme == "fcgi" and self.path is None


# --- files ---


def can_exist(path):
    return len(path) < PATH_MAX and all(len(name) <= NAME_MAX for name in path.split("/"))


def look(world, path):
    """Returns the mode of what is at a path, 0 if there is nothing, None if that cannot be determined."""
    if not can_exist(path):
        return 0
    try:
        return os.stat(path.encode("latin-1") or b".", dir_fd=world.root).st_mode
    except OSError as error:
        return 0 if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP) else None


def read(world, path):
    fd = os.open(path.encode("latin-1"), os.O_RDONLY, dir_fd=world.root)
    try:
        return os.read(fd, 1 << 20)
    finally:
        os.close(fd)


def link_of(world, path):
    try:
        return os.readlink(path.encode("latin-1"), dir_fd=world.root).decode("latin-1") if can_exist(path) else ""
    except OSError:
        return ""


def is_directory(mode):
    return bool(mode) and stat.S_ISDIR(mode)


def is_file(mode):
    return bool(mode) and stat.S_ISREG(mode)


# --- passwords ---

APACHE = {"RewriteEngine on": (), "Require all granted": (None, {}, True), "Require all denied": (None, {}, False), "Require ip 127": (None, {}, True)}


def realm_of(world, path):
    """Returns the realm of a file of passwords: its name, {user: hash}, and whether the client is admitted without; ()
    if there is no such file, or one of Apache that is not about access, and None if it is of no use. Requests come from
    127.0.0.1."""
    try:
        os.lstat(path.encode("latin-1"), dir_fd=world.root)
    except OSError as error:
        return () if error.errno in (errno.ENOENT, errno.ENOTDIR) else None
    try:
        lines = [line for line in read(world, path).decode("latin-1").split("\n") if line and not line.startswith("#")]
    except OSError:
        return None
    if lines and path.endswith(".htaccess") and lines[0].partition(" ")[0] in ("Require", "RewriteEngine"):
        return APACHE[lines[0]] if len(lines) == 1 else None
    allowed = [line.split()[1] for line in lines if line.startswith("allow ")]
    lines = [line for line in lines if not line.startswith("allow ")]
    if not (lines or allowed) or len(lines) == 1 or not all(re.fullmatch(r"[^:]+:\$[^:]+", line) for line in lines[1:]):
        return None
    admitted = any(ipaddress.ip_address("127.0.0.1") in ipaddress.ip_network(net) for net in allowed)
    return (lines or [""])[0], dict(line.split(":") for line in lines[1:]), admitted


def realms(world, site, path, nearest=True):
    """Returns the realms of a path (not relative to its site): of the sites on the way there, and the nearest one."""
    directories = path.split("/")[:-1]
    while directories and not can_exist("/".join(directories) + "/.htaccess"):  # the part that can exist
        directories.pop()
    sites = {site, site if world.vhosts == "only" else "", directories[0] + "/" if directories else site}
    found = [realm_of(world, directory + ".htaccess_global") for directory in sites]
    chosen = ()
    for n in range(len(directories), -1, -1) if nearest else ():
        realm = realm_of(world, "".join(name + "/" for name in directories[:n]) + ".htaccess")
        if realm is None:
            return [*found, None]
        chosen = chosen or realm
        if realm and realm[0] is not None:  # it replaces those above it; one of Apache only what it says
            break
    return [*found, chosen] if chosen else found


def refusals(world, request, realms_of_path):
    """Returns the outcomes by which realms refuse the request; none if all admit it."""
    refused, (user, password) = set(), request.credentials or ("", "")
    for realm in realms_of_path:
        if realm is None:
            refused |= UNKNOWN
        elif realm and not realm[1] and not realm[2]:
            refused |= FORBIDDEN
        elif realm and not realm[2] and (not password or world.passwords.get(realm[1].get(user)) != password):
            refused.add(("realm", realm[0]))
    return refused


# --- hosts and paths ---


def site_of(world, host):
    """Returns the path of the directory of a host, with a slash at its end ("": the served one), or None."""
    name = re.sub(r":\d*$", "", host).lower()
    name = name[:-1] if name.endswith(".") else name
    named = [f"{name}:{world.port}", name, "default"]
    if world.vhosts == "try":
        named = [name for name in named if "." in name or ":" in name or name == "localhost"]
    for directory in named if world.vhosts != "off" else []:
        if is_directory(look(world, directory)):
            return directory + "/"
    return None if world.vhosts == "only" else ""


def decoded(encoded):
    """Returns the path of a target, without its first slash, and an outcome if it has none."""
    if re.search(r"%(?![0-9A-Fa-f]{2})|%00|%c[01]", encoded, re.I):  # the last one begins an overlong character
        return "", {("error", 400)}
    segments, wrong = [], bool(re.search("%2f", encoded, re.I))
    path = urllib.parse.unquote(encoded, "latin-1")
    for segment in path.split("/"):
        if segment == "..":
            segments[-1:] = []
        elif segment not in ("", "."):
            wrong = wrong or segment.startswith(".") and (segment != ".well-known" or len(segments) > 0)
            segments.append(segment)
            wrong = wrong or len(segments) > SEGMENTS_MAX
    directory = segments and path.rsplit("/", 1)[-1] in ("", ".", "..")
    return "/".join(segments) + ("/" if directory else ""), NOT_FOUND if wrong else None


def hidden(world, site, path):
    """Returns whether a path is that of rules, of the site or of one that may be inside it."""
    inside = "([^/]*/)?" if world.vhosts == "try" and not site else ""
    return re.fullmatch(inside + r"(_headers|_redirects)(\.gz|\.br|\.zst)?", path)


def encoded_path(text):
    return urllib.parse.quote(text.encode("latin-1"), safe=UNRESERVED + "/")


# --- rules ---


def rules_of(world, site):
    """Returns the rules of a site, None if they cannot be read, and whether they may pass requests on."""
    try:
        os.lstat(site.encode("latin-1") + b"_redirects", dir_fd=world.root)
    except (FileNotFoundError, NotADirectoryError):
        return [], False
    except OSError:
        return None, False
    try:
        lines = read(world, site + "_redirects").decode("latin-1").split("\n")
        file = os.stat(site.encode("latin-1") + b"_redirects", dir_fd=world.root)
        directory = os.stat(site.encode("latin-1") or b".", dir_fd=world.root)
    except OSError:
        return None, False
    writable = file.st_mode | directory.st_mode | os.fstat(world.root).st_mode
    trusted = file.st_uid in world.users | {directory.st_uid} and not writable & stat.S_IWOTH
    found = []
    for pattern, *words in (line.split() for line in lines if line.strip()):
        parameters = []
        while not words[0].startswith(("/", "http:", "https:", "fcgi:", "200")):
            parameters.append(tuple(words.pop(0).split("=", 1)))
        target = "" if words[0] in ("200", "200!") else words.pop(0)
        status = words[0] if words else "301"
        rule = Rule(pattern, parameters, target, int(status.rstrip("!")), status.endswith("!"))
        if world.upstream or rule.scheme != "http" or not rule.passes or rule.forced:  # another that is not allowed is ignored
            found.append(rule)
    return found, trusted and world.upstream


def group(name):
    """Returns the name of a group in an expression, in which there may be any character."""
    return "n" + name.encode("latin-1").hex()


def expression(pattern):
    """Returns a pattern as a regular expression. "/a" and "/a/" are the same path. A placeholder is a whole segment."""
    out, end = "", "/?"
    if pattern.endswith("/*"):
        pattern, end = pattern[:-2], f"(?:/(?P<{group('splat')}>.*))?"
    elif pattern.endswith("*"):
        pattern, end = pattern[:-1], f"(?P<{group('splat')}>.*)"
    for part in re.split(r"(\*|(?<=/):[^/]+)", pattern.rstrip("/")):
        named = part.startswith(":") and out.endswith("/") and len(part) > 1
        out += f"(?P<{group('splat')}>.*)" if part == "*" else f"(?P<{group(part[1:])}>[^/]+)" if named else re.escape(part)
    return re.compile(out + end + r"\Z", re.S)


def form(text):
    return urllib.parse.unquote_plus(text, "latin-1")


def has_dots(path):
    """Returns whether somebody may take a segment for "." or "..": servers for Java ignore what follows a ";"."""
    segments = [segment.partition(";")[0] for segment in re.split(r"/|\\|%2[fF]|%5[cC]", path)]
    return any(urllib.parse.unquote(segment, "latin-1") in (".", "..") for segment in segments)


def values_of(rule, path, query):
    """Returns what the names in a rule stand for, or None if it does not match. Values of parameters stay as the
    client has encoded them: those are Encoded."""
    found = expression(rule.pattern).match(path)
    if not found:
        return None
    values = {bytes.fromhex(name[1:]).decode("latin-1"): value or "" for name, value in found.groupdict().items()}
    target_path = rule.target.partition("?")[0]
    for name, wanted in rule.parameters:
        given = [value for key, _, value in (p.partition("=") for p in query[1:].split("&")) if form(key) == name]
        if not wanted.startswith(":"):
            given = [value for value in given if form(value) == form(wanted)]
        elif wanted in target_path:
            given = [value for value in given if not has_dots(form(value))]
        if not given:
            return None
        if wanted.startswith(":"):
            values[wanted[1:]] = Encoded(given[0])
    return values


class Encoded(str):
    pass


def filled(rule, values, query):
    """Returns the target of a rule with its names replaced, or None if it gets too long, or its path a segment of
    dots."""

    def fill(text, in_path):
        names = "|".join(re.escape(name) for name in sorted(values, key=len, reverse=True))
        parts = re.split(f":({names})", text) if names else [text]
        for n in range(1, len(parts), 2):
            value = values[parts[n]]
            if in_path and isinstance(value, Encoded):  # where a plus is no blank
                value = Encoded(value.replace("+", "%20"))
            safe = IN_PATHS if in_path else UNRESERVED + "/"
            if isinstance(value, Encoded):
                safe = IN_VALUES + ("" if in_path else "/;")
            parts[n] = urllib.parse.quote(value.encode("latin-1"), safe=safe)
        return "".join(parts)

    begin, slash, rest = re.match(r"((?:\w+://[^/]*)?)(/?)(.*)", rule.target, re.S).groups()
    path, mark, own_query = rest.partition("?")
    path = fill(path, True)
    if not begin or rule.passes:  # one slash at the start, whatever the values are
        path = path.lstrip("/")
    if not rule.redirects and has_dots(path):
        return None
    tail = query if not mark and not rule.parameters else mark + fill(own_query, False)
    if not rule.passes and not rule.redirects:
        tail = ""
    if rule.redirects and len(begin + slash + path + tail) > TARGET_MAX:
        tail = mark + fill(own_query, False)
    fits = len((begin if rule.redirects else "") + slash + path + tail) <= TARGET_MAX
    return begin + slash + path + tail if fits else None


def extension(path):
    return os.path.splitext(path or "")[1]


def runs(rule, path):
    """Returns whether a file has the extension of the script that a rule leads to."""
    return rule.scheme == "fcgi" and extension(path) and extension(path) == extension(rule.path)


def script_part(world, site, path, pattern="/*"):
    """Returns the first part of a path that is a file and matches, or None."""
    for end in [n for n, c in enumerate(path) if c == "/"] + [len(path)]:
        matches = not path[:end].endswith("/") and expression(pattern).match("/" + path[:end])
        if matches and is_file(look(world, site + path[:end])) and not hidden(world, site, path[:end]):
            return path[:end]
    return None


# --- the decision ---


class Decision:
    """A request of which the site and the path are known."""

    def __init__(self, world, request, site, path, query):
        self.world, self.request, self.site, self.path, self.query = world, request, site, path, query
        self.rules, self.trusted = rules_of(world, site)

    def refusals(self, path):
        return refusals(self.world, self.request, realms(self.world, self.site, self.site + path))

    def refusals_as_directory(self):
        return self.refusals(self.path if self.path.endswith("/") else self.path + "/")

    def never_sent(self, path):
        """Returns whether a file is a script."""
        if self.world.upstream and path.lower().endswith(SCRIPTS):
            return True
        first = path.partition("/")[0] + "/"
        for site in {self.site, *(("", first) if self.world.vhosts == "try" else ())}:
            rules = rules_of(self.world, site)[0] if path.startswith(site) else []
            if rules is None:
                return True
            for rule in (rule for rule in rules if rule.passes):
                matches = expression(rule.pattern).match("/" + path.removeprefix(site))
                if matches and (rule.scripts or not self.world.upstream) or runs(rule, path):
                    return True
        return False

    def page(self, path):
        """Returns the page of a path, with or without a slash at its end, or "" if there is none that may be sent."""
        path = path.removesuffix("/")
        name = path.rpartition("/")[2]
        mode = look(self.world, f"{self.site}{path}.html") if name and not name.startswith(".") else 0
        return path + ".html" if is_file(mode) and mode & stat.S_IROTH and not self.never_sent(f"{self.site}{path}.html") else ""

    def file(self, path, status=200, rewritten=False):
        """Returns the outcomes of a path at which there is a file, or that must not be looked at; else none."""
        refused, full = self.refusals(path), self.site + path
        if refused:
            return refused
        name = full if full and not full.endswith("/") else full + "index.html"
        mode = look(self.world, name)
        if mode is None:
            return UNKNOWN
        page = self.page(path) if not mode or is_directory(mode) else ""
        link = link_of(self.world, name) if not mode else ""
        if page and (name == full or rewritten):
            return self.refusals(page) or {("file", status, read(self.world, self.site + page))}
        if is_directory(mode) and name == full:
            index = look(self.world, full + "/index.html")
            redirected = self.refusals(path + "/") | {("redirect", 301, "/" + encoded_path(path) + "/" + self.query)}
            return UNKNOWN | redirected if index is None else redirected if is_file(index) else set()
        if "://" in link:
            return {("redirect", 301, link)}
        if page:
            return self.refusals(page) or {("redirect", 301, "/" + encoded_path(path[:-1]) + self.query)}
        if not is_file(mode):
            return set()
        if not mode & stat.S_IROTH or self.never_sent(name):
            return FORBIDDEN
        return {("file", status, read(self.world, name))}

    def nothing(self):
        """Returns the outcomes of a path without a file and a rule."""
        mode = look(self.world, self.site + self.path)
        if not is_directory(mode):
            return NOT_FOUND
        if self.path and not self.path.endswith("/"):
            return {("redirect", 301, "/" + encoded_path(self.path) + "/" + self.query)} | self.refusals(self.path + "/")
        return {("listing",)} if self.world.vhosts != "only" and mode & stat.S_IROTH else FORBIDDEN

    def rewritten(self, rule, target):
        path, wrong = decoded(target.partition("?")[0])
        missing = {("error", 404 if rule.status == 200 else rule.status)}
        if wrong or hidden(self.world, self.site, path):
            return missing | self.refusals(path) | self.refusals(target[1:]) | self.refusals("")
        found = self.file(path, rule.status, True)
        moved = not found or any(kind == "redirect" for kind, *_ in found)
        if moved and path and not path.endswith("/") and is_directory(look(self.world, self.site + path)):
            path += "/"
            found = self.file(path, rule.status, True)
        if found == FORBIDDEN or (not found and is_directory(look(self.world, self.site + path))):
            return FORBIDDEN | missing
        return found or missing

    def passed(self, rule, target):
        """Returns the outcomes of a rule that passes requests on. target: None if it has none of its own."""
        before_files = rule.forced or rule.scheme == "fcgi"
        refused = self.refusals_as_directory() if before_files else self.refusals(self.path)
        if refused or not self.trusted:
            return refused or REFUSED_RULE
        if rule.scheme == "http":
            return {("passed", "/" + target.split("/", 3)[3])}
        path, wrong = (self.path, None) if target is None else decoded("/" + target.split("/", 3)[3].partition("?")[0])
        if wrong or hidden(self.world, self.site, path):
            return NOT_FOUND
        script = script_part(self.world, self.site, path, rule.pattern if target is None else "/*")
        if script is None:
            return {("script", "", "/" + path)}
        chosen = target is not None and ":" in rule.path
        if chosen and not script.lower().endswith(SCRIPTS) and not runs(rule, script):
            return NOT_FOUND  # nobody runs a picture that was uploaded
        return self.refusals(script) or {("script", self.site + script, path[len(script) :])}

    def applies(self, rule, file):
        """Returns the outcomes of a rule, or None if it does not apply."""
        own_path = "/" + self.path
        if rule.passes and not self.world.upstream:  # what it would have run, or hidden, is not sent
            return self.passed(rule, None) | file if expression(rule.pattern).match(own_path) else None
        if rule.scripts:
            return None if script_part(self.world, self.site, self.path, rule.pattern) is None else self.passed(rule, None)
        values = values_of(rule, own_path, self.query)
        if values is None:
            return None
        kept = "/" + encoded_path(self.path) if 3 * len(own_path) <= TARGET_MAX else None
        target = filled(rule, values, self.query) if rule.target else kept
        if target is None:  # the target of a forced one may have protected what is there
            return REFUSED_RULE | self.refusals_as_directory() if rule.forced else None
        if rule.passes:
            return self.passed(rule, target)
        begins, start = rule.pattern.partition("*")[0].partition(":")[0], re.split(r":", rule.target)[0]
        if rule.redirects and rule.pattern.endswith("*") and start[:1] == "/" and len(start) > len(begins) and start.startswith(begins) \
                and f"{own_path.removesuffix('/')}/".startswith(start):  # it has led here  # fmt: skip
            return None
        if rule.redirects and target.partition("?")[0] == "/" + encoded_path(self.path):
            return None
        # what the owner shows instead of a protected path need not be protected
        refused = self.refusals(self.path) if rule.forced else set()
        return ({("redirect", rule.status, target)} if rule.redirects else self.rewritten(rule, target)) | refused

    def comes_first(self, rule):
        """Returns whether a rule comes before those above it, since it runs what is there, or would have."""
        refused = rule.passes and not self.world.upstream
        return rule.scripts or refused or runs(rule, self.path)

    def index_script(self):
        """Returns the outcomes of a rule that runs the index.php of the requested directory, or None."""
        path = self.path + "index.php"
        if not any(rule.scheme == "fcgi" for rule in self.rules):
            return None
        if (self.path and not self.path.endswith("/")) or not is_file(look(self.world, self.site + path)):
            return None
        script = Decision(self.world, self.request, self.site, path, self.query)
        file = script.file(path)
        rule, outcomes = script.before_files(script.applying(file))
        return outcomes if rule and (rule.scripts or outcomes & REFUSED_RULE) else None  # only one for the scripts of the site counts

    def applying(self, file):
        """Returns the rules that apply, with their outcomes."""
        return [(rule, outcomes) for rule in self.rules if (outcomes := self.applies(rule, file)) is not None]

    def before_files(self, found):
        """Returns the rule, of those that apply, that comes before a file, with its outcomes; or None twice."""
        redirected = False
        for number, (rule, outcomes) in enumerate(found):
            denies = rule.forced and rule.status >= 400 and not redirected
            if denies or self.comes_first(rule) or (number == 0 and rule.forced):
                return rule, outcomes
            redirected = redirected or rule.redirects
        return None, None

    def outcomes(self):
        refused = refusals(self.world, self.request, realms(self.world, self.site, self.site, nearest=False))
        if self.rules is None:  # they may have hidden what is asked for
            return refused | UNKNOWN | self.refusals(self.path)
        if refused:
            return refused
        file = self.file(self.path)
        found = self.applying(file)
        rule, outcomes = self.before_files(found)
        if rule:
            return outcomes
        index = self.site + self.path + "index.html"
        lacks = self.path.endswith("/") and not self.refusals(self.path) and look(self.world, index) == 0 and not link_of(self.world, index)
        if lacks and (script := self.index_script()) is not None:  # it comes before a page of that name
            return script
        if found:
            outcomes = found[0][1]
            return file or self.directory_first() or next((found for found in [self.index_script()] if found is not None), outcomes)
        return file or self.directory_first() or self.index_script() or self.nothing()

    def directory_first(self):
        """Returns the outcomes of a directory without a slash at its end, whose index must not be looked at, or is a
        script; else none."""
        named = self.path and not self.path.endswith("/") and is_directory(look(self.world, self.site + self.path))
        if not named or not self.rules:
            return set()
        refused = self.refusals(self.path + "/")
        script = Decision(self.world, self.request, self.site, self.path + "/", self.query).index_script()
        return refused | self.nothing() if refused or script is not None else set()

    def pages(self, outcomes):
        """Returns the pages that may be sent with errors."""
        found = set()
        for status in [outcome[1] for outcome in outcomes if outcome[0] == "error"]:
            page = f"{status if status in (403, 404) else '50x'}.html"
            if is_file(look(self.world, self.site + page)):
                found |= {outcome for outcome in self.file(page, status) if outcome[0] == "file"}
        return found


def decide(world, request):
    """Returns the set of outcomes that the manual allows."""
    if len(request.target) > TARGET_MAX:
        return {("error", 414)}
    served = request.method in ("GET", "HEAD")
    refused = {("error", 204 if request.method == "OPTIONS" else 405)}
    if not served and not world.upstream:
        return refused
    site = site_of(world, request.host)
    encoded, mark, query = request.target.partition("?")
    path, wrong = decoded(encoded)
    if site is None:
        return NOT_FOUND | (wrong or set()) if served else refused
    decision = Decision(world, request, site, path, mark + query)
    if wrong or hidden(world, site, path):
        outcomes = wrong or NOT_FOUND
        return outcomes | decision.pages(outcomes) if served else refused
    outcomes = decision.outcomes()
    outcomes |= decision.pages(outcomes)
    if served:
        return outcomes
    passed = {outcome for outcome in outcomes if outcome[0] in ("passed", "script")}
    allowed = {outcome for outcome in outcomes if outcome[0] == "realm" or outcome[1:2] in ((403,), (404,), (503,))}
    return passed | (allowed | refused if outcomes - passed else set())
