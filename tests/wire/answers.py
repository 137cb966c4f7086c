"""Answers of HTTP/2 and HTTP/3, and what tests over both expect of them."""

from served import BIG, SMALL


class Answer:
    """What came on a stream. reset: the error that the server ended it with."""

    def __init__(self):
        self.fields, self.body, self.trailers, self.ended, self.reset = None, bytearray(), [], False, None

    @property
    def status(self):
        return int(self["status"] if self["status"] else self[":status"])

    def __getitem__(self, name):
        values = [value for key, value in self.fields if key == name]
        assert len(values) <= 1
        return values[0] if values else None


def expect_every_kind(c):
    """c: a client of a server with the files of served.py."""
    etag = c.get("/small.bin")["etag"]
    for fields, status, body in [
        ([("if-none-match", etag)], 304, b""), ([("if-match", '"x"')], 412, None), ([("range", "bytes=1-3")], 206, SMALL[1:4]),
        ([("range", "bytes=5000-")], 416, None), ([("if-none-match", etag), ("range", "bytes=1-3")], 304, b""), ([("range", "bytes=-4")], 206, SMALL[-4:]),
    ]:  # fmt: skip
        answer = c.get("/small.bin", *fields)
        assert answer.status == status and (body is None or answer.body == body)
    parts = c.get("/big.bin", ("range", "bytes=0-9,2000000-2000009"))
    assert parts.status == 206 and BIG[:10] in parts.body and BIG[2_000_000:2_000_010] in parts.body
    assert int(parts["content-length"]) == len(parts.body)
    for method, status in [("HEAD", 200), ("OPTIONS", 204), ("POST", 405), ("BREW", 501)]:
        answer = c.get("/small.bin", method=method)
        assert answer.status == status and (method != "HEAD" or (not answer.body and answer["content-length"] == "1024"))
    assert c.get("/dir")["location"] == "/dir/" and c.get("/%zz").status == 400 and c.get("/" + "a" * 9000).status == 414
