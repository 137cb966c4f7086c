"""A private Apache 2.4 (package apache2-bin), files .htaccess that are made up, and the requests with which the
server is compared with it."""

import base64
import http.client
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from authority import free_port
from gatling import eventually

PROGRAM, MODULES = Path("/usr/sbin/apache2"), Path("/usr/lib/apache2/modules")
LOADED = ["authn_core", "authn_file", "authz_core", "authz_host", "authz_user", "auth_basic", "access_compat", "alias", "autoindex", "deflate",
          "dir", "env", "filter", "mime", "negotiation", "setenvif", "rewrite", "headers", "expires", "remoteip", "mpm_event"]  # fmt: skip

# The address of the client is that in the field, for both servers.
CONFIGURATION = """
ServerRoot {run}
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {run}/pid
ErrorLog {run}/error.log
Mutex posixsem
User nobody
Group nogroup
TypesConfig /dev/null
DocumentRoot {root}
DirectoryIndex index.html
RemoteIPHeader X-Forwarded-For
RemoteIPInternalProxy 127.0.0.1
StartServers 1
ServerLimit 1
ThreadsPerChild 16
MaxRequestWorkers 16
<Directory />
Options Indexes FollowSymLinks
AllowOverride All
Require all granted
</Directory>
"""


class Apache:
    def __init__(self, root, run):
        self.port = free_port()
        modules = "".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so\n" for name in LOADED)
        (run / "apache.conf").write_text(modules + CONFIGURATION.format(run=run, port=self.port, root=root))
        self.process = subprocess.Popen([PROGRAM, "-f", run / "apache.conf", "-DFOREGROUND"], stderr=subprocess.DEVNULL)  # noqa: S603
        eventually(lambda: statuses(self.port, [Asked("/", "127.0.0.1", None, None)])[0] > 0, 20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


class Asked:
    def __init__(self, path, address, user, method):
        self.path, self.address, self.user, self.method = path, address, user, method or "GET"

    def __repr__(self):
        return f"{self.method} {self.path} from {self.address} as {self.user}"


def ask(connection, asked):
    fields = {"X-Forwarded-For": asked.address}
    if asked.user:
        fields["Authorization"] = "Basic " + base64.b64encode(f"{asked.user}:right".encode()).decode()
    connection.request(asked.method, asked.path, headers=fields)
    response = connection.getresponse()
    response.read()
    return response.status


def statuses(port, requests):
    """Returns the status of each request."""

    def part(some):
        connection, found = http.client.HTTPConnection("127.0.0.1", port, timeout=20), []
        for asked in some:
            try:
                found.append(ask(connection, asked))
            except (OSError, http.client.HTTPException):
                connection.close()
                try:
                    found.append(ask(connection, asked))
                except (OSError, http.client.HTTPException):
                    found.append(0)
        connection.close()
        return found

    parts = [requests[n : n + 200] for n in range(0, len(requests), 200)]
    with ThreadPoolExecutor(4) as pool:
        return [status for found in pool.map(part, parts) for status in found]


# --- files ---

ADDRESSES = ["10.1.2.3", "192.0.2.7", "2001:db8::7"]
NETS = ["10.0.0.0/8", "10.1", "10.1.2.3", "192.0.2.", "192", "10.1.2.4", "2001:db8::/32", "2001:db8::7", "::/0", "0.0.0.0/0", "10.1.2.3/31", "fe80::/10"]
HARMLESS = ["RewriteEngine On", "RewriteRule ^never$ /file.txt [L]", "Options -MultiViews", "AddType text/plain .foo", "ErrorDocument 404 default",
            "ExpiresActive On", "Header set X-A b", "SetEnv a b", "# a comment", "", "DirectoryIndex index.html"]  # fmt: skip
STRANGE = ["Require host example.org", "Require local", "Require method GET", "Require env a", "Require expr true", "Require group a", "Require all", "UnheardOf 1",
           "Require not ip 10.1.2.3", "Allow from example.org", "Deny from env=a", "Require ip 10.0.0.0/255.0.0.0", "Satisfy Any", "Satisfy All", "AuthMerging And",
           "AuthMerging Or", "AuthType None", "RewriteRule file - [F]", "Redirect 404 /", "AuthName x y", "Require ip", "Allow 10.1", "Order allow deny",
           "Order mutual-failure", "Require user", "AuthBasicProvider file", "<RequireAll>", "</Files>", "Options -Indexes", "Options None"]  # fmt: skip
NAMES = ["file.txt", "*.txt", "f?le.*", "*", "index.html", "x.php", ".ht*", "other"]
PATTERNS = [r"\.(txt|html)$", r"^file", r"^(?!x)", r"\.php$", r"^\.", r".", r"(?i)\.TXT$", r"e[.]t", r"^[a-f]+.*t$", r"(^|/)x", r"(?:txt|php)$", r"\w+"]


def net(random):
    return " ".join(random.choice(NETS) for _ in range(random.choice([1, 1, 2])))


def require(random, depth=0, negated=False):
    """Returns lines about who may have something."""
    if depth < 3 and random.random() < 0.2:
        kind = random.choice(["RequireAll", "RequireAny", "RequireNone"] if negated else ["RequireAll", "RequireAny"])
        inner = [line for _ in range(random.choice([1, 2, 2, 3])) for line in require(random, depth + 1, kind == "RequireAll")]
        return [f"<{kind}>", *inner, f"</{kind}>"]
    word = "Require not " if negated and random.random() < 0.3 else "Require "
    return [word + random.choice(["all granted", "all denied", f"ip {net(random)}", f"ip {net(random)}", "valid-user", "user ann", "user bob 'eve x'"])]


def order(random):
    lines = [random.choice(["Order allow,deny", "Order deny,allow", "order Deny,Allow", "Order Allow,Deny"])] * (random.random() < 0.8)
    lines += [f"{random.choice(['Allow', 'Deny', 'deny'])} from {random.choice(['all', 'All', net(random)])}" for _ in range(random.choice([0, 1, 1, 2]))]
    return lines or ["Deny from all"]


def section(random, lines):
    kind = random.random()
    if kind < 0.3:
        begin = random.choice([f"Files {random.choice(NAMES)}", f'Files "{random.choice(NAMES)}"'])
    elif kind < 0.55:
        begin = f'FilesMatch "{random.choice(PATTERNS)}"'
    elif kind < 0.7:
        begin = random.choice(["Limit GET POST", "Limit POST", "LimitExcept GET", "LimitExcept POST", "Limit GET HEAD"])
    elif kind < 0.95:
        begin = random.choice(["IfModule mod_authz_core.c", "IfModule !mod_authz_core.c", "IfModule mod_access.c", "IfModule authz_host_module", "IfVersion >= 2.4",
                               "IfVersion < 2.3", "IfVersion 2.4", "IfModule mod_rewrite.c", "IfModule !mod_headers.c", "IfModule mod_unheard.c"])  # fmt: skip
    else:
        begin = 'If "true"'
    return [f"<{begin}>", *lines, f"</{begin.split()[0]}>"]


def password(random, root):
    lines = ["AuthType Basic", 'AuthName "A realm"', f"AuthUserFile {root}/.htpasswd"]
    random.shuffle(lines)
    return lines if random.random() < 0.95 else lines[1:]


def htaccess(random, root):
    lines = []
    for _ in range(random.choice([1, 1, 2, 3])):
        part = random.choice([require, require, order])(random)
        if random.random() < 0.3:
            part = section(random, part)
        lines += part
    if any("user" in line for line in lines) or random.random() < 0.1:
        at = random.choice([0, len(lines)])
        lines[at:at] = password(random, root)
    if random.random() < 0.15:
        lines += ["Satisfy " + random.choice(["Any", "All"])]
    for pool, share in ((HARMLESS, 0.4), (STRANGE, 0.12)):
        if random.random() < share:
            lines.insert(random.randrange(len(lines) + 1), random.choice(pool))
    if random.random() < 0.1:
        lines = [random.choice(HARMLESS) for _ in range(random.randrange(1, 4))]
    if random.random() < 0.2:  # a comment may continue
        lines.insert(random.randrange(len(lines) + 1), "# note" + random.choice(["\\", " \\", "\\ ", " \\\t", "\\\\", " \\\\ "]))
    if random.random() < 0.2:  # and so may any line, in the middle of a word or of a name
        n = random.randrange(len(lines))
        at = random.randrange(len(lines[n]) + 1)
        lines[n] = lines[n][:at] + "\\\n" + lines[n][at:]
    end = random.choice(["\n", "\n", "\r\n"])
    return end.join(lines) + end


FILES = ["file.txt", "index.html", "x.php", "sub/file.txt", "sub/index.html", "list/a.txt"]
PATHS = ["", "file.txt", "x.php", "sub/file.txt", "list/"]


def fill(directory, text, inner=None):
    for name in FILES:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (directory / ".htaccess").write_text(text)
    if inner is not None:
        (directory / "sub/.htaccess").write_text(inner)


def requests(name):
    return [Asked(f"/{name}/{path}", address, user, None) for path in PATHS for address in ADDRESSES for user in (None, "ann", "bob")]


def open_all(root):
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def is_there():
    return PROGRAM.exists() and os.geteuid() == 0
