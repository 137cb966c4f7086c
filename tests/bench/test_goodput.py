"""Downloads over HTTP/3 and HTTP/2, over networks with a delay, loss and a rate."""

import json
from types import SimpleNamespace

import pytest

import goodput
import paths
from guests import GuestError


def options(**more):
    return SimpleNamespace(**{"servers": ["gatling", "nginx"], "controls": ["cubic", "bbr"], "losses": [0, 1], "delays": [0, 40], "rate": 200, "queue": 50,
                              "downloads": 2, "megabytes": 5, **more})  # fmt: skip


def planned(control):
    return dict(line.split(" ", 1) for line in goodput.plan(paths.opening({}, control), options(), control))


def said(seconds, **failed):
    return json.dumps({"failed": failed, "durations": {"whole": {"percentiles_ns": {"50": seconds * 1e9}}}})


def test_the_plan_has_each_server_and_protocol_in_each_network():
    lines = planned("cubic")
    assert lines["prepare"].endswith("prepare cubic") and lines["nginx"].endswith("serve nginx -c /nginx.conf")
    assert {f"{loss}%-{ms}ms-{who}" for loss in (0, 1) for ms in (0, 40) for who in ("gatling-h3", "nginx-h3", "gatling-h2")} < set(lines)
    assert "--http3 --insecure -n 2 https://10.0.0.1:8001/download" in lines["0%-40ms-nginx-h3"]
    assert "--http2" in lines["1%-0ms-gatling-h2"]


def test_the_queue_is_beside_what_is_under_way():
    """200 Mbit/s are 16,667 packets a second: 833 in 50 ms, and 333 in the 20 ms that one takes."""
    lines = planned("cubic")
    assert lines["0%-0ms"].endswith("network 0 0 833 200mbit") and lines["1%-40ms"].endswith("network 20 1 1167 200mbit")


def test_servers_with_a_control_of_their_own_are_measured_once():
    assert not [line for line in planned("bbr") if line.endswith("nginx-h3")]
    assert [line for line in planned("bbr") if line.endswith("gatling-h3")]


def test_goodput_is_that_of_the_median_download():
    assert goodput.goodput(said(0.5, reset=0), 5) == pytest.approx(10)
    with pytest.raises(GuestError, match="reset"):
        goodput.goodput(said(0.5, reset=1), 5)
