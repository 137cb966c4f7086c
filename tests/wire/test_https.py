"""HTTPS: certificates and their names, negotiation, tickets, and clients that violate TLS."""

import contextlib
import os
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

import pytest

from gatling import Connection, Root, Server, certificate, eventually, runnable, trusting, unprivileged
from http2 import END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, WINDOW_UPDATE, Http2, frame, request, settings
from served import BIG, SMALL

RSA = ("rsa:2048",)
FLAGS = ("-j", "1", "-n", "--tls-port", "0")
HELLO = 22  # the content type of a record of the handshake


class Tls(Server):
    """A server with its own certificates; connect() does the handshake."""

    def connect(self, *trusted, name="localhost", session=None, **context):
        return Connection(("127.0.0.1", self.tls_port), tls=trusting(*trusted, **context), name=name, session=session)

    def plain(self):
        return Connection(("127.0.0.1", self.plain_port))

    def raw(self):
        return Connection(("127.0.0.1", self.tls_port))


def install(path, cert, key, mode=0o640):
    """Writes a file with key and certificate as a careful owner would: at once, and readable only
    for the server."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_bytes(key.read_bytes() + cert.read_bytes())
    fresh.chmod(mode)
    shutil.chown(fresh, 65534, 65534)
    fresh.rename(path)


def names(connection):
    """Returns the names in the certificate that was shown."""
    text = ssl.DER_cert_to_PEM_cert(connection.socket.getpeercert(True))
    shown = subprocess.run(["openssl", "x509", "-noout", "-ext", "subjectAltName"], input=text, text=True, capture_output=True, check=True)
    return shown.stdout.splitlines()[1].strip()


@pytest.fixture
def secure(first_build, files):
    cert, key = certificate()
    with Tls(first_build, files, *FLAGS, "--cert", cert, "--key", key) as server:
        yield server


@pytest.fixture
def site():
    """A root with certificates in it."""
    root = Root({"index.html": b"hello"})
    install(root.path / "server.pem", *certificate("DNS:localhost"))
    install(root.path / "www.example.org.pem", *certificate("DNS:also.example.org"))
    install(root.path / "wild.pem", *certificate("DNS:*.example.net"))
    yield root
    root.remove()


# --- names ---


@pytest.mark.parametrize(
    "asked,shown",
    [
        ("localhost", "DNS:localhost"), ("www.example.org", "DNS:also.example.org"), ("ALSO.example.org", "DNS:also.example.org"),
        ("a.example.net", "DNS:*.example.net"), ("a.b.example.net", "DNS:localhost"), ("example.net", "DNS:localhost"),
        ("unknown.example", "DNS:localhost"), (None, "DNS:localhost"),
    ],
)  # fmt: skip
def test_the_certificate_is_that_for_the_name(first_build, site, asked, shown):
    with Tls(first_build, site, *FLAGS) as server, server.connect(name=asked) as c:
        assert names(c) == shown and c.get("/").body == b"hello"


@pytest.mark.parametrize("host", ["127.0.0.2", "127.0.0.3", "::1"])
def test_a_client_that_names_no_server_gets_the_certificate_for_the_address(first_build, files, host):
    """Clients that are given an address do so."""
    pairs = [certificate("DNS:localhost"), certificate("IP:127.0.0.4"), certificate("DNS:two.example,IP:127.0.0.2"), certificate("IP:127.0.0.3,IP:::1")]
    flags = [word for cert, key in pairs for word in ("--cert", cert, "--key", key)]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    context = ssl.create_default_context()
    for cert, _ in pairs:
        context.load_verify_locations(cert)
    with Tls(first_build, files, *FLAGS, *flags, address=()) as server:
        # with a context that checks it, the name is compared with the certificate; an address is not sent
        with Connection((host, server.tls_port), family, tls=context, name=host) as c:
            assert c.get("/small.bin", host="localhost").body == SMALL
        with Connection((host, server.tls_port), family, tls=trusting(), name="unknown.example") as c:
            assert names(c) == "DNS:localhost"


def test_behind_a_translated_address_the_first_certificate_for_one_is_given(first_build, files):
    """The server sees a private address, not the public one that the client has connected to."""
    pairs = [certificate("DNS:localhost"), certificate("IP:192.0.2.1"), certificate("IP:192.0.2.2")]
    flags = [word for cert, key in pairs for word in ("--cert", cert, "--key", key)]
    with Tls(first_build, files, *FLAGS, *flags) as server, server.connect(name=None) as c:
        assert names(c) == "IP Address:192.0.2.1"


def test_an_unknown_name_is_refused_if_that_is_wanted(first_build, site):
    with Tls(first_build, site, *FLAGS, "--strict-sni") as server:
        with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME"):
            server.connect(name="unknown.example")
        for name in ("also.example.org", None):
            with server.connect(name=name) as c:
                assert c.get("/").status == 200


def test_a_directory_of_certbot_has_a_certificate_for_each_name(first_build, files):
    live = Root({"README": b"certbot writes one"}).path
    for name in ("one.example", "two.example"):
        cert, key = certificate(f"DNS:{name}")
        (live / name).mkdir()
        (live / name / "fullchain.pem").symlink_to(cert)
        (live / name / "privkey.pem").symlink_to(key)
    with Tls(first_build, files, *FLAGS, "--cert-dir", live) as server:
        for name in ("one.example", "two.example"):
            with server.connect(name=name) as c:
                assert names(c) == f"DNS:{name}"


def test_keys_of_all_formats_are_read_after_one_another(first_build, files):
    live, issuer = Root({}).path, certificate("DNS:issuer")[0].read_bytes()
    kinds = {"ec": ("ec", "-pkeyopt", "ec_paramgen_curve:P-256"), "rsa": RSA, "ed25519": ("ed25519",)}
    for name in ("ec", "rsa", "ed25519", "traditional.ec", "traditional.rsa", "again.ec", "again.rsa"):
        cert, key = certificate(f"DNS:{name}", kinds[name.rpartition(".")[2]])
        (live / name).mkdir()
        (live / name / "fullchain.pem").write_bytes(cert.read_bytes() + issuer)
        form = ["-traditional"] if name.startswith("traditional") else []
        written = subprocess.run(["openssl", "pkey", *form, "-in", key], check=True, capture_output=True)
        (live / name / "privkey.pem").write_bytes(written.stdout)
    with Tls(first_build, files, *FLAGS, "--cert-dir", live) as server:
        for directory in live.iterdir():
            with server.connect(name=directory.name) as c:
                assert names(c) == f"DNS:{directory.name}"


@pytest.mark.parametrize("in_one_file", [False, True])
def test_keys_of_both_kinds_stand_side_by_side(first_build, files, in_one_file):
    pairs = [certificate("DNS:localhost,DNS:a"), certificate("DNS:a,DNS:LOCALHOST,DNS:a", RSA)]
    flags = [word for cert, key in pairs for word in ("--cert", cert, "--key", key)]
    if in_one_file:
        flags = ["--cert", private("both.pem", b"".join(path.read_bytes() for pair in pairs for path in pair))]
    with Tls(first_build, files, *FLAGS, *flags) as server:
        for kind in ("ECDSA", "RSA"):
            context = trusting()
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.set_ciphers(f"ECDHE-{kind}-AES128-GCM-SHA256")
            with Connection(("127.0.0.1", server.tls_port), tls=context) as c:
                assert c.get("/small.bin").body == SMALL


# --- what is wrong at the start ---


def start(build, root, *flags):
    return subprocess.run([runnable(build), "-c", root, "-p", "0", "-i", "127.0.0.1", *FLAGS, *flags],
                          capture_output=True, text=True, timeout=20, check=False, **unprivileged())  # fmt: skip


def private(name, content=b"", mode=0o644):
    """Writes a file outside the served directory. Returns its path."""
    return Root({}).write(name, content, mode)


def wrong_certificates():
    cert, key = certificate()
    expired, its_key = certificate("DNS:old", expired=True)
    command = ["openssl", "ec", "-in", key, "-aes128", "-passout", "pass:x"]
    encrypted = private("encrypted.pem", subprocess.run(command, check=True, capture_output=True).stdout)
    unreadable = private("unreadable.pem", key.read_bytes(), 0o600)
    half = cert.read_bytes()[: len(cert.read_bytes()) // 2]
    half_chain = private("half-chain.pem", cert.read_bytes() + half)
    two_keys = private("two-keys.pem", key.read_bytes() + b"-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n")
    return {
        "the key of another": (["--cert", cert, "--key", its_key], cert, "does not belong"),
        "no key": (["--cert", cert], cert, "no private key"),
        "no certificate": (["--cert", key], key, "no certificate"),
        "half a chain": (["--cert", half_chain, "--key", key], half_chain, "certificate 2 in it cannot be read"),
        "half a key": (["--cert", cert, "--key", two_keys], cert, "a private key of it cannot be read"),
        "expired": (["--cert", expired, "--key", its_key], expired, "expired"),
        "encrypted": (["--cert", cert, "--key", encrypted], cert, "encrypted"),
        "unreadable": (["--cert", cert, "--key", unreadable], unreadable, "Permission denied"),
        "not there": (["--cert", "/nonexistent/cert.pem"], "/nonexistent/cert.pem", "No such file"),
        "no directory": (["--cert-dir", "/nonexistent"], "/nonexistent", "No such file"),
        "an empty directory": (["--cert-dir", Root({}).path], "no certificate", "put NAME/fullchain.pem"),
        "none at all": (["-e"], "no certificate", "server.pem"),
    }


def test_what_is_wrong_with_a_certificate_is_said_and_http_is_served(first_build, files):
    for name, (flags, named, why) in wrong_certificates().items():
        with Server(first_build, files, *FLAGS, "--tls-port", "0", *flags) as server:
            assert server.get("/index.html").status == 200, name
            assert any(str(named) in line and why in line for line in server.errors), (name, server.errors)
            assert len(server.errors) <= 2 and all(line.startswith("gatling: ") for line in server.errors), server.errors
            with socket.create_connection(("127.0.0.1", server.tls_port)) as c:
                if name == "expired":  # browsers warn; clients that do not check are served
                    names_of_it = trusting().wrap_socket(c, server_hostname="old")
                    names_of_it.close()
                else:
                    with pytest.raises(ssl.SSLError):
                        trusting().wrap_socket(c, server_hostname="localhost")


def test_a_certificate_that_comes_late_is_taken_up(first_build, files):
    cert, key = certificate()
    directory = Root({})
    with Tls(first_build, files, *FLAGS, "--cert-dir", directory.path) as server:
        assert "no HTTPS yet" in server.errors[0] and server.plain_port
        for name, source in (("privkey.pem", key), ("fullchain.pem", cert)):
            directory.write(f"localhost/{name}", source.read_bytes())
        eventually(lambda: serves(server))
        assert len(server.errors) == 1


def serves(server):
    try:
        return server.get("/index.html").status == 200
    except (ssl.SSLError, OSError):
        return False


def test_a_certificate_that_expires_soon_is_said(first_build, files):
    cert, key = certificate("DNS:soon", days=10, begun=60)
    with Tls(first_build, files, *FLAGS, "--cert", cert, "--key", key) as server:
        assert server.get("/index.html").status == 200
        (line,) = server.errors
        assert re.match(rf"gatling: {cert}: the certificate expires: \d{{4}}-.* UTC: renew it", line)


def test_one_of_few_days_is_said_when_a_third_of_them_is_left(first_build, files):
    cert, key = certificate("DNS:six-days", days=4, begun=2)
    late, its_key = certificate("DNS:late", days=1, begun=5)
    with Tls(first_build, files, *FLAGS, "--cert", cert, "--key", key, "--cert", late, "--key", its_key) as server:
        assert server.get("/index.html").status == 200
        (line,) = server.errors
        assert line.startswith(f"gatling: {late}: the certificate expires: ")


def test_of_two_certificates_for_a_name_the_valid_one_is_shown(first_build, files):
    """As certbot leaves them: example.com, abandoned, and example.com-0001."""
    directory = Root({})
    for name, expired in (("a", True), ("b", False)):
        cert, key = certificate("DNS:localhost,DNS:two", expired=expired)
        directory.write(f"{name}/fullchain.pem", cert.read_bytes())
        directory.write(f"{name}/privkey.pem", key.read_bytes())
    with Tls(first_build, files, *FLAGS, "--cert-dir", directory.path) as server:
        valid = ssl.PEM_cert_to_DER_cert((directory.path / "b/fullchain.pem").read_text())
        for name in ("two", "other"):
            with server.connect(name=name) as c:
                assert c.socket.getpeercert(binary_form=True) == valid
        assert "has expired" in server.errors[0] and len(server.errors) == 1


def test_when_a_certificate_expires_another_one_of_its_names_is_shown(first_build, files):
    begun = time.time()
    pairs = [certificate("DNS:localhost,DNS:heirs", days=days, begun=1) for days in (5 / 86400, 2)]
    first, heir = (ssl.PEM_cert_to_DER_cert(cert.read_text()) for cert, _ in pairs)
    flags = [flag for cert, key in pairs for flag in ("--cert", cert, "--key", key)]
    with Tls(first_build, files, *FLAGS, *flags) as server:

        def shown():
            with server.connect(name="heirs") as c:
                return c.socket.getpeercert(binary_form=True)

        assert shown() == first or time.time() > begun + 5
        eventually(lambda: shown() == heir)


@pytest.mark.parametrize("what,why", [("key", "no certificate in it"), ("half", "certificate 2 in it cannot be read"),
                                      ("/nonexistent", "No such file"), ("/etc", "it is not a file")])  # fmt: skip
def test_without_the_authorities_of_clients_it_does_not_start(first_build, files, what, why):
    cert, key = certificate()
    half = private("half.pem", cert.read_bytes() + cert.read_bytes()[:200])
    file = {"key": key, "half": half}.get(what, what)
    done = start(first_build, files.path, "--cert", cert, "--key", key, "--client-ca", file)
    assert done.returncode == 1 and why in done.stderr and done.stderr.count("\n") == 1


def test_a_key_that_everybody_may_read_is_not_used(first_build, site):
    (site.path / "www.example.org.pem").chmod(0o644)
    with Tls(first_build, site, *FLAGS) as server:
        assert "www.example.org.pem: everybody may read the private key in it (chmod o-r)" in server.errors[0]
        assert shown(server) == "DNS:localhost"


def test_without_a_certificate_there_is_no_https(first_build, files, root):
    for directory, flags in ((files, ()), (root, ("-E",))):
        install(root.path / "server.pem", *certificate())
        with Server(first_build, directory, *FLAGS, *flags) as server:
            assert not server.tls_port and server.get("/index.html").status == 200


@pytest.mark.parametrize("flags", [(), ("-e",)])
def test_a_port_that_is_taken_matters_only_if_https_was_asked_for(first_build, site, flags):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        if flags:
            done = start(first_build, site.path, "--tls-port", port, *flags)
            assert done.returncode == 1 and port in done.stderr
            return
        words = [runnable(first_build), "-c", site.path, "-p", "0", "-i", "127.0.0.1", *FLAGS, "--tls-port", port]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, **unprivileged()) as process:
            said = [process.stderr.readline() for _ in range(3)]
            process.terminate()
        assert port in said[0] and "without HTTPS" in said[1] and "https://" not in said[2]


# --- certificates that change ---


def shown(server):
    with server.connect() as c:
        return names(c)


def test_a_new_certificate_is_taken_up_and_connections_go_on(first_build, site):
    with Tls(first_build, site, *FLAGS) as server, server.connect() as before:
        assert names(before) == "DNS:localhost"
        install(site.path / "server.pem", *certificate("DNS:localhost,DNS:new"))
        eventually(lambda: shown(server) == "DNS:localhost, DNS:new")
        install(site.path / "fresh.example.pem", *certificate("DNS:fresh"))

        def fresh():
            with server.connect(name="fresh.example") as c:
                return names(c) == "DNS:fresh"

        eventually(fresh)
        assert before.get("/").body == b"hello"


def test_a_broken_certificate_is_reported_once_and_the_last_good_one_stays(first_build, site):
    with Tls(first_build, site, *FLAGS) as server:
        (site.path / "server.pem").write_bytes(b"not a certificate\n")
        eventually(lambda: server.errors)
        time.sleep(2.5)  # tests that no more is written
        assert len(server.errors) == 1 and "server.pem" in server.errors[0] and "stay" in server.errors[0]
        assert shown(server) == "DNS:localhost"
        install(site.path / "server.pem", *certificate("DNS:again"))
        eventually(lambda: shown(server) == "DNS:again")


def test_a_broken_certificate_does_not_keep_others_from_being_renewed(first_build, site):
    half = [*certificate("DNS:half.example"), certificate("DNS:half.example", RSA)[1]]  # none of it is used
    expired, renewed = certificate("DNS:old", expired=True), certificate("DNS:localhost,DNS:renewed")
    with Tls(first_build, site, *FLAGS) as server:
        install(site.path / "www.example.org.pem", *expired)
        (site.path / "wild.pem").chmod(0o644)  # now it would be served
        path = site.write("half.pem", b"".join(path.read_bytes() for path in half), 0o640)
        shutil.chown(path, 65534, 65534)
        install(site.path / "server.pem", *renewed)
        eventually(lambda: shown(server) == "DNS:localhost, DNS:renewed")
        assert ["expired" in line or "chmod" in line or "belong" in line for line in server.errors] == [True, True, True]
        for name, kept in (("www.example.org", "DNS:also.example.org"), ("a.example.net", "DNS:*.example.net"),
                           ("half.example", "DNS:localhost, DNS:renewed")):  # fmt: skip
            with server.connect(name=name) as c:
                assert names(c) == kept
        (site.path / "www.example.org.pem").unlink()
        eventually(lambda: of_www(server) != "DNS:also.example.org")


def of_www(server):
    with server.connect(name="www.example.org") as c:
        return names(c)


def fill(directory, pair):
    (directory / "www").mkdir(parents=True)
    for name, path in zip(("fullchain.pem", "privkey.pem"), pair, strict=True):
        (directory / "www" / name).symlink_to(path)


def test_a_directory_that_is_removed_does_not_take_its_certificates_out_of_use(first_build, files):
    live, default = Root().path / "live", certificate()
    fill(live, certificate("DNS:www.example.org"))
    with Tls(first_build, files, *FLAGS, "--cert", default[0], "--key", default[1], "--cert-dir", live) as server:
        shutil.rmtree(live)
        eventually(lambda: server.errors)
        assert f"gatling: cannot use certificate {live}: No such file or directory" in server.errors[0]
        time.sleep(1.5)  # tests that nothing changes
        assert of_www(server) == "DNS:www.example.org"


@pytest.mark.parametrize("link", [True, False])
def test_a_directory_that_another_one_replaces_is_looked_at_anew(first_build, files, place, link):
    """By rename, or by a symbolic link that then leads elsewhere: ways to publish many files at
    once."""
    live, default = place / "live", certificate()
    for name in ("first", "second"):
        fill(place / name, certificate(f"DNS:www.example.org,DNS:{name}.example.org"))
    if link:
        live.symlink_to("first")
        (place / "new").symlink_to("second")
    else:
        (place / "first").rename(live)
    with Tls(first_build, files, *FLAGS, "--cert", default[0], "--key", default[1], "--cert-dir", live) as server:
        assert of_www(server) == "DNS:www.example.org, DNS:first.example.org"
        if not link:
            live.rename(place / "first")
        (place / ("new" if link else "second")).rename(live)
        eventually(lambda: of_www(server) == "DNS:www.example.org, DNS:second.example.org", 10)


@pytest.mark.parametrize("name", ["server.pem", "site.key", "dir/privkey.pem"])
def test_a_private_key_is_not_served_whoever_may_read_it(first_build, files, name):
    _, key = certificate()
    root = Root({"public.pem": certificate()[0].read_bytes(), name: key.read_bytes()})
    with Server(first_build, root, "-E") as server:
        assert server.get(f"/{name}").status == 403 and server.get("/public.pem").status == 200


@pytest.mark.parametrize("how", ["server.pem", "www.example.org.pem", "--cert", "--key", "--cert-dir"])
def test_what_tls_reads_is_not_served_by_any_name(first_build, how):
    """Not by a hard link or a symbolic one, whatever its name says; what it no longer reads is content again."""
    cert, key = certificate()
    root = Root({"index.html": b"hello", "d/other.txt": b"content", "tls/a/x": b""})
    both = key.read_bytes() + cert.read_bytes()
    file, flags = {"--cert": ("mine.dat", ["--cert", f"{root.path}/mine.dat"]),
                   "--key": ("mine.dat", ["--cert", cert, "--key", f"{root.path}/mine.dat"]),
                   "--cert-dir": ("tls/a/privkey.pem", ["--cert-dir", f"{root.path}/tls"])}.get(how, (how, ["--https"]))  # fmt: skip
    root.write(file, both)
    root.write("tls/a/fullchain.pem", cert.read_bytes())
    os.link(root.path / file, root.path / "hard.txt")
    os.symlink(file, root.path / "soft.txt")
    with Server(first_build, root, *FLAGS, *flags) as server, Connection(("127.0.0.1", server.plain_port)) as c:
        for name in (file, "hard.txt", "soft.txt"):
            for method in ("GET", "HEAD"):
                answer = c.get("/" + name, "Range: bytes=0-5", method=method)
                assert answer.status == 403 and b"PRIVATE" not in answer.body, name
        eventually(lambda: any("hard.txt: a key or certificate of HTTPS, so it is not served" in line for line in server.errors))
        os.symlink(root.path / "d/other.txt", root.path / "new.txt")
        assert c.get("/new.txt").body == b"content"
        if how == "server.pem":
            os.replace(root.path / "d/other.txt", root.path / "server.pem")  # no key: it is not used
            assert eventually(lambda: c.get("/server.pem").body == b"content")
    root.remove()


def test_a_file_of_the_site_that_becomes_one_of_tls_is_served_no_more(first_build):
    """Though it has not changed, and is in memory."""
    cert, key = certificate()
    root = Root({"page.txt": key.read_bytes() + cert.read_bytes()})
    with Server(first_build, root, *FLAGS, "--https") as server, Connection(("127.0.0.1", server.plain_port)) as c:
        assert c.get("/page.txt").status == 200
        os.symlink("page.txt", root.path / "www.example.org.pem")
        assert eventually(lambda: c.get("/page.txt").status == 403)
    root.remove()


def test_no_request_fails_while_certificates_change(first_build, site):
    """Waits for each new certificate; REPLACEMENTS=100 in the environment takes minutes."""
    pairs = [certificate("DNS:localhost"), certificate("DNS:localhost,DNS:other")]
    with Tls(first_build, site, "-j", "2", "-n", "--tls-port", "0") as server:
        ended, failed, answered = threading.Event(), [], 0

        def load():
            nonlocal answered
            try:
                while not ended.is_set():
                    with server.connect() as c:
                        for _ in range(3):
                            assert c.get("/").body == b"hello"
                            answered += 1
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=load) for _ in range(2)]
        for thread in threads:
            thread.start()
        for n in range(int(os.environ.get("REPLACEMENTS", "4"))):
            install(site.path / "server.pem", *pairs[n % 2 ^ 1])
            eventually(lambda expected=("DNS:localhost, DNS:other", "DNS:localhost")[n % 2]: shown(server) == expected)
        ended.set()
        for thread in threads:
            thread.join()
        assert not failed and answered > 20


# --- what is agreed upon ---


def test_old_versions_and_weak_ciphers_are_refused(secure):
    for flags in (["-tls1_1"], ["-tls1_2", "-cipher", "AES128-SHA"], ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA256"]):
        command = ["openssl", "s_client", "-connect", f"127.0.0.1:{secure.tls_port}", *flags, "-cipher" if len(flags) < 2 else "-quiet"]
        command += ["ALL:@SECLEVEL=0"] if len(flags) < 2 else []
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode != 0, flags


@pytest.mark.parametrize("offered,chosen", [(("h2", "http/1.1"), "h2"), (("http/1.1",), "http/1.1"), (("http/1.1", "h2"), "h2")])
def test_alpn_chooses_the_protocol(secure, offered, chosen):
    with secure.connect(alpn=offered) as c:
        assert c.socket.selected_alpn_protocol() == chosen


def test_who_offers_only_unknown_protocols_is_refused(secure):
    with pytest.raises(ssl.SSLError, match="(?i)no.application.protocol"):
        secure.connect(alpn=("gopher",))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=lambda v: v.name)
def test_a_session_is_resumed_by_any_worker(first_build, files, version):
    """With that many connections, each worker is very likely to be reached."""
    cert, key = certificate()
    context = trusting()
    context.minimum_version = context.maximum_version = version
    with Tls(first_build, files, "-j", "2", "-n", "--tls-port", "0", "--cert", cert, "--key", key) as server:
        session = None
        for n in range(20):
            with Connection(("127.0.0.1", server.tls_port), tls=context, session=session) as c:
                assert c.get("/small.bin").body == SMALL
                assert c.socket.session_reused == (n > 0)
                if version == ssl.TLSVersion.TLSv1_3 and session:
                    assert c.socket.session.id != session.id  # a new ticket, to be used once
                session = c.socket.session


def test_a_session_is_resumed_after_the_certificate_has_changed(first_build, site):
    context = trusting()
    with Tls(first_build, site, *FLAGS) as server:
        with Connection(("127.0.0.1", server.tls_port), tls=context) as c:
            c.get("/")
            session = c.socket.session
        install(site.path / "server.pem", *certificate("DNS:localhost,DNS:new"))
        eventually(lambda: shown(server) == "DNS:localhost, DNS:new")
        with Connection(("127.0.0.1", server.tls_port), tls=context, session=session) as c:
            assert c.get("/").body == b"hello" and c.socket.session_reused


def test_clients_need_a_certificate_of_the_authority_if_that_is_wanted(first_build, files):
    cert, key = certificate()
    own, own_key = certificate("DNS:client")
    with Tls(first_build, files, *FLAGS, "--cert", cert, "--key", key, "--client-ca", own) as server:
        context = trusting()
        context.load_cert_chain(own, own_key)
        with Connection(("127.0.0.1", server.tls_port), tls=context) as c:
            assert c.get("/small.bin").body == SMALL
        other = trusting()
        other.load_cert_chain(cert, key)
        for stranger in (trusting(), other):
            with pytest.raises((ssl.SSLError, ConnectionError)), Connection(("127.0.0.1", server.tls_port), tls=stranger) as c:
                c.get("/small.bin")


class Authority:
    """An authority that issues certificates."""

    def __init__(self, directory):
        self.directory, self.serial = directory, 16
        self.run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=CA", "-keyout", "ca.key", "-out", "ca.pem")

    def run(self, *command):
        subprocess.run(["openssl", *map(str, command)], cwd=self.directory, check=True, capture_output=True)

    def issue(self, name, *key, extensions="", by="ca", days=30):
        """Makes NAME.pem, with its key."""
        self.serial += 1
        self.run("req", "-new", "-newkey", *key, "-nodes", "-subj", "/CN=x", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        (self.directory / "ext").write_text("subjectAltName=DNS:localhost\n" + extensions)
        self.run("x509", "-req", "-in", f"{name}.csr", "-CA", f"{by}.pem", "-CAkey", f"{by}.key", "-set_serial", self.serial, "-days", days,
                 "-extfile", "ext", "-out", f"{name}.crt")  # fmt: skip
        (self.directory / f"{name}.pem").write_bytes(b"".join((self.directory / f"{name}.{part}").read_bytes() for part in ("key", "crt")))


EC, RSA_KEY = ("ec", "-pkeyopt", "ec_paramgen_curve:P-256"), ("rsa:2048",)


@pytest.fixture
def authority_(tmp_path):
    return Authority(tmp_path)


def put(site, name, content):
    (site.path / name).write_bytes(content)
    (site.path / name).chmod(0o640)
    shutil.chown(site.path / name, 65534, 65534)


def test_a_certificate_without_that_of_its_issuer_is_said(first_build, root, authority_):
    """A certificate from a public authority, signed by an intermediate one; that of a private
    authority does not tell where its issuer is."""
    elsewhere = "authorityInfoAccess=caIssuers;URI:http://ca.example/ca.der\n"
    authority_.issue("private", *EC)
    for name in ("alone", "whole"):
        authority_.issue(name, *EC, extensions=elsewhere)
        put(root, name + ".pem", (authority_.directory / f"{name}.pem").read_bytes())
    put(root, "private.pem", (authority_.directory / "private.pem").read_bytes())
    put(root, "whole.pem", b"".join((authority_.directory / name).read_bytes() for name in ("whole.pem", "ca.pem")))
    with Tls(first_build, root, *FLAGS) as server:
        assert server.errors == [
            "gatling: alone.pem: the certificate of its issuer is missing, so many clients do not trust it: append that, or use fullchain.pem"
        ]


def test_an_issuer_of_several_is_sent_with_each(first_build, root, authority_):
    """The server has it in memory once."""
    hosts = "a.example", "b.example", "c.example"
    authority_.issue("between", *EC, extensions="basicConstraints=CA:TRUE\n")
    for host in hosts:
        authority_.issue(host, *EC, by="between")
        put(root, f"{host}.pem", b"".join((authority_.directory / name).read_bytes() for name in (f"{host}.pem", "between.crt")))
    with Tls(first_build, root, *FLAGS) as server:
        for host in hosts:
            command = ["openssl", "s_client", "-servername", host, "-CAfile", authority_.directory / "ca.pem", "-verify_return_error"]
            subprocess.run([*command, "-connect", f"127.0.0.1:{server.tls_port}"], stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=True)


def test_a_certificate_whose_issuers_has_expired_is_said(first_build, root, authority_):
    authority_.issue("between", *EC, extensions="basicConstraints=CA:TRUE\n", days=0)
    authority_.issue("own", *EC, by="between")
    put(root, "server.pem", b"".join((authority_.directory / name).read_bytes() for name in ("own.pem", "between.crt")))
    with Tls(first_build, root, *FLAGS) as server:
        assert server.errors == [
            "gatling: server.pem: the certificate of an issuer has expired, or is not valid yet: "
            "renew the certificate, and install the whole chain that comes with it"]  # fmt: skip


def test_of_two_files_for_the_same_names_a_broken_one_keeps_its_last_good_key(first_build, root):
    keys = Root()
    for name, key in (("a.pem", EC), ("b.pem", RSA_KEY)):
        install(keys.path / name, *certificate("DNS:twins", key=key))

    def kinds(server):
        found = set()
        for algorithm in ("ECDSA+SHA256", "RSA-PSS+SHA256"):
            command = ["openssl", "s_client", "-servername", "twins", "-sigalgs", algorithm, "-connect", f"127.0.0.1:{server.tls_port}"]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False)
            found |= {algorithm} if "Verify return code" in done.stdout and "Server certificate" in done.stdout else set()
        return found

    with Tls(first_build, root, *FLAGS, "--cert", keys.path / "a.pem", "--cert", keys.path / "b.pem") as server:
        assert len(kinds(server)) == 2
        for name in ("b.pem", "a.pem"):
            put(keys, name, b"broken")
            eventually(lambda: [line for line in server.errors if name in line], 10)
            assert len(kinds(server)) == 2


# --- HTTP and HTTPS ---


def test_hsts_is_said_over_https_alone(first_build, site):
    with Tls(first_build, site, *FLAGS, "--hsts", "3600") as server:
        with server.connect() as c, server.plain() as p:
            for path in ("/", "/none"):
                assert c.get(path)["Strict-Transport-Security"] == "max-age=3600"
                assert p.get(path)["Strict-Transport-Security"] is None


def test_clients_are_sent_to_https(first_build, site):
    site.write(".well-known/acme-challenge/token", b"proof")
    with Tls(first_build, site, *FLAGS, "--https-redirect") as server, server.plain() as p, server.connect() as c:
        port = server.tls_port
        for host in ("localhost", "localhost:1", "LOCALHOST"):
            response = p.get("/a%20b?c=d", host=host)
            assert response.status == 301 and response["Location"] == f"https://localhost:{port}/a%20b?c=d"
        assert p.get("//evil.example/x")["Location"] == f"https://localhost:{port}//evil.example/x"
        assert p.get("/", method="HEAD")["Location"] == f"https://localhost:{port}/"
        p.send(b"GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        assert p.response()["Location"] == f"https://127.0.0.1:{port}/x"
        assert p.get("/.well-known/acme-challenge/token").body == b"proof"
        assert p.get("/.well-known/acme-challenge/none").status == 404
        assert c.get("/").body == b"hello"


WAYS = [
    "/.well-known/acme-challenge/../../secret.html", "/.well-known/acme-challenge/%2e%2e/%2E%2e/secret.html",
    "/.well-known/acme-challenge/../../", "/.well-known/acme-challenge/", "/.well-known/acme-challenge",
    "http://localhost/.well-known/acme-challenge/../../secret.html", "/.well-known/acme-challenge/..//../secret.html",
    "/x/../secret.html", "/.well-known/acme-challenge/%zz",
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_what_is_sent_to_https_is_decided_by_what_is_asked_for(first_build, site, way):
    site.write(".well-known/acme-challenge/token", b"proof")
    site.write("secret.html", b"secret")
    site.write("_redirects", b"/.well-known/acme-challenge/page /secret.html 200\n/* /secret.html 404\n")
    with Tls(first_build, site, *FLAGS, "--https-redirect") as server, server.plain() as p, Http2(server) as h:
        assert p.get(way).status == 301
        p.send(b"GET %s HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" % way.encode())
        assert p.response().status == 301
        if way[0] == "/":
            answer = h.get(way)
            assert answer.status == 301 and b"secret" not in answer.body


def test_below_the_challenges_there_are_files_and_nothing_else_over_plain_http(first_build, site):
    site.write(".well-known/acme-challenge/token", b"proof")
    site.write("404.html", b"secret")
    site.write("_redirects", b"/.well-known/acme-challenge/page /404.html 200\n/* /404.html 404\n")
    with Tls(first_build, site, *FLAGS, "--https-redirect") as server, server.plain() as p:
        for path in ("/.well-known/acme-challenge/token", "/x/../.well-known/./acme-challenge/%74oken", "//.well-known//acme-challenge/token"):
            assert p.get(path).body == b"proof"
        for path in ("page", "none", "token/x"):
            response = p.get("/.well-known/acme-challenge/" + path)
            assert response.status == 404 and b"secret" not in response.body


def test_what_a_uri_cannot_hold_is_encoded_in_a_location(first_build, site):
    site.mkdir("d")
    with Tls(first_build, site, *FLAGS, "--https-redirect") as server, server.plain() as p, server.connect() as c:
        p.send(b'GET /\xe9"<{|}^?<\xe9>&a=[%4]%41 HTTP/1.1\r\nHost: localhost\r\n\r\n')
        expected = f"https://localhost:{server.tls_port}/%E9%22%3C%7B%7C%7D%5E?%3C%E9%3E&a=%5B%254%5D%41"
        assert p.response()["Location"] == expected
        c.send(b"GET /d?<\xe9> HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert c.response()["Location"] == "/d/?%3C%E9%3E"
    with Tls(first_build, site, *FLAGS, "-r", "http://mirror.example/") as server, server.connect() as c:
        c.send(b"GET /none|?<\xe9> HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert c.response()["Location"] == "http://mirror.example/none%7C?%3C%E9%3E"


def test_the_preface_of_http2_means_nothing_where_alpn_has_not_chosen_it(secure):
    with secure.connect() as c:
        c.send(PREFACE + frame(SETTINGS))
        assert c.response().status == 505


def test_a_client_of_the_secure_port_without_tls_is_told_so(secure):
    for request in (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"POST"):
        with secure.raw() as c:
            c.send(request)
            response = c.response()
            assert response.status == 400 and b"https://" in response.body
            c.half_close()
            c.assert_closed()


def test_a_client_of_the_plain_port_with_tls_is_refused(secure):
    with pytest.raises(ssl.SSLError):
        Connection(("127.0.0.1", secure.plain_port), tls=trusting())


# --- odd clients ---


def hello(name="localhost"):
    """Returns a ClientHello."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting().wrap_bio(incoming, outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def test_a_hello_may_come_byte_by_byte(secure):
    """Bytes in it that are letters are not taken for the start of a request."""
    with secure.raw() as c:
        for byte in hello("GET.POST.HEAD.EXAMPLE"):
            c.send(bytes([byte]))
        assert c.socket.recv(1)[0] == HELLO


@pytest.mark.parametrize("count", [127, 128, 16_000])
def test_a_hello_with_more_groups_than_there_are_is_refused(secure, count):
    """OpenSSL would look up each of its key shares in all of them: 70 ms for 64 KB."""

    def sized(octets):
        return struct.pack(">H", len(octets)) + octets

    x25519 = b"\0\x1d"
    shares = x25519 + sized(os.urandom(32)) + b"\xfb\xfb\0\1x" * 6000
    extensions = ((43, b"\2\3\4"), (10, sized(b"\xfa\xfa" * (count - 2) + x25519 + b"\xfb\xfb")), (13, sized(b"\4\3")), (51, sized(shares)))
    fields = b"".join(struct.pack(">H", number) + sized(octets) for number, octets in extensions)
    body = b"\3\3" + os.urandom(32) + b"\0" + sized(b"\x13\1") + b"\1\0" + sized(fields)
    message = struct.pack(">I", 1 << 24 | len(body)) + body
    with secure.raw() as c:
        c.send(b"".join(b"\x16\3\1" + sized(message[at : at + 16384]) for at in range(0, len(message), 16384)))
        if count == 127:
            assert c.socket.recv(1)[0] == HELLO
        else:
            assert c.socket.recv(7, socket.MSG_WAITALL) == b"\x15\3\3\0\2\2\x2f"  # illegal_parameter


@pytest.mark.parametrize("sent", [b"", b"\x16", b"\x16\x03\x01\xff\xff", b"\x16\x03\x01\x02\x00" + b"\x01" + b"\xff" * 600, b"\x80\x2e\x01",
                                  b"\x16\x03\x01\x00\x00" * 50, b"\x15\x03\x03\x00\x02\x02\x28", b"\x00" * 3000])  # fmt: skip
@pytest.mark.parametrize("how", ["close", "reset", "wait"])
def test_what_is_no_handshake_does_no_harm(first_build, files, sent, how):
    cert, key = certificate()
    with Tls(first_build, files, *FLAGS, "-T", "1", "--cert", cert, "--key", key) as server:
        before = server.descriptors()
        for _ in range(3):
            c = server.raw()
            with contextlib.suppress(OSError):
                c.send(sent)
                if how == "wait":
                    c.rest()
            c.reset() if how == "reset" else c.close()
        with server.connect() as c:
            assert c.get("/small.bin").body == SMALL
        eventually(lambda: server.descriptors() <= before)


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\x16\x03\x01\x00\x05hello" + b"\x17\x03\x03\x00\x20" + b"x" * 32])
def test_what_one_client_says_is_not_read_as_said_by_another(secure, said):
    with secure.connect() as good:
        for _ in range(3):
            with secure.raw() as bad:
                bad.send(said)
                bad.rest()
            assert good.get("/small.bin").body == SMALL


def test_an_alert_for_one_client_is_not_sent_to_another(secure):
    """The alert cannot be sent if the connection is reset at the same moment; to achieve this, the
    server is stopped."""
    with secure.connect() as good:
        assert good.get("/small.bin").body == SMALL
        for _ in range(5):
            bad = secure.connect(alpn=("h2",))
            bad.send(PREFACE + frame(SETTINGS, payload=settings(window=1 << 30)) + frame(WINDOW_UPDATE, payload=struct.pack(">I", 1 << 30)))
            bad.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, request("/big.bin")) + frame(HEADERS, END_HEADERS | END_STREAM, 3, request("/big.bin")))
            bad.socket.recv(1)
            secure.signal(signal.SIGSTOP)
            socket.socket.send(bad.socket, b"\x17\x03\x03\x00\x20" + b"x" * 32)
            bad.reset()
            good.send(b"GET /small.bin HTTP/1.1\r\nHost: a\r\n\r\n")
            secure.signal(signal.SIGCONT)
            assert good.response().body == SMALL


def test_a_handshake_that_stalls_is_cut_off(first_build, files):
    cert, key = certificate()
    with Tls(first_build, files, *FLAGS, "-T", "1", "--cert", cert, "--key", key) as server:
        started = time.monotonic()
        with server.raw() as c:
            for byte in hello()[:8]:  # these move no deadline
                c.send(bytes([byte]))
                time.sleep(0.1)
            c.rest()
        assert 0.9 <= time.monotonic() - started < 5


def test_handshakes_do_not_keep_requests_waiting(first_build, files):
    """However many there are, only a few are accepted in a turn of the loop."""
    cert, key = certificate("DNS:localhost", ("rsa:4096",))
    with Tls(first_build, files, *FLAGS, "--cert", cert, "--key", key) as server, server.plain() as p:
        opening = hello()
        crowd = [server.raw() for _ in range(200)]
        for c in crowd:
            c.send(opening)
        p.get("/small.bin")
        answered = sum(readable(c) for c in crowd)
        assert answered < 100
        for c in crowd:
            assert c.socket.recv(1)[0] == HELLO
            c.close()


def readable(connection):
    connection.socket.setblocking(False)
    try:
        return len(connection.socket.recv(1, socket.MSG_PEEK)) > 0
    except BlockingIOError:
        return False
    finally:
        connection.socket.settimeout(20)


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_renegotiation_and_key_updates(secure, version):
    """With TLS 1.2, renegotiation is refused; with TLS 1.3, the key update is done."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{secure.tls_port}", version, "-servername", "localhost"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as client:
        client.stdin.write(b"R\n" if version == "-tls1_2" else b"K\n")
        client.stdin.flush()
        said = b""
        while b"RENEGOTIATING" not in said and b"KEYUPDATE" not in said:
            more = client.stdout.read1()
            assert more, said
            said += more
        client.stdin.write(b"GET /index.html HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        with contextlib.suppress(BrokenPipeError):
            client.stdin.flush()
        while more := client.stdout.read1():  # at the end of its input s_client would not wait for the answer
            said += more
    if version == "-tls1_2":
        assert b"no renegotiation" in said
    else:
        assert b"KEYUPDATE" in said and b"<h1>hello</h1>" in said


def test_early_data_is_not_taken(secure):
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{secure.tls_port}", "-servername", "localhost"]
    session = private("session")
    request = b"GET /index.html HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    subprocess.run([*command, "-ign_eof", "-sess_out", session], input=request, capture_output=True, timeout=20, check=False)
    told = subprocess.run(["openssl", "sess_id", "-in", session, "-noout", "-text"], capture_output=True, check=True).stdout
    assert b"Max Early Data: 0" in told


def records(connection):
    """Returns the lengths of the records that come until the end."""
    lengths, data = [], b""
    while more := connection.socket.recv(65536):
        data += more
        while len(data) >= 5 and len(data) >= 5 + int.from_bytes(data[3:5]):
            lengths.append(int.from_bytes(data[3:5]))
            data = data[5 + lengths[-1] :]
    return lengths


def test_the_first_records_fit_a_segment_and_later_ones_are_large(secure):
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with secure.raw() as c:
        while True:
            with contextlib.suppress(ssl.SSLWantReadError):
                client.do_handshake()
                break
            c.send(outgoing.read())
            incoming.write(c.socket.recv(65536))
        client.write(b"GET /big.bin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        c.send(outgoing.read())
        lengths = [n for n in records(c) if n > 300]  # without tickets and alerts
        assert max(lengths[:9]) < 1448 and max(lengths) > 16384
        assert sum(lengths) > len(BIG)


def test_the_end_of_an_answer_is_told_from_a_cut(secure):
    """close_notify, RFC 8446, section 6.1."""
    for request in (b"GET /big.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", b"BAD\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", secure.tls_port)) as s:
            client = trusting().wrap_socket(s, server_hostname="localhost", suppress_ragged_eofs=False)
            client.sendall(request)
            while client.recv(65536):
                pass
            client.close()


def test_who_never_reads_costs_no_more_than_a_batch(plain, files):
    cert, key = certificate()
    with Tls(plain, files, *FLAGS, "--cert", cert, "--key", key) as server:
        server.connect().close()
        before = server.resident()
        stuck = []
        for _ in range(100):
            context = trusting()
            c = Connection(("127.0.0.1", server.tls_port), receive_buffer=4096, tls=context)
            c.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n" * 5)
            stuck.append(c)
        with server.connect() as c:
            assert c.get("/small.bin").body == SMALL
        assert server.resident() - before < 100 * 150_000
        for c in stuck:
            c.close()
