"""Upstreams by name, and over TLS: which addresses they have, and which certificates they are trusted with."""

import contextlib
import os
import re
import ssl
import threading
import time

import pytest

from gatling import TIMEOUT, Root, Server, certificate, eventually, server_of, servers_of
from http2 import Http2
from test_upstream import passing
from upstream import SWITCHES, Upstream

pytestmark = [pytest.mark.clear, pytest.mark.moving]
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="takes a mount namespace")

NAME = "app.test"


def speaking(cert, alpn=("http/1.1",)):
    """Returns the context of a server with this certificate. It notes the names that clients send."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*cert)
    context.set_alpn_protocols(list(alpn))
    context.names = []
    context.sni_callback = lambda _, name, __: context.names.append(name)
    return context


@contextlib.contextmanager
def over_tls(build, upstream, *flags, cert=None, host="127.0.0.1", **options):
    """Runs a server that passes /api/ on to the upstream, whose certificate it trusts."""
    rule = f"/api/* https://{host}:{upstream.port}/:splat 200"
    trust = ("--upstream-ca", cert or certificate()[0])
    allowed = ("--upstream", f"https://{host}:{upstream.port}")
    with passing(build, rule=rule, flags=(*allowed, *trust, *flags), **options) as server:
        yield server


class Hosts:
    """The file that takes the place of /etc/hosts for a server."""

    def __init__(self, directory):
        self.path = directory / "hosts"
        self.launcher = ("unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', self.path)

    def are(self, *addresses, name=NAME):
        self.path.write_text("".join(f"{address} {name}\n" for address in addresses))
        return self

    def options(self, *flags):
        return {"launcher": self.launcher, "as_root": True, "flags": ("-u", "nobody", *flags)}


@pytest.fixture
def hosts(tmp_path):
    return Hosts(tmp_path)


# --- TLS ---


def test_a_request_goes_to_the_host_that_the_rule_names(build):
    context = speaking(certificate())
    with Upstream(tls=context) as upstream, over_tls(build, upstream) as server:
        answer = server.get("/api/x?y", host="www.example.org")
        assert answer.status == 200 and answer.body.startswith(b"GET /x?y HTTP/1.1\n")
        request = upstream.requests[0]
        assert request["Host"] == upstream.address and request["X-Forwarded-Host"] == "www.example.org"
        assert context.names == [None]  # an address is no name
        assert upstream.links[0].socket.selected_alpn_protocol() == "http/1.1"


def test_content_arrives_whole_both_ways(build):
    content = os.urandom(3_000_000)

    def swap(link):
        while True:
            request = link.request()
            link.answer(request.body[::-1])

    with Upstream(swap, tls=speaking(certificate())) as upstream, over_tls(build, upstream) as server, server.connect() as c:
        for fields in ((f"Content-Length: {len(content)}",), ("Transfer-Encoding: chunked",)):
            c.send("\r\n".join(["POST /api/ HTTP/1.1", "Host: a", *fields, "", ""]).encode())
            if "chunked" in fields[0]:
                for at in range(0, len(content), 100_001):
                    piece = content[at : at + 100_001]
                    c.send(b"%x\r\n%b\r\n" % (len(piece), piece))
                c.send(b"0\r\n\r\n")
            else:
                c.send(content)
            assert c.response().body == content[::-1]
        assert len(upstream.links) == 1


def test_streams_of_http_2_get_all_of_it(build):
    """They share what may be kept for a connection, and so take it in small pieces."""
    content = os.urandom(1_000_000)

    def answer(link):
        while True:
            link.request()
            link.answer(content)

    with Upstream(answer, tls=speaking(certificate())) as upstream, over_tls(build, upstream) as server, Http2(server) as h:
        answers = h.answers(*(h.ask(f"/api/{n}") for n in range(10)))
        assert [answer.body == content for answer in answers] == [True] * 10


class Raw:
    """TLS whose records a handler sends as it likes."""

    def __init__(self, link, context):
        self.link, self.come, self.goes = link, ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.come, self.goes, server_side=True)
        self.do(self.tls.do_handshake)

    def do(self, function, *arguments):
        """Calls a function as often as it takes. What it has to send is left in goes, unless more has to come first."""
        while True:
            try:
                return function(*arguments)
            except ssl.SSLWantReadError:
                self.link.send(self.goes.read())
                data = self.link.socket.recv(1 << 16)
                if not data:
                    raise EOFError from None
                self.come.write(data)

    def request(self):
        head = b""
        while b"\r\n\r\n" not in head:
            head += self.do(self.tls.read, 1 << 16)


def test_a_record_that_comes_in_parts_is_not_forgotten(plain):
    """The rest of the last one comes just when OpenSSL has read a part of it, and does not fit into the buffer. As it is not
    known when that is, it comes at several times."""
    content, pauses = os.urandom(65_536), iter(range(100, 300, 10))

    def answer(link):
        raw = Raw(link, speaking(certificate()))
        raw.request()
        raw.tls.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\nX-Long: %b\r\n\r\n" % (len(content), b"a" * 150))
        raw.tls.write(content[:49_152])
        first = raw.goes.read()
        raw.tls.write(content[49_152:])
        last = raw.goes.read()
        link.send(first + last[:8000])
        time.sleep(next(pauses) / 1000)
        link.send(last[8000:])
        link.ended()

    tracer = ("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=recvfrom", "-e", "inject=recvfrom:delay_exit=20000")
    with Upstream(answer) as upstream, over_tls(plain, upstream, "--limit", "upstream-between=2", tracer=tracer) as server:
        for _ in range(20):
            assert server.get("/api/").body == content


@pytest.mark.parametrize("tickets", [0, 2, 200])
def test_tickets_are_no_content(build, tickets):
    context = speaking(certificate())
    context.num_tickets = tickets
    with Upstream(tls=context) as upstream, over_tls(build, upstream) as server:
        for _ in range(3):
            assert server.get("/api/").status == 200


def test_a_part_of_a_ticket_makes_nobody_busy(build):
    """OpenSSL sends no content before it has read the rest."""
    goes_on, asked = threading.Event(), threading.Event()

    def answer(link):
        raw = Raw(link, speaking(certificate()))
        tickets = raw.goes.read()
        link.send(tickets[:-50])
        asked.set()
        goes_on.wait(TIMEOUT)
        link.send(tickets[-50:])
        raw.request()
        raw.tls.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        link.send(raw.goes.read())
        link.ended()

    with Upstream(answer) as upstream, over_tls(build, upstream) as server, server.connect() as c:
        c.send(b"POST /api/ HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + bytes(50_000))
        assert asked.wait(TIMEOUT)
        c.send(bytes(50_000))
        before = cpu_s(server.pid)
        time.sleep(1)
        assert cpu_s(server.pid) - before < 0.3
        goes_on.set()
        assert c.response().body == b"ok"


def cpu_s(pid):
    with open(f"/proc/{pid}/stat", encoding="latin-1") as stat:
        return sum(map(int, stat.read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def test_small_answers_come_over_one_connection(build):
    with Upstream(tls=speaking(certificate())) as upstream, over_tls(build, upstream) as server, server.connect() as c:
        for n in range(50):
            assert c.get(f"/api/{n}").body.startswith(b"GET /%d " % n)
        assert len(upstream.links) == 1


def test_sessions_are_resumed(build):
    resumed = []

    def once(link):
        resumed.append(link.socket.session_reused)
        link.request()
        link.answer(b"ok", "Connection: close")

    with Upstream(once, tls=speaking(certificate())) as upstream, over_tls(build, upstream) as server:
        for _ in range(3):
            assert server.get("/api/").status == 200
        assert resumed == [False, True, True]


@pytest.mark.parametrize(
    "presented,reason",
    [
        (certificate("DNS:other.test"), "its certificate is not trusted: "),
        (certificate(expired=True), "its certificate is not trusted: certificate has expired"),
        (certificate("IP:127.0.0.2,IP:127.0.0.3"), "its certificate is not trusted: "),
    ],
)
def test_a_certificate_that_is_not_trusted_is_a_502_with_its_reason(build, presented, reason):
    with Upstream(tls=speaking(presented)) as upstream:
        cert = presented[0] if "expired" in reason else None
        with over_tls(build, upstream, cert=cert) as server:
            assert server.get("/api/").status == 502 and not upstream.requests
            said = rf"gatling: cannot connect to the upstream 127.0.0.1:{upstream.port}: {reason}"
            eventually(lambda: any(line.startswith(said) for line in server.errors))


def test_a_certificate_of_a_trusted_authority_counts_for_its_hosts_alone(build):
    cert = certificate("DNS:other.test,IP:127.0.0.2")
    with Upstream(tls=speaking(cert)) as upstream, over_tls(build, upstream, cert=cert[0]) as server:
        assert server.get("/api/").status == 502 and not upstream.requests
        eventually(lambda: any("not trusted: IP address mismatch" in line for line in server.errors))


def test_an_upstream_without_tls_is_a_502(build):
    def refuse(link):
        link.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        link.ended()

    with Upstream(refuse) as upstream, over_tls(build, upstream) as server:
        assert server.get("/api/").status == 502
        eventually(lambda: any("TLS: wrong version number" in line for line in server.errors))


def test_a_handshake_that_hangs_is_a_504(build):
    with Upstream(lambda link: link.ended()) as upstream, over_tls(build, upstream) as server:
        assert server.get("/api/").status == 504


@pytest.mark.parametrize("notified", [True, False])
def test_content_ends_with_a_close_notify(build, notified):
    """Whoever cuts the connection must not shorten an answer unseen."""

    def once(link):
        link.request()
        link.send(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 100_000)
        if notified:
            with contextlib.suppress(OSError):
                link.socket.unwrap()

    with Upstream(once, tls=speaking(certificate())) as upstream, over_tls(build, upstream) as server, server.connect() as c:
        c.send(b"GET /api/ HTTP/1.1\r\nHost: a\r\n\r\n")
        if notified:
            assert c.response().body == b"x" * 100_000
        else:
            assert not c.rest().endswith(b"0\r\n\r\n")


def test_a_tunnel_goes_through_tls(build):
    def shout(link):
        link.head()
        link.send(SWITCHES + b"\r\n")
        for _ in range(3):
            link.send(link.take(5).upper())
        with contextlib.suppress(OSError):
            link.socket.unwrap()

    with Upstream(shout, tls=speaking(certificate())) as upstream, over_tls(build, upstream) as server, server.connect() as c:
        c.send(b"GET /api/ HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
               b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n")  # fmt: skip
        assert c.response().status == 101
        for word in (b"hello", b"there", b"bytes"):
            c.send(word)
            while len(c.buffer) < 5:
                c.buffer += c.socket.recv(5)
            assert c.buffer == word.upper()
            c.buffer = b""
        c.assert_closed()


def test_an_idle_connection_that_ends_is_not_used(build):
    def once(link):
        link.request()
        link.answer()

    with Upstream(once, tls=speaking(certificate())) as upstream, over_tls(build, upstream) as server:
        for _ in range(5):
            assert server.get("/api/").status == 200
        assert len(upstream.requests) == 5


@pytest.mark.parametrize("allowed", ["127.0.0.1", "https://127.0.0.1:1"])
def test_https_takes_an_option_of_its_own(first_build, allowed):
    with Upstream(tls=speaking(certificate())) as upstream:
        rule = f"/api/* https://{upstream.address}/:splat 200"
        with passing(first_build, rule=rule, flags=("--upstream", allowed, "--upstream-ca", certificate()[0])) as server:
            assert server.get("/api/").status == 404
            said = f"nothing is passed on to {upstream.address} without --upstream https://{upstream.address}"
            eventually(lambda: any(line.endswith(said) for line in server.errors))


def test_authorities_that_cannot_be_read_are_named(first_build, tmp_path):
    (tmp_path / "empty.pem").write_text("")
    for path in (tmp_path / "none.pem", tmp_path / "empty.pem"):
        with pytest.raises(AssertionError, match=re.escape(f"gatling: cannot trust authorities of upstreams {path}: ")):
            Server(first_build, Root({}), "--upstream", "https://127.0.0.1", "--upstream-ca", path)


# --- names ---


@root_only
def test_a_host_is_named_to_its_upstream(build, hosts):
    context = speaking(certificate(f"DNS:{NAME}"))
    with Upstream(tls=context) as upstream:
        trust = ("--upstream-ca", certificate(f"DNS:{NAME}")[0], "--upstream", f"https://APP.test:{upstream.port}", "--upstream", f"https://127.0.0.1:{upstream.port}")
        rule = f"/api/* https://App.Test:{upstream.port}/:splat 200"
        with passing(build, rule=rule, **hosts.are("127.0.0.1").options(*trust)) as server:
            assert server.get("/api/", host="www.example.org").status == 200
            assert context.names == [NAME] and upstream.requests[0]["Host"] == f"{NAME}:{upstream.port}"


@root_only
def test_all_addresses_of_a_host_are_used(build, hosts):
    with Upstream() as one, Upstream(port=one.port, host="127.0.0.2") as two:
        rule = f"/api/* http://{NAME}:{one.port}/:splat 200"
        flags = ("--upstream", f"{NAME}:{one.port}", "--upstream", "127.0.0.0/8")
        with passing(build, rule=rule, **hosts.are("127.0.0.1", "127.0.0.2").options(*flags)) as server:
            for _ in range(40):
                assert server.get("/api/", host="www.example.org").status == 200
            assert one.requests and two.requests
            assert {request["Host"] for request in one.requests} == {"www.example.org"}


@root_only
def test_a_host_is_looked_up_again(build, hosts):
    with Upstream() as one, Upstream(port=one.port, host="127.0.0.2") as two:
        rule = f"/api/* http://{NAME}:{one.port}/:splat 200"
        flags = ("--upstream", NAME, "--upstream", "127.0.0.0/8")
        with passing(build, rule=rule, **hosts.are("127.0.0.1").options(*flags)) as server:
            assert server.get("/api/").status == 200 and len(one.requests) == 1
            hosts.are("127.0.0.2")
            eventually(lambda: server.get("/api/").status == 200 and two.requests, 15)
            hosts.are()
            eventually(lambda: server.get("/api/").status == 502, 15)
            eventually(lambda: any(f"gatling: cannot look up the upstream {NAME}: " in line for line in server.errors))


@root_only
@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "169.254.169.254", "0.0.0.0", "fe80::1", "::ffff:127.0.0.1"])
def test_a_name_leads_to_no_address_of_the_machine_itself(first_build, hosts, address):
    """Whoever has the name may lead it anywhere (DNS rebinding)."""
    with Upstream() as upstream:
        rule = f"/api/* http://{NAME}:{upstream.port}/:splat 200"
        flags = ("--upstream", f"{NAME}:{upstream.port}", "--upstream", "127.0.0.2")
        with passing(first_build, rule=rule, **hosts.are(address).options(*flags)) as server:
            assert server.get("/api/").status == 502 and not upstream.links
            said = f"gatling: cannot look up the upstream {NAME}: it has only addresses of this machine or its links, which --upstream ADDRESS allows"
            eventually(lambda: said in server.errors)


@root_only
@pytest.mark.parametrize("scheme,allowed,status", [("http", "{}", 200), ("http", "1", 502), ("https", "{}", 502)])
def test_a_name_leads_to_no_other_port_of_the_machine(first_build, hosts, scheme, allowed, status):
    """Nor to one that is allowed for TLS alone."""
    with Upstream() as upstream:
        rule = f"/api/* http://{NAME}:{upstream.port}/:splat 200"
        address = f"127.0.0.1:{allowed.format(upstream.port)}"
        flags = ("--upstream", NAME, "--upstream", address if scheme == "http" else f"https://{address}", "--upstream-ca", certificate()[0])
        with passing(first_build, rule=rule, **hosts.are("127.0.0.1").options(*flags)) as server:
            assert server.get("/api/").status == status and bool(upstream.links) == (status == 200)


@root_only
def test_a_successor_that_cannot_start_closes_nothing(first_build, hosts, tmp_path):
    """The process that looks up has ended; another server, which would have one, lacks a file."""
    authorities = tmp_path / "ca.pem"
    authorities.write_bytes(certificate()[0].read_bytes())
    flags = ("--upstream", f"https://{NAME}", "--upstream-ca", authorities)
    with passing(first_build, rule=f"/api/* https://{NAME}/ 200", **hosts.are("127.0.0.1").options(*flags)) as server:
        first = server.pid
        (resolver,) = (pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if is_resolver_of(pid, first))
        authorities.rename(tmp_path / "away")
        os.kill(resolver, 9)
        eventually(lambda: any("cannot take over, so this one goes on: cannot trust authorities" in line for line in server.errors), 20)
        assert server.get("/there.txt").status == 200
        eventually(lambda: servers_of(server.keeper) == [first])
        (tmp_path / "away").rename(authorities)
        eventually(lambda: servers_of(server.keeper) and first not in servers_of(server.keeper), 30)
        server.pid = server_of(server.keeper)
        assert server.get("/there.txt").status == 200


@root_only
def test_the_process_that_looks_up_has_no_privileges_and_ends_with_the_server(first_build, hosts):
    with passing(first_build, rule=f"/api/* http://{NAME}/ 200", **hosts.are("127.0.0.1").options("--upstream", NAME)) as server:
        (resolver,) = (pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if is_resolver_of(pid, server.pid))
        with open(f"/proc/{resolver}/status", encoding="ascii") as status:
            fields = dict(line.rstrip("\n").split(":\t", 1) for line in status)
        assert {int(fields[f"Cap{kind}"], 16) for kind in ("Eff", "Prm", "Bnd")} == {0} and fields["NoNewPrivs"] == "1"
        assert "0" not in fields["Uid"].split()
    assert not os.path.exists(f"/proc/{resolver}")


def is_resolver_of(pid, parent):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="latin-1") as stat:
        name, fields = stat.read().rsplit(")", 1)
        return name.endswith("(gatling-resolve") and fields.split()[1] == str(parent)
    return False


@pytest.mark.parametrize("text", ["a..b", ".a", "-a", "10.1", "1", "a_b:0", "https://", "https://a:x", "https://unix:/a", "https:///a", "x" * 128, ":80", "a/b"])
def test_a_host_that_is_none_is_refused(first_build, text):
    with pytest.raises(AssertionError, match="HOST is a name"):
        Server(first_build, Root({}), "--upstream", text)
