"""httpbench on a terminal, as a person sees it."""

import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from origin import OK, Origin, certificate, reset, speaking
from running import httpbench


def see(venv, columns, rows, *command, locale="C.UTF-8"):
    script = Path(__file__).with_name("screen.py")
    done = subprocess.run([venv / "bin" / "python", script, str(columns), str(rows), *map(str, command)],
                          capture_output=True, text=True, check=True, env=os.environ | {"LC_ALL": locale})  # fmt: skip
    return json.loads(done.stdout)


def slow_third(connection, number, _):
    if number == 50:
        reset(connection)
        return None
    time.sleep(0.1 if number % 3 == 0 else 0.001)
    return OK


@pytest.mark.alone
@pytest.mark.parametrize("columns,rows,locale", [(80, 24, "C.UTF-8"), (132, 50, "C.UTF-8"), (80, 24, "C")])
def test_rates_failures_and_a_map_of_durations_fill_the_screen(plain, venv, columns, rows, locale):
    with Origin(slow_third) as origin:
        url = origin.url
        seen = see(venv, columns, rows, plain / "bench" / "httpbench", "--tui", "-d", 3, "-R", 100, url, locale=locale)
    assert seen["status"] == 1 and len(seen["screens"]) == 1 and seen["screens"][0]["cursor_hidden"] is False
    lines = seen["screens"][0]["lines"]
    assert lines[0].startswith(url) and lines[0].endswith("3 s of 3 s")
    assert lines[1].startswith("64 connections, 1 thread, 100 a second due")
    assert re.match(r"answered \d+ a second, at most 1?\d\d ", lines[3])
    assert re.match(r"failed   \d a second, at most 1 reset 1 ", lines[5])
    map_rows = [line for line in lines[7 : rows - 7] if re.match(r" +[\d.]+(ns|us|ms|s) ", line)]
    assert len(map_rows) == rows - 14
    shades = "░▒▓█" if locale == "C.UTF-8" else ".:+#"
    marked = [line[:8].strip() for line in map_rows if any(c in shades for c in line[9:])]
    assert any(m.endswith("ms") and 40 < float(m[:-2]) < 120 for m in marked)  # the slow third; the host may be slower
    assert marked[-1].endswith(("us", "ms")) and len(marked) > 1
    assert any(line.startswith("whole ") for line in lines)
    assert all(ord(c) < 128 for line in lines for c in line) or locale == "C.UTF-8"
    assert seen["besides"].lstrip().startswith("answered ")


def test_an_interrupt_gives_the_screen_back_and_reports(plain, venv):
    with Origin() as origin:
        seen = see(venv, 80, 24, "--interrupt-after", "1 s of 60 s", plain / "bench" / "httpbench", "--tui", "-d", 60, origin.url)
    assert seen["status"] == 0 and len(seen["screens"]) == 1 and "verdict" in seen["besides"]


def test_a_second_interrupt_ends_at_once_and_gives_the_screen_back(plain, venv):
    with Origin(lambda *_: time.sleep(60)) as origin:
        seen = see(venv, 80, 24, "--interrupt-twice-after", "1 s of 60 s",
                   plain / "bench" / "httpbench", "--tui", "-d", 60, "-T", 60, origin.url)  # fmt: skip
    assert seen["status"] == 130 and len(seen["screens"]) == 1 and seen["besides"] == ""


@pytest.mark.parametrize("columns,rows", [(80, 24), (50, 17)])
def test_nothing_pushes_the_title_off_the_screen(plain, venv, tmp_path, columns, rows):
    """With everything that can be measured, and many kinds of failures."""
    answers = [OK, b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", b"SSH-2.0\r\n", OK[:-1], None]
    with Origin(lambda _, number, __: answers[number % 5], context=speaking(certificate(tmp_path, "a", "IP:127.0.0.1"))) as origin:
        url = origin.url
        seen = see(venv, columns, rows, plain / "bench" / "httpbench", "--tui", "-d", 1.2, "-R", 50, "-k", 5, "--insecure", url)
    lines = seen["screens"][0]["lines"]
    assert lines[0].startswith(url) and lines[0].endswith("1 s of 1 s") and lines[rows - 1].startswith("lateness ")


def test_a_small_terminal_is_told(plain, venv):
    with Origin() as origin:
        seen = see(venv, 30, 10, plain / "bench" / "httpbench", "--tui", "-d", 1.2, origin.url)
    assert "the terminal is too small" in "".join(seen["screens"][0]["lines"])


def test_there_has_to_be_a_terminal(plain):
    assert "--tui" in httpbench(plain, "--tui", "http://127.0.0.1/", status=2).stderr


def test_the_report_fits_80_columns(plain):
    def behave(_, number, __):
        time.sleep(0.111 if number % 2 else 0)
        return OK

    with Origin(behave) as origin:
        report = httpbench(plain, "-d", 1, "-R", 100, origin.url).stdout
    assert max(map(len, report.splitlines())) <= 80


def test_a_long_line_of_the_report_goes_on_below(plain):
    """Many kinds of failures, and a verdict with its reason: no connection is free for due
    requests."""
    others = [status(code) for code in (404, 500, 503, 504)]
    answers = [OK, OK[:-1], None, b"SSH-2.0\r\n", b"", *others]

    def behave(connection, number, _):
        time.sleep(0.02)
        answer = answers[number % len(answers)]
        if answer is None:
            reset(connection)
        return answer

    with Origin(behave) as origin:
        report = httpbench(plain, "-d", 1, "-R", 200, "-c", 1, "-T", 0.5, origin.url, status=1).stdout
    assert max(map(len, report.splitlines())) <= 80
    failed, verdict = (re.search(rf"^{name} .*\n((?: {{11}}\S.*\n)*)", report, re.MULTILINE) for name in ("failed", "verdict"))
    assert failed and failed.group(1) and "wrong_status" in failed.group() and "unsent" in failed.group()
    assert verdict and verdict.group(1) and "quicker server" in verdict.group()


def status(code):
    return b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % code


def test_a_line_on_a_terminal_and_nothing_on_a_pipe(plain, venv):
    with Origin() as origin:
        seen = see(venv, 80, 24, plain / "bench" / "httpbench", "-d", 2.2, "-R", 100, origin.url)
        silent = httpbench(plain, "-d", 1.2, "-R", 100, origin.url)
    lines = seen["besides"].split("\r")
    assert [line for line in lines if re.fullmatch(r" +1 s +\d+ a second, 50% \S+, 99% \S+, 0 failed\033\[K", line)]
    assert not seen["screens"] and silent.stderr == "" and "\r" not in silent.stdout
