"""What tests/faults does for HTTP/1.1 and HTTP/2: calls of a server with HTTP/3 fail in turn. Each fault meets the requests of a place on a
new connection; afterwards another place has to be served on a new one, and so has a client who was there before.

For all faults, which takes hours: FAULT_SECONDS=100000 python3 -m pytest tests/http3/test_failing_calls.py"""

import functools
import os
import time

import pytest

from faults import ALWAYS, PATIENCE_S, Faulty, survey
from mix import CLOSED, HANGING, RIGHT, WRONG
from mix import Answer as Found
from mix import Request

SECONDS = float(os.environ.get("FAULT_SECONDS", "60"))


class Mix:
    """As that of tests/faults, over HTTP/3. client: the module. kept: a connection that stays open."""

    def __init__(self, client, server):
        self.client, self.server, self.kept = client, server, None

    def ask(self, place, timeout):
        with self.client.Client(self.server, wait=False) as c:
            return self._ask_on(c, place.requests, timeout) + self._ask_kept(place, timeout)

    def _ask_kept(self, place, timeout):
        """Asks on the connection that stays, unless a call always fails."""
        if timeout < PATIENCE_S:
            return []
        if self.kept is None or self.kept.end:
            self.kept = self.client.Client(self.server)
        outcomes = self._ask_on(self.kept, place.requests[:1], timeout)
        try:
            self.kept.sync()
            self.kept.acknowledge()  # while a call fails, the server need not send anything
        except AssertionError as error:
            outcomes.append(("a PING", HANGING, error))
        return outcomes

    @staticmethod
    def _ask_on(c, requests, timeout):
        """Returns [(request, verdict, answer)]."""
        streams = {}
        for r in requests:
            fields = [(name.lower(), value) for name, value in r.fields.items()]
            streams[c.ask(r.path, *fields, method=r.method, host=r.host, body=r.body or None)] = r
        deadline = time.monotonic() + timeout
        while c.end is None and time.monotonic() < deadline and not all(stream in c.found and c.found[stream].ended for stream in streams):
            c.turn(deadline - time.monotonic())
        return [Mix._judge(c, stream, r) for stream, r in streams.items()]

    @staticmethod
    def _judge(c, stream, r):
        answer = c.found.get(stream)
        if answer is None or not answer.ended:
            return r, CLOSED if c.end else HANGING, c.end
        if answer.reset is not None:
            return r, CLOSED, answer.reset
        fields = dict(answer.fields)
        found = Found(int(fields[":status"]), fields, answer.body)
        return r, r.verdict(found), found


def is_fast(fault):
    """Returns whether the long answers of an upstream come in time, of which each piece that the server reads is a packet."""
    return fault.call != "recv" or fault.times != ALWAYS or fault.error or fault.length > 100


@pytest.mark.timeout(SECONDS + 600)
def test_the_server_survives_what_fails(http3, client):
    def serve(root, *flags, **options):  # one connection stays while others wait for lost packets
        return http3.server(root, "--limit", "keepalive-timeout=60", *flags, **options)

    done = survey(functools.partial(Faulty, http3.build, serve, functools.partial(Mix, client)), SECONDS, tries=is_fast)
    print(f"{done.tried.total()} faults, {done.hit.total()} hit, requests meanwhile: {dict(done.met)}")
    assert not done.findings
    assert done.hit.total() > 20
