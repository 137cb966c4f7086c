"""The script that measures servers beside each other, with those that are always there."""

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "bench" / "versus.py"


def versus(plain, *arguments):
    return subprocess.run([sys.executable, PROGRAM, plain, *map(str, arguments)], capture_output=True, text=True,
                          timeout=120, check=False)  # fmt: skip


def test_each_server_is_measured_in_each_round(plain, tmp_path):
    done = versus(plain, "--only", "1k,once-1k,pipelined,head,304,404,mix,workers", "--servers", "gatling,epoll,lazy",
                  "--rounds", 2, "--seconds", 0.05, "--out", tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    header, *rows = ((line.split("\t")) for line in (tmp_path / "versus.tsv").read_text().splitlines())
    measured = {(row[0], row[1]): [] for row in rows}
    for row in rows:
        values = dict(zip(header, row))
        assert float(values["rate"]) > 0 and float(values["cpu_us"]) > 0 and values["failed"] == "0"
        measured[row[0], row[1]].append(values["round"])
    assert all(rounds == ["0", "1"] for rounds in measured.values())
    assert {server for case, server in measured if case == "1k"} == {"gatling", "epoll", "lazy"}
    assert {server for case, server in measured if case == "404"} == {"gatling"}
    assert "1 KB: CPU, ratio to the smallest program" in done.stdout


def test_a_case_that_there_is_not_is_named(plain, tmp_path):
    done = versus(plain, "--only", "2k", "--out", tmp_path)
    assert done.returncode == 1 and "there is no case 2k" in done.stderr
