"""Passwords: .htaccess for a directory, .htaccess_global for a site."""

import base64
import ctypes
import gzip
import json
import socket
import time

import pytest

from gatling import Root, Server, eventually
from http2 import Http2

pytestmark = pytest.mark.decided

LIBRARY = ctypes.CDLL("libcrypt.so.1")
LIBRARY.crypt.restype = ctypes.c_char_p


def hashed(setting):
    """Returns the hash of "right" by crypt(3)."""
    return LIBRARY.crypt(b"right", setting.encode()).decode()


HASHES = {
    "bcrypt": hashed("$2b$04$abcdefghijklmnopqrstuu"),
    "yescrypt": hashed("$y$j75$B2pzHBXJGpyLbyUYqDvgk/"),
    "sha512crypt": hashed("$6$rounds=1000$saltsalt"),
    "sha256crypt": hashed("$5$rounds=1000$saltsalt"),
    "md5crypt": hashed("$1$saltsalt"),
    "apr1": "$apr1$abcdefgh$tPMe7lknrFZeX55XJF00t0",  # openssl passwd -apr1
    "SHA": "{SHA}0nofEXcSAJSXFLGvmfBIpBb11vQ=",
}
GUESSES = 8  # of ten that an address has
MEDIUM = hashed("$2b$08$abcdefghijklmnopqrstuu")
DEAR = [  # take more than half a second, days, or gigabytes, or nobody knows
    "$2b$17$abcdefghijklmnopqrstuu3ZNTWactmkRXVB8K.1w4IlxX.O8lI12",
    "$6$rounds=9000000$saltsalt$x",
    "$7$FU..../....saltsalt$x",
    "_zzzzsaltabcdefghijk",
    "$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$x",
    "$2b$31$abcdefghijklmnopqrstuu3ZNTWactmkRXVB8K.1w4IlxX.O8lI12",
    "$5$rounds=999999999$saltsalt$x",
    "$6$rounds=999999999$saltsalt$x",
    "$sha1$4294967295$saltsalt$x",
    "$md5,rounds=4294963199$saltsalt$x",
    "$md5$rounds=999999999$saltsalt$$x",
    "$y$jXT$B2pzHBXJGpyLbyUYqDvgk/$x",
    "$y$j9/2zzz$B2pzHBXJGpyLbyUYqDvgk/$x",
    "$gy$jXT$B2pzHBXJGpyLbyUYqDvgk/$x",
    "$7$XU..../....saltsalt$x",
    "$7$AU..../zzzzsaltsalt$x",
]
SLOW = "$2b$12$abcdefghijklmnopqrstuu3ZNTWactmkRXVB8K.1w4IlxX.O8lI12"  # a fifth of a second or more: not in each process of the tests


def basic(user, password="right"):
    return "Authorization: Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def write(root, text, name=".htaccess", mode=0o644):
    return root.write(name, text.encode(), mode)


def guarded(text):
    root = Root({"d/file.txt": b"guarded", "d/sub/a/file.txt": b"guarded", "file.txt": b"free", "404.html": b"own page"})
    write(root, text, "d/.htaccess")
    return root


@pytest.fixture(scope="module")
def server(build):
    root = guarded("# ours\n\nA realm\n# people\n\n" + "".join(f"{name}:{text}\n" for name, text in HASHES.items()) + "ü:" + HASHES["md5crypt"])
    with Server(build, root, "-j", "2") as running:
        yield running
    root.remove()


@pytest.mark.parametrize("user", [*HASHES, "ü"])
def test_who_knows_the_password_gets_in(server, user):
    response = server.get("/d/file.txt", basic(user))
    assert response.status == 200 and response.body == b"guarded"
    assert server.get("/d/", basic(user)).status == 200


@pytest.mark.parametrize(
    "field",
    [
        (),
        (basic("nobody"),),
        (basic("bcrypt", "wrong"),),
        (basic("bcrypt", ""),),
        (basic("bcrypt", "right\0"),),
        (basic("bcrypt", "right "),),
        (basic("", ""),),
        (basic("u" * 10_000),),
        (basic("bcrypt", "p" * 9_000),),
        ("Authorization: Basic",),
        ("Authorization: Basic !!!",),
        ("Authorization: Basic YQ==",),
        ("Authorization: Bearer x",),
        ("Authorization: Digest username=bcrypt",),
        (basic("bcrypt"), basic("bcrypt")),
    ],
    ids=lambda field: str(len(field)) + "".join(field)[:60],
)
def test_who_does_not_is_asked(server, field):
    response = server.get("/d/file.txt", *field)
    assert response.status == 401
    assert response["WWW-Authenticate"] == 'Basic realm="A realm", charset="UTF-8"'
    assert b"guarded" not in response.body


@pytest.mark.parametrize("path", ["/d/file.txt", "/d/", "/d/nothing", "/d/.htaccess", "/d/?format=json", "/d/sub/a/file.txt", "/d/sub", "/d/none/x/y"])
def test_everything_in_the_directory_is_guarded_and_nothing_says_what_is_there(server, path):
    assert server.get(path).status == (404 if "htaccess" in path else 401)


@pytest.mark.parametrize("path", ["/file.txt", "/d/../file.txt"])
def test_other_directories_are_not(server, path):
    assert server.get(path).status == 200


def test_what_is_published_behind_a_new_guard_is_shown_to_nobody(build):
    root = Root({"d/page.bin": b"o" * 100_000, "d/new.txt": b"o"})
    with Server(build, root, "-j", "1") as server, server.connect() as c:
        until = time.monotonic() + 0.3
        while time.monotonic() < until:  # the server then knows the directory
            assert c.get("/d/missing").status == 404
        assert c.get("/d/page.bin").status == 200
        write(root, "A realm\nann:*\n", "d/.htaccess")
        for name in ("page.bin", "new.txt"):
            root.write("d/next", b"n" * 100_000)
            (root.path / "d/next").rename(root.path / "d" / name)
            assert c.get(f"/d/{name}").status == 401
    root.remove()


def test_the_nearest_file_replaces_those_above(build):
    root = guarded("outer\nann:" + HASHES["md5crypt"])
    write(root, "inner\nbob:" + HASHES["md5crypt"], "d/sub/.htaccess")
    with Server(build, root, "-j", "1") as server:
        for path in ("/d/sub/a/file.txt", "/d/sub/a/none", "/d/sub/a"):
            assert server.get(path)["WWW-Authenticate"].startswith('Basic realm="inner"')
            assert server.get(path, basic("ann")).status == 401
        assert server.get("/d/sub/a/file.txt", basic("bob")).body == b"guarded"
        assert server.get("/d/file.txt")["WWW-Authenticate"].startswith('Basic realm="outer"')
        (root.path / "d/sub/.htaccess").unlink()
        eventually(lambda: server.get("/d/sub/a/file.txt", basic("ann")).status == 200, 5)


FAULTS = {"EIO": 503, "ENOMEM": 503, "EMFILE": 503, "EACCES": 403}


@pytest.mark.clear
@pytest.mark.parametrize("error", FAULTS)
def test_what_cannot_be_seen_just_now_is_not_there_for_nobody_and_is_not_remembered(plain, error):
    """The second attempt to look at the files succeeds."""
    root = guarded("realm\nann:" + HASHES["md5crypt"])
    root.write("host.example/file.txt", b"of the host")
    for path, host in (("d/.htaccess", "x"), ("host.example", "host.example")):
        strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", path, "-e", "trace=newfstatat",
                  "-e", f"inject=newfstatat:error={error}:when=1"]  # fmt: skip
        with Server(plain, root, "-j", "1", "-n", tracer=strace) as server, server.connect() as c:
            wanted = "/file.txt" if host != "x" else "/d/file.txt"
            first = c.get(wanted, basic("ann"), host=host)
            if host == "x":
                assert first.status == FAULTS[error]
            elif error != "EACCES":
                assert first.status == 503
            assert eventually(lambda: c.get(wanted, basic("ann"), host=host).status == 200, 5)
            if error != "EACCES" and host != "x":
                assert c.get(wanted, host=host).body == b"of the host"


def ask_from(server, source, user, password):
    """Returns the socket of a client at that address that has sent its last request."""
    s = socket.create_connection(("127.0.0.1", server.plain_port), source_address=(source, 0))
    s.settimeout(60)
    s.sendall(f"GET /d/file.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{basic(user, password)}\r\n\r\n".encode())
    return s


@pytest.mark.tcp
def test_who_has_not_guessed_is_checked_before_those_who_do(build):
    """An attack from many addresses: nobody who logs in for the first time is turned away, or waits
    for all of it."""
    users = "".join(f"user{i}:{MEDIUM}\n" for i in range(16))
    with Server(build, guarded("realm\n" + users), "-j", "1", address=("-i", "0.0.0.0")) as server:
        attack = [ask_from(server, f"127.2.{n}.1", "user0", f"guess {n} {i}") for i in range(3) for n in range(80)]
        real = [ask_from(server, f"127.3.{i}.1", f"user{i}", "right") for i in range(16)]
        assert [int(s.makefile("rb").readline().split()[1]) for s in real] == [200] * 16
        for s in attack + real:
            s.close()


@pytest.mark.tcp
def test_who_waits_is_not_overtaken_by_who_guesses_more(build):
    """All of them use one loop and one queue; the log shows in which order they are answered."""
    users = f"ann:{SLOW}\nben:{SLOW}\n"
    with Server(build, guarded("realm\n" + users), "-j", "1", address=("-i", "0.0.0.0")) as server:
        clients = [ask_from(server, "127.2.0.1", "ann", f"guess {i}") for i in range(2)]
        clients.append(ask_from(server, "127.3.0.1", "ben", "right"))
        clients += [ask_from(server, "127.2.0.1", "ann", f"more {i}") for i in range(2)]
        for c in clients:
            c.makefile("rb").read()
            c.close()
        order = [line.split()[0] for line in eventually(lambda: len(server.lines) == 5 and server.lines)]
        assert order.index("127.3.0.1") <= 1, order  # behind the one that had begun


def guarded_by_two(one, other):
    """Two sites with passwords of their own."""
    root = Root({"a.example/x.txt": b"a", "b.example/x.txt": b"b"})
    write(root, one, "a.example/.htaccess")
    write(root, other, "b.example/.htaccess_global")
    return root


def ask_site(server, source, host, user, password):
    s = socket.create_connection(("127.0.0.1", server.plain_port), source_address=(source, 0))
    s.settimeout(60)
    s.sendall(f"GET /x.txt HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{basic(user, password)}\r\n\r\n".encode())
    return s


@pytest.mark.tcp
def test_a_hash_that_takes_hours_holds_up_no_other_site(build):
    root = guarded_by_two(f"dear\nann:{DEAR[0]}\n", f"cheap\nben:{HASHES['bcrypt']}\n")
    with Server(build, root, "-j", "1", address=("-i", "0.0.0.0")) as server:
        clients = [ask_site(server, f"127.2.{n}.1", "a.example", "ann", f"guess {n}") for n in range(20)]
        assert server.get("/x.txt", basic("ben"), host="b.example").body == b"b"
        assert [int(s.makefile("rb").readline().split()[1]) for s in clients] == [403] * 20
        assert server.cpu_seconds() < 5
        for s in clients:
            s.close()
    said = [line for line in server.errors if "access is denied" in line]
    assert len(said) == 1 and said[0].startswith("gatling: a.example/.htaccess:2: ") and "htpasswd" in said[0]


@pytest.mark.tcp
def test_realms_take_turns(build):
    """However many addresses guess at one site, another one's users wait for one check."""
    root = guarded_by_two(f"one\nann:{MEDIUM}\n", f"other\nben:{MEDIUM}\n")
    with Server(build, root, "-j", "1", address=("-i", "0.0.0.0")) as server:
        server.get("/x.txt", basic("ann"), host="a.example")  # the kind of hash is measured
        clients = [ask_site(server, f"127.2.{n}.1", "a.example", "ann", f"guess {n}") for n in range(60)]
        eventually(lambda: len(server.lines) > 1)
        for i in range(3):  # an address with more attempts than those
            clients.append(ask_site(server, "127.3.0.1", "b.example", "ben", f"wrong {i}"))
            clients[-1].makefile("rb").read()
        order = [line.split()[0] for line in server.lines]
        for s in clients:
            s.makefile("rb").read()
            s.close()
    assert len(order) < 50, order  # others still waited


@pytest.mark.tcp
def test_one_site_does_not_fill_all_places(build):
    """A site with 128 checks that wait gives a place to another one, even to an address that has guessed
    more often than all of theirs."""
    root = guarded_by_two(f"one\nann:{SLOW.replace('$12$', '$07$')}\n", f"other\nben:{MEDIUM}\n")
    with Server(build, root, "-j", "1", address=("-i", "0.0.0.0")) as server:
        for i in range(5):
            with ask_site(server, "127.3.0.1", "b.example", "ben", f"wrong {i}") as mistyped:
                assert b" 401 " in mistyped.makefile("rb").readline()
        clients = [ask_site(server, f"127.2.{n}.1", "a.example", "ann", f"guess {n}") for n in range(170)]
        eventually(lambda: any(" 503 " in line for line in server.lines))
        clients += [ask_site(server, f"127.4.{n}.1", "a.example", "ann", f"guess {n}") for n in range(4)]  # for places that have become free
        ben = ask_site(server, "127.3.0.1", "b.example", "ben", "right")
        assert ben.makefile("rb").readline().split()[1] == b"200"
        for s in [*clients, ben]:  # with a reset, since the server answers those who end their side alone
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            s.close()


def test_workers_count_together_what_an_address_has_tried(build):
    with Server(build, guarded("realm\nann:" + HASHES["md5crypt"]), "-j", "4") as server:
        found = []
        for i in range(30):
            with server.connect() as connection:
                found.append(connection.get("/d/file.txt", basic("ann", f"guess {i}")).status)
        assert set(found) == {401, 429} and found.count(401) <= 12  # ten, and one for every three seconds


@pytest.mark.parametrize("name", ["/.htaccess", "/d/.htaccess", "/.htaccess_global", "/d/%2ehtaccess"])
def test_the_file_itself_is_never_served(server, name):
    assert server.get(name, basic("bcrypt")).status == 404


def test_what_is_guarded_is_for_no_shared_cache(server):
    assert server.get("/d/file.txt", basic("bcrypt"))["Cache-Control"] == "private, no-cache"
    assert server.get("/file.txt")["Cache-Control"] == "no-cache"


def test_the_user_is_in_the_log(build):
    with Server(build, guarded("realm\nann:" + HASHES["md5crypt"]), "-j", "1") as server:
        server.get("/d/file.txt", basic("ann"))
        server.get("/d/nothing", basic("ann"))
        server.get("/d/file.txt", basic("bob"))
        eventually(lambda: len(server.lines) == 3)
    assert [line.split()[2] for line in server.lines] == ["ann", "ann", "bob"]


def test_a_global_file_guards_the_whole_site(build, root):
    root.write("d/x.txt", b"x")
    write(root, "all\nann:" + HASHES["md5crypt"], ".htaccess_global")
    root.write("_redirects", b"/old /new 301!\n")
    with Server(build, root, "-j", "1") as server:
        for path in ("/", "/a.txt", "/d/x.txt", "/d/", "/nothing", "/old"):
            assert server.get(path).status == 401
        assert server.get("/d/x.txt", basic("ann")).body == b"x"
        assert server.get("/d/x.txt", basic("ann"))["Cache-Control"].startswith("private")
        assert server.get("/old", basic("ann")).status == 301
        assert server.get("/nothing", basic("ann")).status == 404


def test_both_files_have_to_be_passed(build):
    root = guarded("inner\nann:" + HASHES["md5crypt"] + "\nbob:" + HASHES["md5crypt"])
    write(root, "outer\nann:" + HASHES["md5crypt"], ".htaccess_global")
    with Server(build, root, "-j", "1") as server:
        assert server.get("/d/file.txt", basic("ann")).status == 200
        assert 'realm="outer"' in server.get("/d/file.txt", basic("bob"))["WWW-Authenticate"]


def test_each_site_has_its_own(build):
    root = Root({"a.org/x.txt": b"a", "b.org/x.txt": b"b"})
    write(root, "all\nann:" + HASHES["md5crypt"], "a.org/.htaccess_global")
    with Server(build, root, "-j", "1") as server:
        assert server.get("/x.txt", host="a.org").status == 401
        assert server.get("/x.txt", host="b.org").body == b"b"


@pytest.mark.parametrize(
    "text, mode, line",
    [
        ("", 0o644, ":1: "),
        ("\n", 0o644, ":1: "),
        ("realm\nann:" + HASHES["md5crypt"], 0o000, ": "),
        ("realm\nthis is no user\n", 0o644, ":2: "),
        ("AuthType Basic\nAuthUserFile /etc/users\nRequire valid-user\n", 0o644, ":3: "),
        ("realm\nann:$apr1$abcdefghi$abcdefghijklmnopqrstuv\n", 0o644, ":2: "),
        ("realm\nann:{SHA}abcdefghijklmnopqrstuv=\n", 0o644, ":2: "),
        ("realm\nann:{SSHA}abcdefghijklmnopqrstuvwxyzab=\n", 0o644, ":2: "),
        ("a \x01 realm\nann:x\n", 0o644, ":1: "),
        ("r" * 300 + "\nann:x\n", 0o644, ":1: "),
        ("realm\n" + "u" * 300 + ":x\n", 0o644, ":2: "),
        ("ann:" + HASHES["bcrypt"] + "\n", 0o644, ":1: "),
        ("realm\nann:secret\n", 0o644, ":2: "),
        ("realm\n# nobody\n", 0o644, ":2: "),
        *((f"realm\nann:{setting}\n", 0o644, ":2: ") for setting in DEAR),
    ],
    ids=["empty", "an empty line", "unreadable", "no user", "Apache's", "apr1", "SHA", "SSHA", "control", "long realm", "long name",
         "no realm", "no hash", "no users", *DEAR],  # fmt: skip
)
def test_nobody_gets_in_where_the_file_is_of_no_use(build, text, mode, line):
    root = guarded(text)
    (root.path / "d/.htaccess").chmod(mode)
    with Server(build, root, "-j", "2") as server:
        for _ in range(4):
            for field in ((), (basic("ann"),)):
                assert server.get("/d/file.txt", *field).status == 403
        assert server.get("/file.txt").status == 200
    said = [error for error in server.errors if ".htaccess" in error]
    assert len(said) == 1 and said[0].startswith("gatling: d/.htaccess" + line) and "access is denied" in said[0]


def test_who_may_not_log_in_is_asked(build):
    with Server(build, guarded("realm \"of\\ quotes\nann:*\n"), "-j", "1") as server:
        response = server.get("/d/file.txt", basic("ann"))
        assert response.status == 401 and r'realm="realm \"of\\ quotes"' in response["WWW-Authenticate"]


def test_a_directory_of_that_name_lets_nobody_in(build, root):
    root.write("d/x.txt", b"x")
    root.mkdir("d/.htaccess")
    with Server(build, root, "-j", "1") as server:
        assert server.get("/d/x.txt").status == 403


def test_a_changed_file_counts_within_seconds(build):
    root = guarded("realm\nann:" + HASHES["md5crypt"])
    with Server(build, root, "-j", "1") as server:
        assert server.get("/d/file.txt", basic("ann")).status == 200
        write(root, "realm\nbob:" + HASHES["md5crypt"], "d/.htaccess")
        eventually(lambda: server.get("/d/file.txt", basic("ann")).status == 401, 5)
        assert server.get("/d/file.txt", basic("bob")).status == 200
        (root.path / "d/.htaccess").unlink()
        eventually(lambda: server.get("/d/file.txt").status == 200, 5)
        assert server.get("/d/file.txt")["Cache-Control"] == "no-cache"
        write(root, "realm\nbob:" + HASHES["md5crypt"], "d/.htaccess")
        eventually(lambda: server.get("/d/file.txt").status == 401, 5)


def test_a_password_once_checked_is_not_checked_again(build):
    with Server(build, guarded("realm\nann:" + SLOW), "-j", "1") as server, server.connect() as connection:
        assert connection.get("/d/file.txt", basic("ann")).status == 200
        before = server.cpu_seconds()
        for _ in range(100):
            assert connection.get("/d/file.txt", basic("ann")).status == 200
        assert server.cpu_seconds() - before < 2


@pytest.mark.tcp
def test_nobody_waits_while_a_password_is_checked(build):
    with Server(build, guarded("realm\nann:" + SLOW), "-j", "1") as server, server.connect() as waiting, server.connect() as other:
        other.get("/file.txt")
        waiting.send(f"GET /d/file.txt HTTP/1.1\r\nHost: x\r\n{basic('ann')}\r\n\r\n".encode())
        before = time.monotonic()
        assert other.get("/file.txt").body == b"free"
        answered = time.monotonic() - before
        assert waiting.response().status == 200
        assert answered < (time.monotonic() - before) / 2


@pytest.mark.tcp
def test_who_asks_at_the_same_time_is_checked_once(build):
    with Server(build, guarded("realm\nann:" + SLOW), "-j", "1") as server:
        connections = [server.connect() for _ in range(20)]
        for connection in connections:
            connection.send(f"GET /d/file.txt HTTP/1.1\r\nHost: x\r\n{basic('ann')}\r\n\r\n".encode())
        assert [connection.response().status for connection in connections] == [200] * 20
        for connection in connections:
            connection.close()


def test_an_address_has_so_many_attempts(build):
    with Server(build, guarded("realm\nann:" + HASHES["md5crypt"]), "-j", "1") as server, server.connect() as connection:
        assert connection.get("/d/file.txt", basic("ann")).status == 200
        found = [connection.get("/d/file.txt", basic("ann", f"guess {i}")) for i in range(15)]
        limited = [response for response in found if response.status == 429]
        assert [response.status for response in found[:10]] == [401] * 10 and len(limited) >= 3
        assert limited[0]["Retry-After"] == "3"
        # a known password is not locked out by guesses from the same address
        assert connection.get("/d/file.txt", basic("ann")).status == 200
        eventually(lambda: connection.get("/d/file.txt", basic("ann", "another")).status == 401, 10)


def test_who_is_right_uses_up_no_attempts(build):
    users = "".join(f"user{i}:{HASHES['md5crypt']}\n" for i in range(30))
    with Server(build, guarded("realm\n" + users), "-j", "1") as server, server.connect() as connection:
        assert [connection.get("/d/file.txt", basic(f"user{i}")).status for i in range(30)] == [200] * 30


def test_a_name_that_is_not_there_takes_as_long_as_one_that_is(build):
    with Server(build, guarded("realm\nann:" + SLOW), "-j", "1") as server, server.connect() as connection:

        def cpu(user):
            before = server.cpu_seconds()
            assert connection.get("/d/file.txt", basic(user, "wrong")).status == 401
            return server.cpu_seconds() - before

        known, unknown = min(cpu("ann"), cpu("ann")), cpu("bob")
        assert unknown > 0.05 and known <= unknown * 100


@pytest.mark.clear
def test_streams_wait_for_passwords(build):
    with Server(build, guarded("realm\nann:" + SLOW), "-j", "1") as server, Http2(server) as client:
        field = ("authorization", basic("ann").split(": ")[1])
        streams = [client.ask("/d/file.txt", field) for _ in range(10)]
        free = client.ask("/file.txt")
        answers = client.answers(*streams, free)
        assert [answer.status for answer in answers] == [200] * 11
        assert client.order[0] == free
        assert client.get("/d/file.txt").status == 401


@pytest.mark.tcp
def test_a_body_behind_a_request_that_waits_is_read_past(build):
    with Server(build, guarded("realm\nann:" + SLOW), "-j", "1") as server, server.connect() as connection:
        head = f"GET /d/file.txt HTTP/1.1\r\nHost: x\r\n{basic('ann')}\r\nContent-Length: 5\r\n\r\n"
        connection.send(head.encode() + b"12345")
        assert connection.response().status == 200
        connection.assert_in_step()


def test_a_host_does_not_lead_around_the_guard_of_the_root(build, root):
    root.write("docs.example/x.txt", b"secret")
    write(root, "all\nann:" + HASHES["md5crypt"], ".htaccess_global")
    with Server(build, root, "-j", "1") as server:
        assert server.get("/x.txt", host="docs.example").status == 401
        assert server.get("/", host="docs.example").status == 401
        assert server.get("/x.txt", basic("ann"), host="docs.example").body == b"secret"
    with Server(build, root, "-j", "1", "-v") as server:  # the root is not a site
        assert server.get("/x.txt", host="docs.example").body == b"secret"


def test_a_path_does_not_lead_around_the_guard_of_a_site(build, root):
    root.write("a.example/x.txt", b"secret")
    root.write("a.example/d/x.txt", b"secret")
    root.write("a.example/_headers", b"/*\n  X: y\n")
    write(root, "site\nann:" + HASHES["md5crypt"], "a.example/.htaccess_global")
    with Server(build, root, "-j", "1") as server:
        for path in ("/a.example/x.txt", "/a.example/d/x.txt", "/a.example/", "/a.example/d/", "/a.example/none"):
            assert server.get(path, host="other").status == 401
        assert server.get("/a.example/x.txt", basic("ann"), host="other").body == b"secret"
        assert server.get("/a.example/_headers", basic("ann"), host="other").status == 404
        assert server.get("/a.txt", host="other").status == 200


@pytest.mark.tcp
def test_addresses_have_their_attempts_each_and_do_not_give_them_back_to_each_other(build):
    with Server(build, guarded("realm\nann:" + HASHES["md5crypt"]), "-j", "1", address=("-i", "0.0.0.0")) as server:

        def guess(source, i):
            with socket.create_connection(("127.0.0.1", server.plain_port), source_address=(source, 0)) as plain:
                plain.sendall(f"GET /d/file.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{basic('ann', f'{source} {i}')}\r\n\r\n".encode())
                return int(plain.makefile("rb").readline().split()[1])

        sources = [f"127.1.{i}.{7 * i % 200 + 1}" for i in range(8)]
        found = [guess(source, i) for i in range(30) for source in sources]
        assert set(found) == {401, 429} and found.count(401) <= 8 * 13 and found[:8] == [401] * 8


@pytest.mark.parametrize("target", ["/nonexistent-in-chroot", ".htaccess", "../d/nothing"])
def test_a_guard_that_is_a_link_to_nowhere_lets_nobody_in(build, root, target):
    root.write("d/x.txt", b"x")
    (root.path / "d/.htaccess").symlink_to(target)
    with Server(build, root, "-j", "1") as server:
        for _ in range(3):
            assert server.get("/d/x.txt").status == server.get("/d/").status == 403
        eventually(lambda: [line for line in server.errors if line.startswith("gatling: d/.htaccess: ")])
        (root.path / "d/.htaccess").unlink()
        eventually(lambda: server.get("/d/x.txt").status == 200, 5)


def test_links_to_one_guard_share_it(plain, root):
    for name in "ab":
        (root.path / name).symlink_to(".")
    root.write("x.txt", b"x")
    write(root, "realm\n" + "".join(f"user{i}:{HASHES['md5crypt']}\n" for i in range(10_000)))
    with Server(plain, root, "-j", "1") as server, server.connect() as connection:
        connection.get("/x.txt")
        before = server.resident()
        for i in range(300):
            path = "".join("ab"[i >> bit & 1] + "/" for bit in range(9))
            assert connection.get(f"/{path}x.txt").status == 401
        assert server.resident() - before < 20 << 20


def test_a_guard_that_was_replaced_is_forgotten(plain, root):
    lines = "".join(f"user{n}:{HASHES['md5crypt']}\n" for n in range(10_000))
    with Server(plain, root, "-j", "1") as server, server.connect() as connection:

        def replace(turn):
            for i in range(20):
                root.write(f"{i}/x.txt", b"x")
                write(root, f"realm {turn}\n{lines}", "new")
                (root.path / f"old{turn}.{i}").hardlink_to(root.path / "new")  # so that no inode is used again
                (root.path / "new").replace(root.path / f"{i}/.htaccess")
            for i in range(20):
                eventually(lambda: f"realm {turn}" in (connection.get(f"/{i}/x.txt")["WWW-Authenticate"] or ""))
            return server.resident()

        before = [replace(turn) for turn in range(2)][-1]
        assert [replace(turn) for turn in range(2, 5)][-1] - before < 8 << 20  # each turn writes 9 MB


def test_pages_for_errors_of_a_guarded_site_are_guarded(build, root):
    root.write("404.html", b"inside")
    write(root, "all\nann:" + HASHES["md5crypt"], ".htaccess_global")
    with Server(build, root, "-j", "1") as server:
        assert server.get("/.hidden").status == 404 and b"inside" not in server.get("/.hidden").body
        assert server.get("/none", basic("ann")).body == b"inside"


def test_a_file_for_which_there_is_no_room_in_the_cache_is_refused_with_a_page(build, root):
    """The page takes its place."""
    for n in range(300):  # more than the cache keeps
        root.write(f"{n}.bin", b"x")
    for n in range(20):
        root.write(f"d/{n}.bin", b"secret")
    root.write("403.html", b"no")
    write(root, "", "d/.htaccess")
    with Server(build, root, "-j", "1", "--limit", "cache=1M") as server, server.connect() as c:
        for n in 2 * [*range(300)]:
            assert c.get(f"/{n}.bin").status == 200
        for n in range(20):
            response = c.get(f"/d/{n}.bin")
            assert response.status == 403 and response.body == b"no"


def test_what_is_in_a_guarded_directory_cannot_be_told(build):
    root = guarded("realm\nann:" + HASHES["md5crypt"])
    root.write("_redirects", b"/rewritten/* /d/:splat 200\n")
    with Server(build, root, "-j", "1") as server:
        for path in ("/d/sub", "/d/none", "/rewritten/file.txt", "/rewritten/none", "/rewritten/sub", "/d/file.txt/x"):
            assert server.get(path).status == 401, path


def test_the_log_counts_the_wait(build):
    with Server(build, guarded("realm\nann:" + SLOW), "-j", "1", "--log", "json") as server:
        server.get("/d/file.txt", basic("ann"))
        eventually(lambda: server.lines)
    assert json.loads(server.lines[0])["seconds"] > 0.03


@pytest.mark.tcp
def test_who_guesses_and_goes_holds_up_nobody(build):
    with Server(build, guarded("realm\nann:" + SLOW), "-j", "1") as server:
        for i in range(GUESSES):
            connection = server.connect()
            connection.send(f"GET /d/file.txt HTTP/1.1\r\nHost: x\r\n{basic('ann', str(i))}\r\n\r\n".encode())
            connection.reset()
        before = server.cpu_seconds()
        assert eventually(lambda: server.get("/d/file.txt", basic("ann")).status == 200)
        assert server.cpu_seconds() - before < 20


# --- private keys ---

KEY = b"-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\n"
TEXT = b"# certificates of authorities\n"
MOST = 1 << 20  # bytes that are searched


def padded(length, key=KEY):
    return (TEXT * (length // len(TEXT) + 1))[: length - len(key)] + key


KEYS = {
    "short.pem": KEY,
    "SHORT.KEY": KEY,
    "kept.pem": padded(65536),
    "long.pem": padded(65537),
    "longest.key": padded(MOST),
    "too-long.pem": padded(MOST + 1),
    "too-long-to-tell.PEM": padded(MOST + 1, b""),
    "copy.pem.gz": gzip.compress(KEY),
    "copy.key.br": b"x",
    "old.pem~": KEY,
    "old.key.bak": padded(100_000),
    "old.pem.OLD": KEY,
    "copy.pem.GZ": KEY,
    "copy.key.gz.bak~": KEY,
    "pgp.key": b"-----BEGIN PGP PRIVATE KEY BLOCK-----\n",
}
CERTIFICATES = {"short.pem": TEXT, "long.pem": padded(300_000, b""), "longest.key": padded(MOST, b""), "page.html": KEY, "pem": KEY}


@pytest.mark.parametrize("name", KEYS)
def test_a_private_key_is_never_content(build, name):
    """However it is asked for, and whatever leads to it, though everybody may read the file."""
    rules = f"/rule /{name} 200\n/forced /{name} 200!\n/missing/* /{name} 404\n"
    root = Root({name: KEYS[name], "_redirects": rules.encode(), "d/x": b""})
    with Server(build, root, "-j", "1") as server, server.connect() as c:
        for _ in range(2):
            assert c.get("/" + name).status == c.get("/" + name, "Range: bytes=0-9").status == 403
            assert c.get("/" + name, "Range: bytes=-9").status == c.get("/" + name, "If-None-Match: *").status == 403
            assert c.get("/" + name, "Accept-Encoding: gzip, br").status == 403
            assert c.get("/" + name, method="HEAD").status == 403
            for path, status in (("/rule", 403), ("/forced", 403), ("/missing/x", 404)):
                answer = c.get(path)
                assert answer.status == status and b"PRIVATE" not in answer.body

        def told():
            return [line for line in server.errors if "cannot be searched for a private key" in line]

        if name.startswith(("too-long", "copy")):
            eventually(told)
            assert len(told()) == 1, server.errors
        else:
            assert not told(), server.errors
    root.remove()


def test_a_file_with_such_a_name_and_no_key_is_served(build):
    root = Root(CERTIFICATES)
    with Server(build, root, "-j", "1") as server, server.connect() as c:
        for name, content in CERTIFICATES.items():
            for _ in range(2):
                assert c.get("/" + name).body == content
        root.write("long.pem", padded(300_000))  # from now on there is one
        assert eventually(lambda: c.get("/long.pem").status == 403)
    root.remove()


def test_a_key_is_found_when_there_is_no_room_in_the_cache(build):
    root = Root({"long.pem": padded(900_000), "good.pem": padded(900_000, b""), "big.bin": bytes(5_000_000)})
    with Server(build, root, "-j", "1", "--limit", "cache=1M") as server, server.connect() as c:
        assert c.get("/big.bin").status == 200
        assert c.get("/long.pem").status == 403 and c.get("/good.pem").status == 200
    root.remove()
