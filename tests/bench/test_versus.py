"""The program that compares servers, with those that are always installed."""

import math
import re
import statistics
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

import pytest

import h2load
import plots

VERSUS = Path(__file__).parents[2] / "bench" / "versus"


def versus(plain, *arguments, program="versus.py"):
    return subprocess.run([sys.executable, VERSUS / program, plain, *map(str, arguments)], capture_output=True, text=True,
                          timeout=120, check=False)  # fmt: skip


@pytest.mark.alone
def test_each_server_is_measured_in_each_round(plain, tmp_path):
    done = versus(plain, "--only", "1k,once-1k,pipelined,head,304,404,mix,workers", "--servers", "gatling,epoll,lazy",
                  "--rounds", 2, "--seconds", 0.05, "--out", tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    header, *rows = ((line.split("\t")) for line in (tmp_path / "versus.tsv").read_text().splitlines())
    measured = {(row[0], row[1]): [] for row in rows}
    for row in rows:
        values = dict(zip(header, row))
        assert float(values["rate"]) > 0 and float(values["cpu_us"]) > 0 and values["failed"] == "0"
        assert float(values["all_us"]) >= 0  # in ticks of 10 ms
        measured[row[0], row[1]].append(values["round"])
    assert all(rounds == ["0", "1"] for rounds in measured.values())
    assert {server for case, server in measured if case == "1k"} == {"gatling", "epoll", "lazy"}
    assert {server for case, server in measured if case == "404"} == {"gatling"}
    assert "1 KB: CPU, ratio to the smallest program" in done.stdout


@pytest.mark.alone
def test_https_and_http_2_are_measured_as_well(plain, tmp_path):
    done = versus(plain, "--only", "tls-1k,handshake,h2-1k,h2c-1k", "--servers", "gatling", "--rounds", 1, "--seconds", 0.1, "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split("\t") for line in (tmp_path / "versus.tsv").read_text().splitlines()]
    assert [row[0] for row in rows[1:]] == ["tls-1k", "handshake", "h2-1k", "h2c-1k"]
    assert all(float(row[3]) > 0 and float(row[4]) > 0 for row in rows[1:])


PRINTED = """
Application protocol: h2
TLS Protocol: TLSv1.3
Cipher: TLS_AES_128_GCM_SHA256

finished in 502.35ms, 19.91 req/s, 19.45KB/s
requests: 10 total, 12 started, 10 done, 9 succeeded, 1 failed, 0 errored, 0 timeout
status codes: 9 2xx, 0 3xx, 1 4xx, 0 5xx
traffic: 10.00KB (10240) total, 100B (100) headers (space savings 90.00%), 9.00KB (9216) data
"""


def test_what_h2load_says_is_understood():
    log = "".join(f"1700000000000000\t200\t{us}\n" for us in range(1, 10)) + "1700000000000000\t404\t5000\n"
    result = h2load.measured(PRINTED, log, 1024)
    assert result["answered"] == 9 and abs(result["elapsed_s"] - 0.50235) < 1e-9 and result["failed"] == 1
    assert result["percentiles_us"] == [5, 9, 9] and result["tls"] == "TLSv1.3 TLS_AES_128_GCM_SHA256"
    with pytest.raises(h2load.NotUnderstood):
        h2load.measured("nothing", "", 1)


def test_a_case_that_there_is_not_is_named(plain, tmp_path):
    done = versus(plain, "--only", "2k", "--out", tmp_path)
    assert done.returncode == 1 and "there is no case 2k" in done.stderr


@pytest.mark.alone
def test_a_crowd_comes_to_each_server_at_each_load(plain, tmp_path):
    done = versus(plain, "--servers", "gatling", "--rate", 40, "--seconds", 1, "--out", tmp_path, program="slashdot.py")
    assert done.returncode == 0, done.stdout + done.stderr
    rows, seconds = (
        [dict(zip(heads, row)) for row in rows]
        for heads, *rows in ([line.split("\t") for line in (tmp_path / name).read_text().splitlines()] for name in ("slashdot.tsv", "slashdot-seconds.tsv"))
    )
    assert [row["load"] for row in rows] == ["knee", "0.5", "1", "4", "2"]
    assert [float(row["offered"]) for row in rows[1:]] == [20, 40, 160, 80]
    for row in rows:
        assert float(row["goodput"]) > 0.5 * float(row["offered"]) and float(row["resident"]) > 1e6
        assert 0 < float(row["p50_ms"]) <= float(row["p99_ms"]) and {row[key] for key in ("refused", "cut", "late", "failed")} == {"0.00"}
    assert len(seconds) == len(rows) * 6 and {second["load"] for second in seconds} == {row["load"] for row in rows}
    goodput = statistics.mean(float(row["goodput"]) for row in rows if row["load"] == "4")
    assert re.search(rf"^gatling +{goodput:.0f} +\d+% ", done.stdout, re.MULTILINE)
    curves = {path.stem for path in tmp_path.glob("*.svg")}
    assert {"slashdot-goodput", "slashdot-p99", "slashdot-seconds-4", "slashdot-resident", "slashdot-tcp"} <= curves
    ET.parse(tmp_path / "slashdot-goodput.svg")


def test_visitors_who_ask_for_nothing_are_refused(plain, tmp_path):
    done = versus(plain, "--pages", "0", "--out", tmp_path, program="slashdot.py")
    assert done.returncode == 1 and "asks for one page at least" in done.stderr


def test_a_server_that_there_is_not_is_named(plain, tmp_path):
    done = versus(plain, "--servers", "apache", "--out", tmp_path, program="slashdot.py")
    assert done.returncode == 1 and "there is no server apache" in done.stderr


def test_a_measure_that_no_server_has_is_not_drawn(tmp_path):
    none = {"one": {"rate": [5.0], "cpu_us": [2.0], "p50_us": [9.0], "p99_us": [math.nan], "p999_us": [math.nan]}}
    results = SimpleNamespace(cases={"many": none}, memory={})
    try:
        plots.plot(tmp_path, results, {"many": SimpleNamespace(protocol="http", title="many")})
    except FileNotFoundError:
        pytest.skip("gnuplot is not installed")
    assert {path.name for path in tmp_path.iterdir()} == {"rate.svg", "cpu.svg", "p50.svg"}
