"""What upstreams say before they answer, and content that they wait for, over HTTP/3."""

from frames import DATA, frame
from test_tunnels import passing
from upstream import Upstream


def test_hints_come_before_the_answer(http3, client):
    """RFC 8297."""

    def handle(link):
        link.head()
        link.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n")
        link.send(b"HTTP/1.1 103 Early Hints\r\nLink: </b.css>; rel=preload\r\n\r\n")
        link.answer(b"late")

    with Upstream(handle) as upstream, passing(http3, upstream) as server, client.Client(server) as c:
        answer = c.get("/api/x")
        assert answer.interim == [[(":status", "103"), ("link", f"</{name}.css>; rel=preload")] for name in "ab"]
        assert answer.status == 200 and answer.body == b"late"


def test_content_comes_when_the_upstream_wants_it(http3, client):
    def handle(link):
        request = link.head()
        link.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        link.answer(link.body(request).body)

    with Upstream(handle) as upstream, passing(http3, upstream) as server, client.Client(server) as c:
        stream = c.ask("/api/x", ("expect", "100-continue"), ("content-length", "5"), method="POST", end=False)
        c.until(lambda: stream in c.found and c.found[stream].interim)
        assert c.found[stream].interim == [[(":status", "100")]]
        c.send(stream, frame(DATA, b"hello"), end=True)
        assert c.answer(stream).body == b"hello"


def test_content_that_the_upstream_does_not_want_is_not_waited_for(http3, client):
    with Upstream(lambda link: (link.head(), link.send(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"))) as upstream:
        with passing(http3, upstream) as server, client.Client(server) as c:
            stream = c.ask("/api/x", ("expect", "100-continue"), ("content-length", "5"), method="POST", end=False)
            answer = c.answer(stream)
            assert answer.status == 403 and answer.body == b"no" and not answer.interim
            assert c.until(lambda: answer.stopped is not None)


def test_the_answer_to_a_head_has_its_length_and_no_content(http3, client):
    with Upstream(lambda link: (link.head(), link.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"))) as upstream:
        with passing(http3, upstream) as server, client.Client(server) as c:
            answer = c.get("/api/x", method="HEAD")
            assert answer["content-length"] == "5" and not answer.body


def test_nothing_waits_for_answers_that_are_not_taken(http3, client):
    with Upstream(lambda link: (link.head(), link.answer(b"x" * 100_000))) as upstream:
        with passing(http3, upstream) as server, client.Client(server, window=1000, hold=True) as c:
            streams = [c.ask(f"/api/{n}") for n in range(20)]
            c.until(lambda: all(stream in c.order for stream in streams))
