"""gatling over a network with a delay and loss, in an emulated machine."""

import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

import pytest

import delay

PROGRAM = Path(delay.__file__)


def measured(plain, *arguments, status=0, **options):
    done = subprocess.run([sys.executable, PROGRAM, plain, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          check=False, **options)  # fmt: skip
    if status == 0 and ("apt-get" in done.stderr or "is not installed" in done.stderr):
        pytest.skip(done.stderr.strip())
    assert done.returncode == status, done.stdout + done.stderr
    return done


def table(directory):
    head, *rows = (line.split("\t") for line in (directory / "delay.tsv").read_text().splitlines())
    return [dict(zip(head, row)) for row in rows]


def example(delay_ms=40, loss=1, server="gatling", control="cubic"):
    page = {"durations": {"whole": {"percentiles_ns": {"50": 80_200_000, "99": 1_100_000_000}}}}
    download = {"durations": {"whole": {"percentiles_ns": {"50": 1_000_000_000, "99": 2_000_000_000}}}}
    kept = "# idle\tanswered\n# open\tconnect_ns\tfirst_byte_idle_ns\n0\t9\tNA\n5\t9\t41000000\n5\t9\t40100000\n5\t9\t40000000\n"
    return delay.row_of((control, loss, delay_ms, server), json.dumps(page), kept, f"7 150000 400000 90000 200000\n{json.dumps(download)}", 2)


def test_a_row_has_what_a_guest_has_written():
    assert example() == {
        "control": "cubic", "loss": 1, "delay_ms": 40, "server": "gatling", "first_p50_ms": 80.2, "first_p99_ms": 1100, "kept_p50_ms": 40.1, "goodput": 2,
        "queued": 0.15, "queued_max": 0.4, "unsent": 0.09, "unsent_max": 0.2,
    }  # fmt: skip


def test_the_plan_has_each_server_in_each_network():
    arguments = SimpleNamespace(servers=["gatling", "nginx"], losses=[0, 1], delays=[0, 40], pages=5, connections=3, downloads=2)
    lines = dict(line.split(" ", 1) for line in delay.plan(delay.opening({"modules/veth.ko": None}, "bbr"), arguments))
    assert lines["modules/veth.ko"] == "/modules/veth.ko" and lines["prepare"].endswith("prepare bbr")
    assert lines["1%-40ms"].endswith("network 20 1 1000000")
    assert {f"{loss}%-{ms}ms-{name}-{what}" for loss in (0, 1) for ms in (0, 40) for name in arguments.servers for what in ("page", "kept", "download")} < set(lines)


def test_a_plot_has_a_panel_for_each_loss(tmp_path):
    rows = [example(*key) for key in ((ms, loss, server) for loss in (0, 1) for ms in (0, 40) for server in ("gatling", "nginx"))]
    delay.write_tsv(tmp_path / "delay.tsv", rows)
    assert len(table(tmp_path)) == 8 and table(tmp_path)[0]["goodput"] == "2.000"
    try:
        delay.plot(tmp_path, rows, SimpleNamespace(delays=[0, 40]))
    except FileNotFoundError:
        pytest.skip("gnuplot is not installed")
    assert {path.stem for path in tmp_path.glob("*.svg")} == {"delay-first-p50", "delay-first-p99", "delay-kept-p50", "delay-goodput", "delay-queued"}
    text = (tmp_path / "delay-goodput.svg").read_text()
    ET.fromstring(text)
    assert all(words in text for words in ("0 % lost", "1 % lost", "gatling, cubic", "nginx, cubic"))


def test_what_was_nothing_each_time_is_said_in_its_panel(tmp_path):
    """A kernel may send so fast that nothing is ever found in its queue, and 0 has no logarithm."""
    rows = [{**example(0, loss), "queued": queued} for loss, queued in ((0, 0.0), (1, 0.15))]
    try:
        delay.plot(tmp_path, rows, SimpleNamespace(delays=[0]))
    except FileNotFoundError:
        pytest.skip("gnuplot is not installed")
    texts = {name: (tmp_path / f"delay-{name}.svg").read_text() for name in ("queued", "goodput")}
    ET.fromstring(texts["queued"])
    assert {name: text.count("no value to draw") for name, text in texts.items()} == {"queued": 1, "goodput": 0}
    assert texts["queued"].count("gatling, cubic") >= 1


def test_a_request_takes_two_round_trips(plain, tmp_path):
    measured(plain, "--servers", "gatling", "--controls", "bbr", "--delays", 40, "--losses", 0, "--pages", 5, "--downloads", 1,
             "--out", tmp_path)  # fmt: skip
    (row,) = table(tmp_path)
    assert row["control"] == "bbr" and row["server"] == "gatling"
    assert 80 < float(row["first_p50_ms"]) < 85 and 40 < float(row["kept_p50_ms"]) < 43
    assert 1 < float(row["goodput"]) < 2 / 0.08
    assert 0.01 < float(row["queued"]) < float(row["queued_max"]) <= 2.1


def test_the_kernel_that_runs_serves_too(plain, tmp_path):
    """Without netem, there is no delay: a program that does nothing replaces tc(8)."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("this takes root and ip(8)")
    shutil.copy(shutil.which("true"), tmp_path / "tc")
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    measured(plain, "--kernel", "this", "--servers", "gatling", "--controls", "reno", "--delays", 0, "--losses", 0, "--pages", 5,
             "--connections", 5, "--downloads", 1, "--out", tmp_path, env=environment)  # fmt: skip
    (row,) = table(tmp_path)
    assert 0 < float(row["first_p50_ms"]) < 80 and float(row["goodput"]) > 1
    (tmp_path / "tc").write_text("#!/bin/sh\nexit 1\n")
    refused = measured(plain, "--kernel", "this", env=environment, status=1)
    assert "has no netem" in refused.stderr and not refused.stdout


def test_what_there_is_not_is_named(plain, tmp_path):
    assert "there is no server apache" in measured(plain, "--servers", "apache", status=1).stderr
    assert "/boot/vmlinuz" in measured(plain, "--kernel", "/boot/vmlinuz", status=1).stderr
    wrong = measured(plain, "--servers", "gatling", "--controls", "none", "--out", tmp_path, status=1).stderr
    assert "tcp_none" in wrong or "apt-get" in wrong or "is not installed" in wrong


def test_the_sampler_says_how_it_is_used(plain):
    done = subprocess.run([plain / "bench" / "queued", "0", "1"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "usage: queued" in done.stderr
