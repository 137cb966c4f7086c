"""How a run of httpbench ends, and the time for which it is measured."""

import json
import re
import signal
import subprocess
import threading
import time

import pytest

from origin import OK, Origin
from running import failures, httpbench


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("more", [[], ["-R", 100], ["-n", 100]], ids=["closed", "open", "number"])
def test_what_is_under_way_when_a_signal_comes_is_dropped(build, tmp_path, number, more):
    stalled = threading.Event()

    def behave(_, request, __):
        if request <= 40:
            return OK
        stalled.set()
        time.sleep(60)

    with Origin(behave) as origin:
        command = [build / "bench" / "httpbench", *map(str, more), "-c", "50", "-T", "60", "--json", tmp_path / "json", origin.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            stalled.wait(20)
            told = time.monotonic()
            process.send_signal(number)
            output = process.communicate(timeout=20)[0]
            assert 0.9 < time.monotonic() - told < 4 and process.returncode == 0
    result = json.loads((tmp_path / "json").read_text())
    assert result["answered"] == 40 and not failures(result) and result["interrupted"]
    assert result["durations"]["whole"]["censored"] == 0 and result["elapsed_s"] < 10
    assert re.match(r"answered   40 in .*; interrupted\n", output) and "\nwhole " in output
    assert result["dropped"] and f"\ndropped    {result['dropped']} " in output


def test_what_waits_for_a_connection_when_a_signal_comes_was_due_all_the_same(build, tmp_path):
    served = threading.Event()
    with Origin(lambda _, number, __: number == 100 and served.set() or time.sleep(0.01) or OK) as origin:
        command = [build / "bench" / "httpbench", "-R", "1000", "--arrival", "constant", "-d", "60", "-c", "1",
                   "--json", tmp_path / "json", origin.url]  # fmt: skip
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert served.wait(50)
            process.send_signal(signal.SIGINT)
            output = process.communicate(timeout=20)[0]
    result = json.loads((tmp_path / "json").read_text())
    due = int(re.search(r"^due        (\d+),", output, re.MULTILINE).group(1))
    assert due == result["answered"] + result["dropped"] and due >= 900 * result["elapsed_s"] and result["elapsed_s"] >= 1


def test_a_second_signal_ends_the_program_at_once(build):
    stalled = threading.Event()
    with Origin(lambda *_: stalled.set() or time.sleep(60)) as origin:
        command = [build / "bench" / "httpbench", "-c", "2", "-T", "60", origin.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            stalled.wait(20)
            process.send_signal(signal.SIGINT)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.5)  # two signals within 0.3 s are one
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=20)[0] == "" and process.returncode == 128 + signal.SIGINT


@pytest.mark.parametrize("rate", [[], ["-R", 100]], ids=["closed", "open"])
def test_a_server_that_dies_is_measured_for_the_whole_duration(build, tmp_path, rate):
    with Origin(lambda _, number, __: OK if number <= 40 else time.sleep(30)) as origin:
        result = httpbench(build, "-d", 2, "-c", 4, "-T", 0.5, *rate, origin.url, status=1, tmp_path=tmp_path)
        assert result["answered"] == 40 and 2 <= result["elapsed_s"] < 2.1


def test_a_number_of_requests_is_measured_until_the_last_has_ended(build, tmp_path):
    with Origin(lambda _, number, __: OK if number <= 40 else time.sleep(30)) as origin:
        for more in ([], ["-d", 30]):
            result = httpbench(build, "-n", 44, "-c", 4, "-T", 1, *more, origin.url, status=1, tmp_path=tmp_path)
            assert 1 <= result["elapsed_s"] < 5
            origin.requests = 0


@pytest.mark.parametrize("more", [["-n", 40], ["-d", 1.2, "-R", 100], ["-n", 150, "-R", 120]], ids=["number", "duration", "open"])
def test_the_last_second_ends_with_the_run(build, tmp_path, more):
    """Its rate is that of the answers, not of the time at which they were collected."""
    with Origin() as origin:
        result = httpbench(build, "-c", 4, *more, "--tsv", tmp_path / "tsv", "--hlog", tmp_path / "hlog", origin.url, tmp_path=tmp_path)
    lines = [[float(value) for value in line.split("\t")[:3]] for line in (tmp_path / "tsv").read_text().splitlines()[1:]]
    assert lines[-1][1] == pytest.approx(result["elapsed_s"], abs=2e-6) and sum(line[2] for line in lines) == result["answered"]
    assert all(start < end for start, end, _ in lines) and all(a[1] == b[0] for a, b in zip(lines, lines[1:]))
    intervals = re.findall(r"^Tag=whole,([\d.]+),([\d.]+),", (tmp_path / "hlog").read_text(), re.MULTILINE)
    assert float(intervals[-1][0]) + float(intervals[-1][1]) == pytest.approx(result["elapsed_s"], abs=3e-6)


def test_one_late_answer_does_not_change_the_rate(build, tmp_path):
    with Origin(lambda _, number, __: OK if number != 20 else time.sleep(3) or OK) as origin:
        command = [build / "bench" / "httpbench", "-d", "1", "-c", "4", "-T", "10", "--json", tmp_path / "json",
                   "--hlog", tmp_path / "log", origin.url]  # fmt: skip
        report = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    result = json.loads((tmp_path / "json").read_text())
    in_time = result["answered"] - result["late"]
    assert 1 <= result["late"] <= 4 and 1.5 < result["after_s"] < 9 and result["elapsed_s"] == 1
    assert result["answered_per_s"] == pytest.approx(in_time)
    assert re.search(rf"^answered   {result['answered']} in 1.00 s, {in_time} a second\nlate       {result['late']} of them", report, re.MULTILINE)
    merged = subprocess.run([build / "bench" / "httpbench", "merge", tmp_path / "log"], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert f", {in_time} a second" in merged and f"\nlate       {result['late']} of them" in merged


def test_what_ends_after_the_run_has_a_second_of_its_own(build, tmp_path):
    with Origin(lambda _, number, __: OK if number <= 40 else time.sleep(30)) as origin:
        result = httpbench(build, "-d", 1, "-c", 4, "-T", 0.5, "--tsv", tmp_path / "tsv", origin.url, status=1, tmp_path=tmp_path)
    lines = [[float(value) for value in line.split("\t")[:4]] for line in (tmp_path / "tsv").read_text().splitlines()[1:]]
    assert result["elapsed_s"] == 1 and all(start < end for start, end, *_ in lines)
    assert sum(line[3] for line in lines) == sum(failures(result).values())
