"""A build that the tests of wire/ use over HTTP/3: what they ask its server for goes through client.py."""

from http.client import responses

from debian import imported, made
from frames import MESSAGE_ERROR, section
from gatling import OverTls, Response


class OverHttp3(OverTls):
    tcp, http3, client = False, None, None

    def make(self, venv):
        """Builds it. venv: see imported()."""
        self.http3, self.client = made(self), imported(venv, "client")

    def started(self, launcher, as_root, cwd):
        return [*self.http3.launcher(as_root), *(("env", "-C", cwd) if cwd else ()), *launcher], True

    def connect(self, server, **options):
        return Http3Connection(self.client.Client(server, **options))


class Http3Connection:
    """A connection as gatling.Connection has them, for requests. Tests that do anything else with one are marked "tcp"."""

    def __init__(self, client):
        self.client, self.close = client, client.close

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def get(self, path="/", *fields, method="GET", host="localhost"):
        pairs = [tuple(part.strip() for part in field.split(":", 1)) for lines in fields for field in lines.split("\r\n")]
        pairs = [(name.lower(), value) for name, value in pairs]
        if method == "CONNECT":  # RFC 9114, section 4.4: it has no path
            answer = self.client.answer(self.client.ask_as(section((":method", method), (":authority", host), *pairs)))
        else:
            answer = self.client.get(path, *pairs, method=method, host=host)
        if answer.reset == MESSAGE_ERROR and not answer.fields:  # RFC 9114, section 4.1.2: as HTTP/1.1 has 400
            return Response(400, responses[400], [], b"", b"")
        assert answer.reset is None
        fields = [field for field in answer.fields if field[0] != ":status"]
        response = Response(answer.status, responses.get(answer.status), fields, bytes(answer.body), b"")
        response.trailers = answer.trailers
        return response

    def assert_in_step(self):
        assert self.get("/in-step").status == 404
