"""Who may have a file: lines "allow ADDRESS" in gatling's own .htaccess, and the directives of Apache."""

import base64
import ctypes
import os
import socket

import pytest

from gatling import Connection, Root, Server, eventually
from http2 import Http2

pytestmark = pytest.mark.decided

LIBRARY = ctypes.CDLL("libcrypt.so.1")
LIBRARY.crypt.restype = ctypes.c_char_p
ANN = "ann:" + LIBRARY.crypt(b"right", b"$1$saltsalt").decode()
BOB = "bob:" + LIBRARY.crypt(b"right", b"$1$saltsalt").decode()
HERE, THERE = "127.0.0.1", "127.0.0.2"
PASSWORD = "AuthType Basic\nAuthName \"A realm\"\nAuthUserFile .htpasswd\n"


def basic(user="ann", password="right"):
    return "Authorization: Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def get(server, path, *fields, source=HERE, **options):
    with server.connect(source=source) as connection:
        return connection.get(path, *fields, **options)


def statuses(server, path="/d/file.txt"):
    """Returns the statuses for clients of two addresses, each without and with a password."""
    return [get(server, path, *field, source=source).status for source in (HERE, THERE) for field in ((), (basic(),))]


def site(text, **others):
    root = Root({"d/file.txt": b"guarded", "d/index.html": b"index", "d/sub/file.txt": b"inner", "file.txt": b"free", ".htpasswd": f"{ANN}\n{BOB}\n".encode()})
    root.write("d/.htaccess", text.encode())
    for name, content in others.items():
        root.write(name, content)
    return root


def served(build, text, *flags):
    return Server(build, site(text), "-j", "1", *flags)


# --- gatling's own format ---


@pytest.mark.parametrize(("text", "expected"), [
    ("allow 127.0.0.1\n", [200, 200, 403, 403]),
    ("allow 127.0.0.1\r\n\r\n# a comment\nallow 10.0.0.0/8\n", [200, 200, 403, 403]),
    ("allow 127.0.0.0/30\nallow ::1\n", [200] * 4),
    ("allow ::/0\nallow ::ffff:0:0/96\n", [200] * 4),
    ("allow ::/0\n", [403] * 4),  # of IPv6 only
    ("allow 10.0.0.0/8\n", [403] * 4),
    (f"A realm\n{ANN}\nallow 127.0.0.2\n", [401, 200, 200, 200]),
    (f"allow 127.0.0.2/32\nA realm\nallow 10.1.2.3/8\n{ANN}\n", [401, 200, 200, 200]),
    (f"allowed people\n{ANN}\n", [401, 200, 401, 200]),
    (f"A realm\nallow 127.0.0.1\n", [403] * 4),  # a realm without users
    (f"A realm\n{ANN}\nallow 127.0.0.1/33\n", [403] * 4),
    (f"A realm\n{ANN}\nallow localhost\n", [403] * 4),
    (f"A realm\n{ANN}\nallow unix:\n", [403] * 4),
    (f"A realm\n{ANN}\nallow 127.0.0.1 127.0.0.2\n", [403] * 4),
    (f"A realm\n{ANN}\nallow from 127.0.0.1\n", [403] * 4),  # neither format
    (f"Require all granted\n{ANN}\n", [401, 200, 401, 200]),  # a realm
    (f"Require all granted\n{ANN}\nOptions None\n", [403] * 4),
])  # fmt: skip
def test_who_is_allowed_needs_no_password(build, text, expected):
    with served(build, text) as server:
        assert statuses(server) == expected
        assert get(server, "/file.txt", source=THERE).status == 200


def test_an_allowed_client_stays_one_of_several(build):
    with served(build, f"A realm\n{ANN}\nallow 127.0.0.1\n") as server:
        for _ in range(3):
            assert statuses(server) == [200, 200, 401, 200]
            assert statuses(server, "/d/none") == [404, 404, 401, 404]
            assert statuses(server, "/d/sub") == [301, 301, 401, 301]
        (server.root.path / "d/.htaccess").write_text("allow 127.0.0.2\n")
        eventually(lambda: statuses(server) == [403, 403, 200, 200], 5)


def test_answers_for_allowed_clients_are_not_for_caches_that_others_share(build):
    with served(build, "allow 127.0.0.1\n") as server:
        (server.root.path / "d/other").mkdir()
        for path in ("/d/file.txt", "/d/", "/d/other/", "/d/other"):
            assert "private" in (get(server, path)["Cache-Control"] or ""), path
            assert get(server, path, source=THERE).status == 403
        assert get(server, "/d/none")["Cache-Control"] in (None, "private")
        assert "private" not in get(server, "/file.txt")["Cache-Control"]


def test_the_address_is_that_which_a_trusted_proxy_names(build):
    with served(build, "allow 192.0.2.0/24\nallow 127.0.0.1\n", "--trust", "127.0.0.1") as server:
        for field, expected in (
            ("X-Forwarded-For: 192.0.2.7", 200),
            ("X-Forwarded-For: 198.51.100.1", 403),
            ("X-Forwarded-For: 192.0.2.7, 198.51.100.1", 403),
            ("X-Forwarded-For: unknown", 403),  # then the address is not known, and not that of the proxy
            ("X-Forwarded-For: 127.0.0.1", 403),
            ("Forwarded: for=192.0.2.7", 403),
            ("X-Other: 1", 403),
        ):
            for _ in range(3):  # later ones are answered from what is remembered
                assert get(server, "/d/file.txt", field).status == expected, field
        # nobody believes others
        assert get(server, "/d/file.txt", "X-Forwarded-For: 192.0.2.7", source=THERE).status == 403


@pytest.mark.clear
def test_it_is_the_same_over_http2_and_on_a_connection_of_several_clients(build):
    with served(build, f"A realm\n{ANN}\nallow 192.0.2.0/24\n", "--trust", "127.0.0.1") as server:
        with Http2(server) as connection:
            for client, expected in (("192.0.2.7", 200), ("198.51.100.1", 401), ("192.0.2.8", 200), ("unknown", 401)):
                for path in ("/d/file.txt", "/d/"):
                    assert connection.get(path, ("x-forwarded-for", client)).status == expected, client
        with server.connect() as connection:
            for client, expected in (("192.0.2.7", 200), ("198.51.100.1", 401), ("192.0.2.8", 200), ("unknown", 401)):
                assert connection.get("/d/file.txt", f"X-Forwarded-For: {client}").status == expected


@pytest.mark.clear
def test_who_comes_by_a_unix_socket_has_no_address(build):
    text = "<RequireAll>\nRequire all granted\nRequire not ip 192.0.2.1\n</RequireAll>\n"
    for number, content in enumerate(("allow ::/0\nallow 0.0.0.0/0\n", text, "Order allow,deny\nAllow from all\nDeny from 192.0.2.1\n")):
        path = Root().path / f"socket{number}"
        path.parent.chmod(0o777)
        with Server(build, site(content), "-j", "1", address=("-i", f"unix:{path}")) as server:
            with Connection(str(path), socket.AF_UNIX) as connection:
                assert connection.get("/d/file.txt").status == 403
                assert connection.get("/file.txt").status == 200


# --- Apache ---


HARMLESS = """# BEGIN WordPress
<IfModule mod_rewrite.c>
RewriteEngine On
RewriteBase /
RewriteRule ^index\\.php$ - [L]
RewriteCond %{REQUEST_FILENAME} !-f
RewriteRule . /index.php [L,R=301]
</IfModule>
Options +FollowSymLinks
ErrorDocument 404 /404.html
AddType text/x-foo .foo
<FilesMatch "\\.(css|js)$">
  <IfModule mod_headers.c>
    Header set Cache-Control \\
      "max-age=3600"
  </IfModule>
</FilesMatch>
<IfModule mod_expires.c>
ExpiresActive On
</IfModule>
<IfModule mod_unheard_of.c>
UnheardOf 1
</IfModule>
<If "%{HTTP_HOST} == 'x'">
Redirect 301 /a http://example.org/a
</If>
"""


@pytest.mark.parametrize("text", [HARMLESS, HARMLESS.replace("\n", "\r\n"), "RewriteEngine on\n", "options -multiviews", "\ufeffRewriteEngine on\n"])
def test_a_file_without_a_directive_about_access_is_ignored(build, text):
    with served(build, text) as server:
        assert statuses(server) == [200] * 4
        assert "private" not in get(server, "/d/file.txt")["Cache-Control"]
    said = [error for error in server.errors if ".htaccess" in error]
    assert len(said) == 1 and "d/.htaccess:" in said[0] and "it is ignored: see _redirects" in said[0], said


def test_what_is_ignored_does_not_replace_a_file_above_it(build):
    root = site(f"A realm\n{ANN}\n", **{"d/sub/.htaccess": b"RewriteEngine on\n"})
    with Server(build, root, "-j", "1") as server:
        assert statuses(server, "/d/sub/file.txt") == [401, 200, 401, 200]


def tests(*lines):
    return "<RequireAll>\n" + "\n".join(lines) + "\n</RequireAll>\n"


IN, DENIED, USER = [200] * 4, [403] * 4, [401, 200, 401, 200]
ONE, OTHER = [200, 200, 403, 403], [403, 403, 200, 200]


@pytest.mark.parametrize(("text", "expected"), [
    ("Require all granted\n", IN),
    ("require ALL Denied\n", DENIED),
    ("Require ip 127.0.0.1\n", ONE),
    ("Require ip 10 127.0.0.2/32\n", OTHER),
    ("Require ip 127.0\n", IN),
    ("Require ip 192.168.\nRequire ip 127.0.0.1\n", ONE),
    ("Require ip ::1 2001:db8::/32\n", DENIED),
    (PASSWORD + "Require valid-user\n", USER),
    (PASSWORD + "Require user bob ann\n", USER),
    (PASSWORD + "Require user \"ann\"\n", USER),
    (PASSWORD + "Require user bob\n", [401] * 4),
    (PASSWORD + "Require ip 127.0.0.2\nRequire valid-user\n", [401, 200, 200, 200]),
    (PASSWORD + tests("Require ip 127.0.0.2", "Require valid-user"), [403, 403, 401, 200]),
    (PASSWORD + tests("Require valid-user", "Require not ip 127.0.0.2"), [401, 200, 403, 403]),
    (tests("Require all granted", "Require not ip 127.0.0.2"), ONE),
    (tests("Require all granted", "<RequireNone>", "Require ip 127.0.0.2 10", "</RequireNone>"), ONE),
    ("<RequireAny>\n" + tests("Require ip 127.0.0.2") + "Require all denied\n</RequireAny>\n", OTHER),
    ("Order deny,allow\nDeny from all\n", DENIED),
    ("Order allow,deny\nAllow from all\n", IN),
    ("Order allow,deny\n", DENIED),
    ("Order deny,allow\n", IN),
    ("deny from all\n", DENIED),
    ("order deny,allow\ndeny from all\nallow from 127.0.0.1\n", ONE),
    ("Order allow,deny\nAllow from all\nDeny from 127.0.0.1\n", OTHER),
    ("Require all granted\nDeny from all\n", DENIED),  # both count
    (PASSWORD + "Require valid-user\nOrder deny,allow\nDeny from all\nAllow from 127.0.0.2\nSatisfy Any\n", [401, 200, 200, 200]),
    (PASSWORD + "Require valid-user\nOrder deny,allow\nDeny from all\nAllow from 127.0.0.2\nSatisfy All\n", [403, 403, 401, 200]),
    ("<Files file.txt>\nRequire all denied\n</Files>\n", DENIED),
    ("<Files \"f*.t?t\">\nDeny from all\n</Files>\n", DENIED),
    ("<Files other.txt>\nRequire all denied\n</Files>\n", IN),
    ("Require all denied\n<FilesMatch \"\\.(txt|html)$\">\nRequire all granted\n</FilesMatch>\n", IN),
    ("Require all denied\n<FilesMatch ^txt>\nRequire all granted\n</FilesMatch>\n", DENIED),
    ("<Limit GET POST>\nRequire ip 127.0.0.1\n</Limit>\n", ONE),
    ("<LimitExcept GET POST>\nDeny from all\n</LimitExcept>\n", IN),
    ("<IfModule mod_authz_core.c>\nRequire all denied\n</IfModule>\n<IfModule !mod_authz_core.c>\nAllow from all\n</IfModule>\n", DENIED),
    ("<IfModule !mod_authz_core.c>\nDeny from all\n</IfModule>\n<IfModule authz_core_module>\nRequire ip \\\n127.0.0.1\n</IfModule>\n", ONE),
    ("# note \\\nRequire all denied\n", IN),  # the comment continues
    ("# note \\\r\nRequire all denied\r\n", IN),
    ("# note \\\\\nRequire all denied\n", IN),
    ("# note \\ \nRequire all denied\n", DENIED),
    ("# note \\ \r\nRequire all denied\r\n", DENIED),
    ("Require ip 127.0\\\n.0.1 \\\n  127.0.0.3\n", ONE),  # a word continues
    ("<IfVersion >= 2.4>\nRequire ip 127.0.0.1\n</IfVersion>\n<IfVersion < 2.4>\nDeny from all\n</IfVersion>\n", ONE),
])  # fmt: skip
def test_what_apache_understands_is_decided_as_there(build, text, expected):
    with served(build, text) as server:
        assert statuses(server) == expected
        assert get(server, "/file.txt").status == 200


@pytest.mark.parametrize(("text", "line"), [
    ("Require host example.org\n", 1),
    ("Require group staff\n", 1),
    ("Require not ip 10.0.0.0/8\n", 1),
    ("Require ip 10.0.0.0/255.0.0.0 localhost\n", 1),
    ("Allow from env=let_me_in\n", 1),
    ("Deny from example.org\n", 1),
    ("SSLRequireSSL\n", 1),
    ("RewriteEngine on\nUnheardOf 1\n", 2),
    ("AuthType Digest\nRequire all granted\n", 1),
    ("AuthName x\n", 0),
    ("AuthType Basic\nAuthName x\nRequire valid-user\n", 3),
    ("<IfModule mod_geoip.c>\nRequire all granted\n</IfModule>\n", 2),
    ("<If \"true\">\nRequire all granted\n</If>\n", 2),
    ("<FilesMatch \"(?!x)\">\nRequire all granted\n</FilesMatch>\n", 2),
    ("<RequireAll>\nRequire all granted\n", 0),
    ("</RequireAll>\n", 1),
    ("<RequireAll>\nRequire not ip 10\n</RequireAll>\n", 3),
    ("<Directory /x>\n</Directory>\n", 1),
    ("RewriteEngine on\nRewriteRule ^secret - [F,L]\n", 2),
    ("RewriteRule \"^a b\" - [NC,R=403]\n", 1),
    ("RedirectMatch 404 /\\.git\n", 1),
    ("Redirect gone /old\n", 1),
    ("<LimitExcept GET>\nRequire valid-user\n</LimitExcept>\n", 2),
])  # fmt: skip
def test_what_is_not_understood_closes_the_directory_and_is_said(build, text, line):
    with served(build, text) as server:
        assert statuses(server) == [403] * 4 and statuses(server, "/d/none") == [403] * 4
        assert get(server, "/file.txt").status == 200
    said = [error for error in server.errors if ".htaccess" in error and "access is denied" in error]
    assert len(said) == 1 and f"d/.htaccess:{line}: ".replace(":0:", ":") in said[0], said


@pytest.mark.parametrize(("inner", "outer", "expected"), [
    ("Require all granted\n", "Require all denied\n", IN),
    ("Require all granted\n", "Deny from all\n", DENIED),  # one does not replace the other
    ("Allow from all\n", "Deny from all\n", IN),
    ("Allow from all\n", "Require all denied\n", DENIED),
    ("Require all granted\n", "<Files file.txt>\nRequire all denied\n</Files>\n", DENIED),  # sections come last
    ("<Files *.txt>\nRequire all granted\n</Files>\n", "<Files file.txt>\nRequire all denied\n</Files>\n", IN),
    ("<Files x>\nRequire all granted\n</Files>\n", "Require all denied\n", DENIED),
    ("RewriteEngine on\n", "Require ip 127.0.0.1\n", ONE),
    ("Require all granted\n", f"A realm\n{ANN}\n", IN),
    ("Allow from all\n", f"A realm\n{ANN}\n", USER),
    (f"A realm\n{ANN}\n", "Require all denied\n", USER),
    ("Require all granted\n", "UnheardOf 1\nRequire all granted\n", DENIED),
    (PASSWORD.replace("realm", "cave") + "Require user bob\n", PASSWORD + "Require valid-user\n", [401] * 4),
])  # fmt: skip
def test_an_inner_file_replaces_only_what_it_says(build, inner, outer, expected):
    root = site(outer, **{"d/sub/.htaccess": inner.encode()})
    with Server(build, root, "-j", "1") as server:
        assert statuses(server, "/d/sub/file.txt") == expected


@pytest.mark.parametrize(("directive", "mode", "name", "expected"), [
    (".htpasswd", 0o644, ".htpasswd", USER),
    ("{root}/.htpasswd", 0o644, ".htpasswd", USER),
    ("\"{root}/d/.users\"", 0o644, "d/.users", USER),
    ("d/users.txt", 0o640, "d/users.txt", USER),
    ("d/users.txt", 0o644, "d/users.txt", DENIED),  # it would be sent
    ("/etc/.htpasswd", 0o644, ".htpasswd", DENIED),
    ("../.htpasswd", 0o644, ".htpasswd", DENIED),
    ("{root}x/.htpasswd", 0o644, ".htpasswd", DENIED),
    ("none/.htpasswd", 0o644, ".htpasswd", DENIED),
])  # fmt: skip
def test_where_passwords_of_apache_may_be(build, directive, mode, name, expected):
    root = site("")
    (root.path / ".htpasswd").unlink()
    root.write(name, f"# ours\nnobody\n{BOB}\n{ANN}\n".encode(), mode)
    if not mode & 0o004 and os.geteuid() == 0:
        os.chown(root.path / name, 65534, 65534)  # the user of the server
    root.write("d/.htaccess", PASSWORD.replace(".htpasswd", directive.format(root=root.path)).encode() + b"Require valid-user\n")
    with Server(build, root, "-j", "1") as server:
        assert statuses(server) == expected
        assert get(server, f"/{name}", basic()).status in (403, 404)
        if expected == USER:
            root.write(name, b"ann:*\n", mode)
            eventually(lambda: statuses(server) == [401] * 4, 5)
            (root.path / name).unlink()
            eventually(lambda: statuses(server) == [403] * 4, 5)


def test_only_a_htaccess_is_apaches(build):
    root = site("Require all granted\n", **{".htaccess_global": b"Require all granted\n"})
    with Server(build, root, "-j", "1") as server:
        assert statuses(server) == [403] * 4
        root.path.joinpath(".htaccess_global").unlink()
        eventually(lambda: statuses(server) == [200] * 4, 5)
        root.path.joinpath(".htaccess_global").hardlink_to(root.path / "d/.htaccess")
        eventually(lambda: statuses(server) == [403] * 4, 5)


def test_options_decide_about_listings(build):
    root = site("Options -Indexes\n", **{"d/sub/.htaccess": b"Options +Indexes\n", "d/sub/deep/x": b"x", "e/.htaccess": b"<Files x>\nDeny from all\n</Files>\n", "e/x": b"x"})
    (root.path / "d/index.html").unlink()
    with Server(build, root, "-j", "1") as server:
        assert [get(server, path).status for path in ("/d/", "/d/sub/", "/d/sub/deep/", "/e/", "/e/x")] == [403, 200, 200, 403, 403]
