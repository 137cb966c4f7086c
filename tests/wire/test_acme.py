"""Certificates that are fetched and renewed: --acme."""

import contextlib
import json
import os
import re
import signal
import ssl
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from authority import authority, free_port, made_up_uacme, pretender, trusting_launcher
from gatling import Connection, Root, Server, certificate, children, eventually, runnable, server_of, servers_of, trusting
from test_https import names

pytestmark = [pytest.mark.others, pytest.mark.skipif(os.geteuid() != 0, reason="uacme trusts the authority in a mount namespace of its own")]

NAMES = ("www.example.org", "example.org", "blog.example.net")
GIVEN = "the authority has given a certificate"


class Acme(Server):
    """A server with --acme for the authority at url. The names lead to port. programs: a directory in which uacme is looked
    for first."""

    def __init__(self, build, root, url, port, *flags, directory=None, programs=None):
        self.work = Root().path
        path = [] if programs is None else ["env", f"PATH={programs}:{os.environ['PATH']}"]
        self.directory = directory or self.work / "acme"
        super().__init__(build, root, "--acme=owner@example.org", "--acme-directory", url, "--acme-dir", self.directory, "-p", str(port),
                         "--tls-port", "0", "-u", "nobody", "-n", *flags, launcher=[*trusting_launcher(self.work), *path], as_root=True)  # fmt: skip

    def secure(self, name, root=None):
        """Opens a TLS connection to a name. root: the certificate of an authority to trust
        (PEM)."""
        context = trusting()
        if root:
            context = ssl.create_default_context(cadata=root)
        return Connection(("127.0.0.1", self.tls_port), tls=context, name=name)

    def has(self, name):
        with contextlib.suppress(ssl.SSLError, ConnectionResetError), self.secure(name) as c:
            return names(c) == f"DNS:{name}"

    def said(self, *words):
        return [line for line in self.errors if all(word in line for word in words)]

    def helpers(self):
        """Returns the process that restarts the other one, and that one."""
        first = next(pid for pid in children(self.pid) if Path(f"/proc/{pid}/comm").read_text() == "gatling-acme\n")
        return [first, *children(first)]

    def hurry(self):
        os.kill(self.helpers()[1], signal.SIGHUP)


def sites(*names_of_sites):
    return Root({"index.html": b"root", **{f"{name}/index.html": name.encode() for name in names_of_sites}})


def shown(build, directory):
    done = subprocess.run([runnable(build), "--certificates", "--acme-dir", directory], capture_output=True, text=True, check=True)
    lines = [re.split(r"\s{2,}", line) for line in done.stdout.splitlines()[1:]]
    return [line for line in lines if line[0] != "account"]


def test_sites_get_certificates_and_new_ones_too(first_build):
    root, port = sites(*NAMES, "localhost", "default", "intranet", "127.0.0.1", "a_b.example.org", "printer.local"), free_port()
    (root.path / "alias.example.org").symlink_to("/www.example.org")  # as the server sees it
    (root.path / "outside.example.org").symlink_to("/tmp")
    # a file, a rule and a password of the site do not matter
    root.write("www.example.org/_redirects", b"/* /index.html 200!\n")
    root.write("example.org/.htaccess_global", b"Realm\nnobody:*\n")
    status = free_port()
    with authority(root.path.parent, port) as (url, root_url), \
         Acme(first_build, root, url, port, "--acme-name", "extra.example.org", "--status", str(status)) as server:  # fmt: skip
        authority_root = urllib.request.urlopen(root_url, context=trusting()).read().decode()
        all_names = (*NAMES, "alias.example.org", "extra.example.org")
        eventually(lambda: all(server.has(name) for name in all_names), seconds=60)
        for name in ("www.example.org", "alias.example.org", "blog.example.net"):
            with server.secure(name, authority_root) as c:
                assert c.get("/", host=name).status == 200
        # a site with a certificate is HTTPS only, another site HTTP only
        assert server.get("/", host="www.example.org")["Location"] == f"https://www.example.org:{server.tls_port}/"
        assert server.get("/", host="printer.local").body == b"printer.local"
        with pytest.raises(ssl.SSLError), server.secure("printer.local"):
            pass
        for kind in ("live", "uacme", "results", "."):
            assert (server.directory / kind).stat().st_mode & 0o777 == 0o700
        assert all((server.directory / "live" / name / "privkey.pem").stat().st_mode & 0o777 == 0o600 for name in all_names)
        (root.path / "new.example.org").mkdir()
        server.hurry()  # otherwise it takes up to 20 seconds
        eventually(lambda: server.has("new.example.org"), seconds=60)
        lines = shown(first_build, server.directory)
        assert [line[0] for line in lines] == sorted((*all_names, "new.example.org"))
        assert all(line[2].endswith(GIVEN) for line in lines)
        assert len(server.said("certificates:")) == len(all_names) + 1

        def page(form):
            return urllib.request.urlopen(f"http://127.0.0.1:{status}/{form}").read().decode()

        eventually(lambda: len(json.loads(page("json"))["certificates"]) == len(all_names) + 1)
        eventually(lambda: all(c["good"] and c["until"] > time.time() and c["result"].endswith(GIVEN) for c in json.loads(page("json"))["certificates"]))
        assert 'gatling_certificate_expiry_seconds{name="www.example.org"} ' in page("metrics")
        assert re.search(r"^certificate +www.example.org +20\d\d-\d\d-\d\d$", page("text"), re.MULTILINE)
        assert max(map(len, page("text").splitlines())) <= 80


def test_without_a_certificate_the_pages_are_there_without_https(first_build):
    root, port = sites("www.example.org"), free_port()
    with Acme(first_build, root, f"https://localhost:{free_port()}/dir", port) as server:
        eventually(lambda: server.said("account: cannot get an answer from https://localhost:", "next attempt in 15 minutes"), seconds=60)
        assert server.get("/", host="www.example.org").body == b"www.example.org"
        with pytest.raises(ssl.SSLError), server.secure("www.example.org"):
            pass


def test_with_an_expired_certificate_the_pages_are_there_without_https(first_build):
    root, port, store = sites("www.example.org"), free_port(), Root().path / "acme"
    live = store / "live" / "www.example.org"
    live.mkdir(parents=True)
    cert, key = certificate("DNS:www.example.org", expired=True)
    (live / "fullchain.pem").write_bytes(cert.read_bytes())
    (live / "privkey.pem").write_bytes(key.read_bytes())
    with Acme(first_build, root, f"https://localhost:{free_port()}/dir", port, directory=store) as server:
        eventually(lambda: server.said("account: cannot get an answer from https://localhost:"), seconds=60)
        assert server.get("/", host="www.example.org").body == b"www.example.org"
    with authority(root.path.parent, port) as (url, _), Acme(first_build, root, url, port, directory=store) as server:
        eventually(lambda: server.get("/", host="www.example.org").status == 301, seconds=60)


def test_the_sandbox_is_the_same_and_another_port_is_told(first_build, root):
    with Acme(first_build, root, f"https://localhost:{free_port()}/dir", free_port()) as server, \
         Server(first_build, root, "-u", "nobody", "-n", as_root=True) as other:  # fmt: skip
        assert server.sandbox == other.sandbox
        assert server.said("the authority asks for proof at port 80 of each name, not ", "it has to lead here")


def test_without_root(first_build):
    """The server then uses a user's ports, keeps keys in the user's home, and does not change its
    root."""
    root, port, home = sites("www.example.org"), free_port(), Root().path
    home.chmod(0o777)
    launcher = [*trusting_launcher(home), "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "-u", "XDG_STATE_HOME", f"HOME={home}"]
    with authority(root.path.parent, port) as (url, _), \
         Server(first_build, root, "--acme", "--acme-directory", url, "-p", str(port), "--tls-port", "0", "-n", launcher=launcher,
                as_root=True) as server:  # fmt: skip
        eventually(lambda: any(GIVEN in line for line in server.errors), seconds=60)
        eventually(lambda: server.get("/", host="www.example.org").status == 301)
        assert (home / ".local/state/gatling/acme/live/www.example.org/privkey.pem").stat().st_uid == 65534


def test_a_name_that_fails_is_told_once_and_others_go_on(first_build):
    root, port = sites("www.example.org", "refused.example.com"), free_port()
    with authority(root.path.parent, port, domainBlocklist=["example.com"]) as (url, _), Acme(first_build, root, url, port) as server:
        eventually(lambda: server.has("www.example.org") and server.said("refused.example.com"), seconds=60)
        (line,) = server.said("refused.example.com")
        assert "the authority gives no certificates for this name: " in line and line.endswith("; next attempt in 15 minutes")
        server.hurry()
        eventually(lambda: server.said("refused.example.com", "next attempt in 30 minutes"), seconds=60)
        assert "gives no certificates" in shown(first_build, server.directory)[0][2]


def test_a_name_that_leads_elsewhere(first_build):
    root, port = sites("www.example.org"), free_port()
    with authority(root.path.parent, free_port()) as (url, _), Acme(first_build, root, url, port) as server:
        eventually(lambda: server.said("www.example.org: the authority could not reach port 80 of this name: ", "refused"), seconds=60)
    with Server(first_build, root, "-n") as other, authority(root.path.parent, other.plain_port) as (url, _), \
         Acme(first_build, root, url, port) as server:  # fmt: skip
        eventually(lambda: server.said("www.example.org: the authority got another answer than ours"), seconds=60)


def problem(kind, detail):
    return f'{{"type": "urn:ietf:params:acme:error:{kind}", "detail": "{detail}", "status": 400}}'


@pytest.mark.parametrize(
    "status,text,expected,pause",
    [
        (429, problem("rateLimited", "too many new registrations"), "the authority wants fewer requests: too many", "3 hours"),
        (200, "<html>hello</html>", "the answer, with status 200, is not one of an authority: is https://", "15 minutes"),
        (500, problem("serverInternal", "down for maintenance"), "the authority has an error of its own: down for maintenance", "3 hours"),
        (503, "", "the authority is out of order, or busy: it answers with status 503", "3 hours"),
    ],
    ids=["limit", "nonsense", "error", "empty"],
)  # fmt: skip
def test_an_authority_that_does_not_answer_as_it_should(first_build, status, text, expected, pause):
    """The Retry-After of an error is obeyed."""
    root, port = sites("www.example.org"), free_port()
    with pretender(lambda handler: handler.say(status, text, Content_Type="application/problem+json", Retry_After=10800)) as url, \
         Acme(first_build, root, url, port) as server:  # fmt: skip
        eventually(lambda: server.said("certificates: account: ", expected, f"; next attempt in {pause}"), seconds=60)
        assert len(server.said("certificates:")) == 1 and server.get("/", host="www.example.org").status == 200


def test_certificates_are_renewed_under_load_and_no_request_fails(first_build):
    """They are valid for 20 seconds, and renewed when the last third of these is left."""
    root, port = sites("www.example.org"), free_port()
    with authority(root.path.parent, port, certificateValidityPeriod=20) as (url, _), Acme(first_build, root, url, port) as server:
        eventually(lambda: server.has("www.example.org"), seconds=60)
        failed, asked, ended = [], [], threading.Event()

        def load():
            while not ended.is_set():
                try:
                    with server.secure("www.example.org") as c:
                        for _ in range(20):
                            asked.append(c.get("/", host="www.example.org").body)
                except (OSError, AssertionError) as error:
                    failed.append(error)

        clients = [threading.Thread(target=load) for _ in range(4)]
        for client in clients:
            client.start()
        try:
            eventually(lambda: len(server.said("www.example.org", GIVEN)) >= 3, seconds=90)
        finally:
            ended.set()
            for client in clients:
                client.join()
        assert not failed and asked and set(asked) == {b"www.example.org"}


NOWHERE = "https://localhost:1/dir"  # for a uacme that asks nobody


def test_addresses_get_certificates_of_a_profile(first_build):
    root, port, programs = sites("www.example.org", "192.0.2.1", "[2001:db8::1]", "10.0.0.1", "[::1]"), free_port(), made_up_uacme(Root().path)
    with Acme(first_build, root, NOWHERE, port, "--acme-profile", "shortlived", programs=programs) as server:
        eventually(lambda: len(server.said(GIVEN)) == 3, seconds=60)
        asked = (programs / "asked").read_text().splitlines()
        assert sorted(line.split()[-1] for line in asked if "-p shortlived -f -t EC" in line) == ["192.0.2.1", "2001:db8::1", "www.example.org"]
        for host in ("192.0.2.1", "[2001:db8::1]"):
            assert eventually(lambda host=host: server.get("/", host=host)["Location"]) == f"https://{host}:{server.tls_port}/"
        assert server.get("/", host="10.0.0.1").body == b"10.0.0.1"
        with server.secure(None) as c:  # from an address that the server does not know as its own
            assert names(c) in ("IP Address:192.0.2.1", "IP Address:2001:DB8:0:0:0:0:0:1")
        assert [line[0] for line in shown(first_build, server.directory)] == ["192.0.2.1", "2001:db8::1", "www.example.org"]
        assert "socket:" not in (programs / "open").read_text()  # nothing of the server's


def test_without_a_profile_addresses_are_asked_for_if_they_are_named(first_build):
    root, port, programs = sites("192.0.2.1", "192.0.2.2"), free_port(), made_up_uacme(Root().path, "1.7.4")
    with Acme(first_build, root, NOWHERE, port, "--acme-name", "192.0.2.2", programs=programs) as server:
        eventually(lambda: server.said("192.0.2.2", GIVEN), seconds=60)
        server.hurry()
        eventually(lambda: (root.path / "www.example.org").mkdir(exist_ok=True) or server.hurry() or server.said("www.example.org", GIVEN), seconds=60)
        asked = (programs / "asked").read_text()
        assert not server.said("192.0.2.1") and " -p " not in asked and " check " not in asked


def test_a_certificate_is_renewed_before_its_time_if_the_authority_says_so(first_build):
    root, port, programs = sites("www.example.org", "example.org"), free_port(), made_up_uacme(Root().path)

    def questions():
        return (programs / "asked").read_text().count(" check www.example.org\n")

    with Acme(first_build, root, NOWHERE, port, programs=programs) as server:
        eventually(lambda: len(server.said(GIVEN)) == 2, seconds=60)
        server.hurry()
        eventually(questions)
        assert not server.said("wants it to be renewed")
        (programs / "renew").touch()  # for the name that is asked about first
        server.hurry()
        eventually(lambda: len(server.said(GIVEN)) == 3, seconds=60)
        (said,) = server.said("the authority wants it to be renewed now")
        assert server.said(said.split(": ")[2], GIVEN) and not server.said("next attempt")


def test_a_profile_takes_a_newer_uacme(first_build, root):
    programs = made_up_uacme(Root().path, "1.7.6")
    done = subprocess.run([runnable(first_build), "-c", root.path, "--acme", "--acme-profile", "shortlived", "--acme-dir", root.path / "acme"],
                          capture_output=True, text=True, timeout=20, check=False, env={"PATH": f"{programs}:{os.environ['PATH']}"})  # fmt: skip
    assert done.returncode == 1 and "cannot use --acme-profile: it takes uacme 1.8 or later, and this is 1.7.6\n" in done.stderr


def test_a_killed_helper_comes_again_and_the_server_does_not_notice(first_build):
    root, port = sites("www.example.org"), free_port()
    with authority(root.path.parent, port) as (url, _), Acme(first_build, root, url, port) as server:
        eventually(lambda: server.has("www.example.org"), seconds=60)
        (root.path / "new.example.org").mkdir()
        os.kill(server.helpers()[1], signal.SIGKILL)
        eventually(lambda: server.has("new.example.org"), seconds=60)
        assert len(server.said("certificates:")) == 2
        first = server.pid
        for pid in server.helpers():  # none is left to start another
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: server.said("a process beside the server has ended: starting another server"))
        assert server.has("www.example.org") and server.get("/", host="localhost").status == 200
        eventually(lambda: servers_of(server.keeper) and first not in servers_of(server.keeper))
        server.pid = server_of(server.keeper)
        (root.path / "newer.example.org").mkdir()
        eventually(lambda: server.has("newer.example.org"), seconds=60)


def test_the_signal_to_open_logs_again_does_not_end_the_helpers(first_build):
    """pkill -USR1 gatling sends it to all processes whose names begin with this."""
    with Acme(first_build, sites("www.example.org"), f"https://localhost:{free_port()}/dir", free_port()) as server:
        eventually(lambda: server.said("account:"), seconds=60)
        helpers = server.helpers()
        for pid in (*helpers, server.pid):
            os.kill(pid, signal.SIGUSR1)
        time.sleep(2)  # tests that nothing happens
        assert server.helpers() == helpers and not server.said("has ended")


def test_a_full_disk_is_told_and_the_certificate_is_taken_up_later(first_build):
    root, port, full = sites("www.example.org"), free_port(), Root().path
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", full], check=True)
    try:
        with authority(root.path.parent, port) as (url, _):
            with Acme(first_build, root, url, port, directory=full) as server:
                eventually(lambda: server.has("www.example.org"), seconds=60)
                (root.path / "new.example.org").mkdir()
                subprocess.run(
                    ["dd", "if=/dev/zero", f"of={full}/ballast", "bs=4096"], check=False, capture_output=True)  # fmt: skip
                server.hurry()
                eventually(lambda: server.said("new.example.org: cannot write to ", "No space left on device", "next attempt in 15 minutes"), seconds=60)
                assert server.has("www.example.org")
                (full / "ballast").unlink()
                (full / "uacme/private/new.example.org").mkdir()
                (full / "uacme/private/new.example.org/key.pem").touch()  # as uacme leaves it on a full disk
                server.hurry()
                eventually(lambda: server.has("new.example.org"), seconds=60)
    finally:
        subprocess.run(["umount", full], check=True)


def test_a_directory_that_is_gone_is_not_renewed(first_build):
    root, port = sites("www.example.org", "gone.example.org"), free_port()
    with authority(root.path.parent, port, certificateValidityPeriod=20) as (url, _), Acme(first_build, root, url, port) as server:
        eventually(lambda: server.has("www.example.org") and server.has("gone.example.org"), seconds=60)
        (root.path / "gone.example.org" / "index.html").unlink()
        (root.path / "gone.example.org").rmdir()
        server.hurry()
        eventually(lambda: not (server.directory / "live" / "gone.example.org").exists(), seconds=60)
        eventually(lambda: len(server.said("www.example.org", GIVEN)) >= 2, seconds=60)
        assert len(server.said("gone.example.org", GIVEN)) == 1


def test_a_directory_that_is_gone_before_the_start_is_not_renewed_either(first_build):
    root, port, store = sites("www.example.org", "gone.example.org"), free_port(), Root().path / "acme"
    with authority(root.path.parent, port, certificateValidityPeriod=12) as (url, _):
        with Acme(first_build, root, url, port, directory=store) as server:
            eventually(lambda: server.has("www.example.org") and server.has("gone.example.org"), seconds=60)
        (root.path / "gone.example.org").rename(root.path / "elsewhere")
        with Acme(first_build, root, url, port, directory=store) as server:
            eventually(lambda: server.hurry() or not (store / "live" / "gone.example.org").exists(), seconds=60)
            assert not server.said("gone.example.org", GIVEN)


def test_another_authority_gives_new_certificates(first_build):
    root, port, store = sites("www.example.org"), free_port(), Root().path / "acme"
    with authority(root.path.parent, port) as (url, _), Acme(first_build, root, url, port, directory=store) as server:
        eventually(lambda: server.has("www.example.org"), seconds=60)
    with authority(root.path.parent, port) as (url, root_url), Acme(first_build, root, url, port, directory=store) as server:
        authority_root = urllib.request.urlopen(root_url, context=trusting()).read().decode()

        def trusted():
            with contextlib.suppress(ssl.SSLError), server.secure("www.example.org", authority_root) as c:
                return c.get("/", host="www.example.org").status == 200

        eventually(trusted, seconds=60)


def test_an_account_that_the_authority_has_lost_is_opened_again(first_build):
    root, port, acme_port, store = sites("www.example.org"), free_port(), free_port(), Root().path / "acme"
    with authority(root.path.parent, port, acme_port) as (url, _), Acme(first_build, root, url, port, directory=store) as server:
        eventually(lambda: server.has("www.example.org"), seconds=60)
        url_of_both = url
    (root.path / "new.example.org").mkdir()
    with authority(root.path.parent, port, acme_port) as (url, _), Acme(first_build, root, url, port, directory=store) as server:
        assert url == url_of_both
        eventually(lambda: server.said("new.example.org: the authority does not know our account any more, so another is opened"), seconds=60)
        server.hurry()
        eventually(lambda: server.has("new.example.org"), seconds=60)


def test_after_a_restart_a_failure_is_not_tried_sooner(first_build):
    root, port, store = sites("refused.example.com", "www.example.org"), free_port(), Root().path / "acme"
    with authority(root.path.parent, port, domainBlocklist=["example.com"]) as (url, _):
        with Acme(first_build, root, url, port, directory=store) as server:
            eventually(lambda: server.said("refused.example.com"), seconds=60)
        (root.path / "new.example.org").mkdir()
        with Acme(first_build, root, url, port, directory=store) as server:
            eventually(lambda: server.said("new.example.org", GIVEN), seconds=60)
            assert not server.said("refused.example.com") and server.said("1 failed before the start; the next attempt is in 15 minutes")


@pytest.mark.parametrize("text,expected", [("", "it is not KEYID:KEY"), ("key", "it is not KEYID:KEY"), (None, "No such file")])
def test_an_external_account_that_cannot_be_used(first_build, root, text, expected):
    file = root.path / "eab"
    if text is not None:
        file.write_text(text)
    done = subprocess.run([runnable(first_build), "-c", root.path, "--acme", "--acme-dir", root.path / "acme", "--acme-eab", file],
                          capture_output=True, text=True, timeout=20, check=False)  # fmt: skip
    assert done.returncode == 1 and expected in done.stderr


def test_a_successor_has_its_own_helper(first_build):
    root, port = sites("www.example.org"), free_port()
    with authority(root.path.parent, port) as (url, _):
        work = Root().path
        with Acme(first_build, root, url, port, "--take-over", work / "socket", directory=work / "acme") as old:
            eventually(lambda: old.has("www.example.org"), seconds=60)
            with Acme(first_build, root, url, port, "--take-over", work / "socket", directory=work / "acme") as new:
                old.process.wait(20)
                (root.path / "new.example.org").mkdir()
                eventually(lambda: new.has("new.example.org"), seconds=60)
                assert new.has("www.example.org") and not new.said("cannot")


@pytest.mark.parametrize(
    "words,expected",
    [
        (["--acme-name", "www.example.org"], "--acme"),
        (["--acme", "--acme-name", "localhost"], "--acme-name takes a name of the public DNS"),
        (["--acme", "--acme-name", "10.0.0.1"], "or a public address"),
        (["--acme", "--acme-profile", 'a"b'], "--acme-profile takes the name of a profile"),
        (["--acme=nobody"], "--acme takes an email address"),
        (["--acme", "owner@example.org"], "--acme=owner@example.org"),
        (["--acme", "--acme-directory", "http://localhost/"], "--acme-directory takes the https://"),
        (["--acme", "--no-https"], "--no-https"),
    ],
)  # fmt: skip
def test_options_that_cannot_be(first_build, root, words, expected):
    done = subprocess.run([runnable(first_build), "-c", root.path, *words], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2 and expected in done.stderr and done.stderr.count("\n") == 1


def test_without_uacme_the_message_names_the_package(first_build, root):
    done = subprocess.run([runnable(first_build), "-c", root.path, "--acme", "--acme-dir", root.path], capture_output=True, text=True,
                          timeout=20, check=False, env={"PATH": "/nonexistent"})  # fmt: skip
    assert done.returncode == 1 and "install the package uacme" in done.stderr


def test_five_hundred_names(first_build):
    root, port = sites(*(f"n{n}.example.org" for n in range(500))), free_port()
    with authority(root.path.parent, port) as (url, _), Acme(first_build, root, url, port) as server:
        started = time.monotonic()
        eventually(lambda: len(server.said(GIVEN)) == 500, seconds=600)
        eventually(lambda: server.has("n499.example.org"), seconds=20)
        assert time.monotonic() - started < 600 and server.get("/", host="localhost").status == 200
