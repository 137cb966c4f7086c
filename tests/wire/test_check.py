"""gatling --check: mistakes that an owner may make."""

import os
import re
import subprocess

import pytest

from gatling import Root, Server, certificate, eventually, runnable, unprivileged

pytestmark = pytest.mark.clear

GOOD = {"index.html": b"hello", "_headers": b"/*\n  X-A: 1\n", "_redirects": b"/a /b\n", "www.example.org/index.html": b"hello"}

# the content, and the start of the line about it
WRONG = {
    "_headers": (b"/*  # all\n  X-A: 1\n  ETag: 1\n", "_headers:3: 'ETag: 1': only the server can set ETag: remove this line"),
    "_redirects": (b"/a /b\n\n/a /c # too\n", "_redirects:3: '/a /c # too': it never applies: line 1 comes first"),
    "www.example.org/_redirects": (b"/x https://e.com 200\n", "www.example.org/_redirects:1: '/x https://e.com 200': "),
    "localhost:8080/_headers": (b"X-A: 1\n", "localhost:8080/_headers:1: 'X-A: 1': there is no pattern above this field: write one, such as /*"),
    ".htaccess_global": (b"\n", ".htaccess_global:1: the first line has to be the realm, so access is denied"),
    "apache/.htaccess": (b"AuthType Basic\nRequire valid-user\n", "apache/.htaccess:2: a password needs AuthType Basic, AuthName and AuthUserFile in this file"),
    "deep/er/.htaccess": (b"Friends\nann:{SHA}x\n", "deep/er/.htaccess:2: this is no hash that can be checked"),
    "dear/.htaccess": (b"Friends\nben:$2b$04$abcdefghijklmnopqrstuu3ZNTWactmkRXVB8K.1w4IlxX.O8lI12\nann:$2b$17$abcdefghijklmnopqrstuu3ZNTWactmkRXVB8K.1w4IlxX.O8lI12\n",
                       "dear/.htaccess:3: to check this hash takes more than 0.5 s of processor time"),
}


def without_hosts(done):
    """Takes the lines that list the hosts off the output."""
    done.hosts, done.stdout = re.fullmatch(r"((?:hosts: [^\n]*\n(?: [^\n]*\n)*)?)(.*)", done.stdout, re.DOTALL).groups()
    assert ("no mistakes\n" in done.stdout) == (done.returncode == 0)
    if done.returncode == 0:
        assert done.stdout == "no mistakes\n"
        done.stdout = ""
    return done


def check(build, root, *flags):
    """Returns what subprocess.run() does for gatling --check, with the list of hosts in `hosts`, not in `stdout`."""
    return without_hosts(subprocess.run([runnable(build), "--check", *flags, root.path], capture_output=True, text=True, timeout=20, check=False,
                                        **unprivileged()))  # fmt: skip


def test_all_hosts_are_listed(first_build):
    names = sorted([f"host{i}.example.org" for i in range(50)] + ["localhost", "a:80", "[::1]", f"{'long' * 15}.{'long' * 15}.example"])
    root = Root({f"{name}/index.html": b"" for name in (*names, "uploads", "UP.example", "default/d")})
    done = check(first_build, root, "-E")
    assert done.returncode == 0 and done.stdout == ""
    assert done.hosts.removeprefix("hosts: ").replace("\n       ", " ") == ", ".join(names) + "\n"
    assert [line for line in done.hosts.splitlines() if len(line) > 80] == [f"       {'long' * 15}.{'long' * 15}.example"]
    assert check(first_build, root, "-E", "-V").hosts == ""
    with_v = check(first_build, root, "-E", "-v").hosts.removeprefix("hosts: ").replace("\n       ", " ")
    assert with_v == ", ".join(sorted([*names, "uploads", "default"])) + "\n"


def test_what_looks_like_a_site_with_v_alone_is_said(first_build):
    root = Root({"default/index.html": b"x", "intranet/_redirects": b"/a /b\n", "a/b/index.html": b"x"})
    done = check(first_build, root, "-E")
    assert done.returncode == 1 and sorted(done.stdout.splitlines()) == [
        "default/: only with -v is it the site of all hosts that have no directory",
        "intranet/_redirects: only with -v is this the directory of a site, so the file has no effect"]  # fmt: skip
    assert check(first_build, root, "-E", "-v").stdout == ""


def test_nothing_is_said_of_what_is_right(first_build):
    cert, key = certificate()
    done = check(first_build, Root(GOOD), "--cert", cert, "--key", key)
    assert done.returncode == 0 and done.stdout == done.stderr == ""


@pytest.mark.parametrize("name", WRONG)
def test_each_mistake_is_said_in_a_line(first_build, name):
    content, line = WRONG[name]
    root = Root(GOOD)
    root.write(name, content)
    done = check(first_build, root)
    assert done.returncode == 1 and done.stderr == ""
    assert done.stdout.startswith(line) and done.stdout.count("\n") == 1, done.stdout


def test_certificates_are_looked_at_too(first_build):
    expired, its_key = certificate("DNS:old", expired=True)
    done = check(first_build, Root(GOOD), "--cert", "/nonexistent/cert.pem", "--cert", expired, "--key", its_key)
    assert done.returncode == 1 and "cannot use certificate /nonexistent/cert.pem: No such file" in done.stdout + done.stderr
    assert f"{expired}: the certificate has expired: " in done.stdout


@pytest.mark.parametrize("started", [False, True])
def test_a_certificate_that_the_authority_is_still_to_give_is_no_mistake(first_build, started):
    directory = Root().path / "acme"
    if started:
        (directory / "live").mkdir(parents=True)
    done = check(first_build, Root(GOOD), "--acme", "--acme-dir", directory)
    assert done.returncode == 0 and done.stdout == done.stderr == ""


def test_all_mistakes_of_all_sites_are_said(first_build):
    root = Root(GOOD)
    for name, (content, _) in WRONG.items():
        root.write(name, content)
    root.write("www.example.org/_headers", b"wrong\n" * 100)
    lines = check(first_build, root).stdout.splitlines()
    assert len([line for line in lines if line.startswith("www.example.org/_headers:")]) == 100
    for _, line in WRONG.values():
        assert any(found.startswith(line) for found in lines), line


@pytest.mark.parametrize(("wrong", "beside", "flag"), [
    ("_headers", "a.css", "-d"),
    ("_headers", "www.example.org/index.html", "-d"),
    ("_headers", "Images/a.png", "-d"),  # no host has this name
    ("default/_headers", "a.css", "-v"),
])  # fmt: skip
def test_a_mistake_is_said_once_however_many_there_are_and_whatever_is_beside_them(first_build, wrong, beside, flag):
    root = Root({"index.html": b"hello", "b.css": b"x", beside: b"x", wrong: b"wrong\n" * 1500})
    said = check(first_build, root, "-E", flag).stdout.splitlines()
    assert [line.partition(": ")[0] for line in said] == [f"{wrong}:{n}" for n in range(1, 1501)]


@pytest.mark.parametrize(("name", "line", "at"), [
    ("_redirects", b"/a%d /b\n", "4097: '/a4096 /b': there are more than 4096 rules"),
    ("_headers", b"/a%d\n  X-A: 1\n", "8193: '/a4096': there are more than 4096 rules"),
    ("_headers", b"/a%d\nA: 1\nB: 2\nC: 3\n", "10924: 'C: 3': there are more than 8192 fields"),
])  # fmt: skip
def test_too_many_lines_are_said_in_one(first_build, name, line, at):
    root = Root({"index.html": b"hello", name: b"".join(line % i for i in range(8200))})
    assert check(first_build, root, "-E").stdout == f"{name}:{at}: this line and those below it are ignored\n"


def test_rules_that_are_a_link_to_nowhere_are_said(first_build):
    root = Root({"index.html": b"hello"})
    (root.path / "_headers").symlink_to("none")
    assert check(first_build, root, "-E").stdout == "_headers: it is a symbolic link to nothing that the server can see\n"


def test_passwords_of_each_directory_that_may_be_a_site_are_looked_at_once(first_build):
    root = Root(GOOD)
    for directory in ("www.example.org", "My Files", "My Files/deep"):
        root.write(f"{directory}/.htaccess_global", b"")
    for flag in "-d", "-V":
        said = check(first_build, root, "-E", flag).stdout.splitlines()
        assert sorted(line.partition(":")[0] for line in said if "no effect" not in line) == [
            "My Files/.htaccess_global", "www.example.org/.htaccess_global"], flag  # fmt: skip


@pytest.mark.parametrize(("flag", "places", "with_v"), [
    ("-d", ["My Files/_headers", "a/b/.htaccess_global", "a/b/_headers", "a/b/_redirects"], ["a/_headers", "linked/_headers"]),
    ("-v", ["My Files/_headers", ".htaccess_global", "_redirects", "a/b/.htaccess_global", "a/b/_headers", "a/b/_redirects"], []),
    ("-V", ["My Files/_headers", "a/_headers", "a/b/.htaccess_global", "a/b/_headers", "a/b/_redirects", "linked/_headers", "releases/7/_headers"], []),
])  # fmt: skip
def test_rules_and_passwords_that_have_no_effect_where_they_are_are_said(first_build, flag, places, with_v):
    rules, passwords = b"/*\n  X-A: 1\n", b"Friends\nann:*\n"
    root, elsewhere = Root({"index.html": b"hello", "_redirects": b"/a /b\n"}), Root({"_headers": rules})
    for name in ".htaccess_global", "a/.htaccess_global", "a/b/.htaccess_global", "My Files/.htaccess_global":
        root.write(name, passwords)
    for name in "My Files/_headers", "a/_headers", "a/b/_headers", "a/.git/_headers", "releases/7/_headers":
        root.write(name, rules)
    root.write("a/b/_redirects", b"/a /b\n")
    (root.path / "www.example.org").symlink_to("releases/7")
    (root.path / "linked").symlink_to(elsewhere.path)
    said = check(first_build, root, "-E", flag).stdout.splitlines()
    # a directory with two names is listed under one of them
    found = [line.replace("www.example.org/", "releases/7/") for line in said if "no effect" in line]
    only = "only with -v is this"
    assert sorted(found) == sorted(f"{place}: {only if place in with_v else 'this is not'} the directory of a site, so the file has no effect"
                                   for place in places + with_v)  # fmt: skip


def test_a_directory_that_no_host_can_name_is_said_where_only_hosts_are_served(first_build):
    root = Root({"WWW.example.org/index.html": b"x", "a b/index.html": b"x", "c.example.org/index.html": b"x", ".git/config": b"x"})
    assert check(first_build, root, "-E").stdout == ""
    said = sorted(check(first_build, root, "-E", "-v").stdout.splitlines())
    assert said == [f"{name}: no host has this name, so nothing in it is served; names of hosts are in lower case"
                    for name in ("WWW.example.org", "a b")]  # fmt: skip


def test_that_no_host_is_served_is_said(first_build):
    """A host may come later."""
    root = Root({"index.html": b"x", "a.example": b"x", "WWW.example.org/index.html": b"x", ".git/config": b"x"})
    says = "no host is served: there is neither a directory with the name of a host, in lower case, nor default/"
    assert says in check(first_build, root, "-E", "-v").stdout.splitlines()
    with Server(first_build, root, "-j", "1", "-n", "-v") as server:
        assert server.errors == [f"gatling: {says}"]
        assert server.get("/", host="b.example").status == 404
        root.write("b.example/index.html", b"b")
        assert eventually(lambda: server.get("/", host="b.example").body == b"b", 5)
    with Server(first_build, root, "-j", "1", "-n", "-v") as server:
        assert server.errors == []
    assert says not in check(first_build, root, "-E", "-v").stdout
    root.remove()


def test_links_that_are_not_followed_are_said(first_build):
    root = Root(GOOD)
    (root.path / "out").symlink_to("/etc/hostname")
    (root.path / "in").symlink_to("index.html")
    (root.path / "url").symlink_to("https://example.org/")
    assert check(first_build, root, "-E").stdout == ""
    assert check(first_build, root, "-E", "--symlinks", "inside").stdout == "out: a symbolic link that --symlinks inside does not follow\n"


@pytest.mark.parametrize("rules", [
    b"/* /index.html 200\n/old /new\n",
    b"/* http://127.0.0.1/:splat 200\n/old /new\n",
    b"/* /index.html 200!\n/old /new 301!\n",
    b"/* /index.html 200\n/old /new 301!\n",
])  # fmt: skip
def test_a_rule_that_never_applies_is_said(first_build, rules):
    done = check(first_build, Root({**GOOD, "_redirects": rules}), "-E", "--upstream", "127.0.0.1")
    assert done.stdout.startswith("_redirects:2: ") and done.stdout.endswith(": it never applies: line 1 comes first\n")


@pytest.mark.parametrize("rules", [
    b"/* /index.html 200\n/old /new 404!\n",
    b"/* /new\n/new /index.html 200\n",
    b"/* a=1 /index.html 200\n/old /new\n",
    b"http://a.example/* /index.html 200\n/old /new\n",
    b"/old /new\n/* /index.html 200\n",
    b"/* /index.html 200\n/*.php fcgi://127.0.0.1:9000 200\n",
])  # fmt: skip
def test_a_rule_that_may_apply_is_not(first_build, rules):
    assert check(first_build, Root({**GOOD, "_redirects": rules}), "-E", "--upstream", "127.0.0.1").stdout == ""


@pytest.mark.parametrize("name", ["_headers", "_redirects"])
def test_rules_that_are_no_file_are_said(first_build, name):
    root = Root({"index.html": b"hello"})
    root.mkdir(name)
    effect = "; until that is mended, access to the site is denied" if name == "_redirects" else ""
    assert check(first_build, root, "-E").stdout == f"{name}: it is no regular file: replace it by one, or remove it{effect}\n"


def test_what_would_not_be_served_is_said(first_build):
    root = Root(GOOD)
    root.write("css/a.css", b"x", 0o640)
    root.write("secret.pem", b"x", 0o600)
    root.write(".git/config", b"x", 0o600)
    root.write(".well-known/.hidden", b"x", 0o600)
    root.write("deep/a", b"x")
    (root.path / "deep").chmod(0o744)
    said = sorted(check(first_build, root, "-E").stdout.splitlines())
    assert [line for line in said if "cannot be read" not in line] == [
        "css/a.css: mode 0640, not readable by everyone: chmod o+r would publish it",
        "deep: mode 0744, the server may not enter it: chmod o+x"]  # fmt: skip


def test_well_known_files_of_each_site_are_looked_at_and_no_others(first_build):
    root = Root(GOOD)
    for directory in (".well-known", "www.example.org/.well-known", "www.example.org/deep/.well-known", ".well-known-not", ".well-known/.a"):
        root.write(f"{directory}/a", b"x", 0o600)
    for flags, found in (("-d",), [".well-known/a", "www.example.org/.well-known/a"]), (("-V",), [".well-known/a"]):
        said = check(first_build, root, "-E", *flags).stdout.splitlines()
        assert sorted(line.partition(":")[0] for line in said) == found, flags


def test_what_links_lead_to_is_looked_at_and_what_is_older_than_its_original(first_build):
    root, elsewhere = Root(GOOD), Root({"closed.css": b"x", "a.js": b"x", "a.js.br": b"x", "b.js": b"x", "b.js.gz": b"x"})
    (elsewhere.path / "closed.css").chmod(0o640)
    os.utime(elsewhere.path / "a.js.br", (1, 1))
    (root.path / "linked").symlink_to(elsewhere.path)
    (elsewhere.path / "back").symlink_to(root.path)
    assert sorted(check(first_build, root, "-E").stdout.splitlines()) == [
        "linked/a.js.br is older than linked/a.js, and not used: make it again",
        "linked/closed.css: mode 0640, not readable by everyone: chmod o+r would publish it"]  # fmt: skip


def test_a_link_to_itself_does_not_end_the_check(first_build):
    root = Root(GOOD)
    (root.path / "www.example.org/circle").symlink_to("circle")
    (root.path / "nowhere").symlink_to("none")
    for i in range(20):  # they come in any order
        root.write(f"{i}/closed.css", b"x", 0o640)
    done = check(first_build, root, "-E")
    closed = [f"{i}/closed.css: mode 0640, not readable by everyone: chmod o+r would publish it" for i in range(20)]
    assert done.returncode == 1 and done.stderr == "" and sorted(done.stdout.splitlines()) == sorted(
        [*closed, "nowhere: a symbolic link to none, which does not exist",
         "symbolic links lead in a circle: until that is mended, not all that links lead to is checked",
         "www.example.org/circle: a symbolic link that leads to itself, or through too many others"])  # fmt: skip


def test_a_directory_that_is_not_there_is_named(first_build):
    missing = Root()
    missing.remove()
    done = check(first_build, missing, "-E")
    assert done.returncode == 1 and done.stderr == f"gatling: cannot check {missing.path}: No such file or directory\n"


def test_one_directory_is_served(first_build):
    done = subprocess.run([first_build / "gatling", "-c", "/", "/tmp"], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2 and "unexpected argument '/tmp': one directory is served" in done.stderr


def test_media_types_that_would_end_the_start_are_said(first_build):
    types = Root({"types": b"text/plain txt\nnonsense foo\n"}).path / "types"
    done = check(first_build, Root(GOOD), "-E", "--mime", types)
    assert done.returncode == 1 and done.stderr == f"gatling: cannot use {types}:2: it is not a media type and its extensions\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its root and user")
def test_a_directory_that_the_user_may_not_read_is_said_once_with_the_reason(first_build):
    root = Root(GOOD)
    root.path.chmod(0o700)
    command = [runnable(first_build), "--check", "-u", "nobody", "-E", root.path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1 and done.stdout == "" and done.stderr == f"gatling: cannot check {root.path}: there is no permission to read and enter it\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its root and user")
def test_it_sees_what_the_server_would_see(first_build):
    root = Root(GOOD)
    root.write("a/.htaccess", b"Friends\nann:*\n", 0o600)
    root.write("private/file", b"x")
    (root.path / "private").chmod(0o700)
    (root.path / "example.org").symlink_to(root.path / "www.example.org")
    (root.path / "elsewhere").symlink_to("https://example.org/")
    (root.path / "media").symlink_to("../shared")
    (root.path / "uploads").symlink_to("/var/nowhere")
    (root.path / "dangling").symlink_to("a/../nowhere")
    command = [runnable(first_build), "--check", "-u", "nobody", "-E", root.path]
    done = without_hosts(subprocess.run(command, capture_output=True, text=True, timeout=20, check=False))
    seen = "which the server, started by root, cannot see:"
    mount = f"{seen} mount that in the served directory (mount --bind), or start gatling as another user"
    nowhere = f"example.org: a symbolic link to {root.path}/www.example.org, {seen} to it the served directory is /, so make the link relative (ln -sr)"
    assert done.returncode == 1 and sorted(done.stdout.splitlines()) == [
        "a/.htaccess: this is no file that the user of the server may read, so access is denied",
        "dangling: a symbolic link to a/../nowhere, which does not exist",
        nowhere,
        f"media: a symbolic link to ../shared, {mount}",
        "private: mode 0700, the server may not enter it: chmod o+x",
        f"uploads: a symbolic link to /var/nowhere, {mount}"]  # fmt: skip
