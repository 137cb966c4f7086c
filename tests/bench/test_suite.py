"""The suite: what it runs, keeps, and prints meanwhile."""

import re
import subprocess
from pathlib import Path

import analysis
import pytest
from suite import JOBS, chosen, table_path

RUN = Path(__file__).parents[2] / "bench" / "suite" / "run"


def run_suite(plain, *arguments, status=0):
    done = subprocess.run([RUN, "--build", plain, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def test_tables_are_kept_with_a_label(plain, tmp_path):
    out = tmp_path / "results"
    done = run_suite(plain, "--only", "socket,mmap", "--runs", 2, "--label", "6.1 stock", "--out", out)
    assert (out / "label").read_text() == "6.1 stock\n"
    assert sorted(path.name for path in out.iterdir()) == ["label", "mmap.tsv.gz", "series", "socket.tsv.gz"]
    table = analysis.load(table_path(out, "socket"))
    assert len(table.runs) == 2 and table.runs[1]["n"].max() > 14_000 and len(table.runs[1]["n"]) <= 1000
    assert re.search(r"\[ 1/2\] socket +less than a minute left", done.stdout)


def test_the_name_of_a_job_means_that_job_alone():
    assert [job.name for job in chosen("bind", JOBS)] == ["bind"]
    assert [job.name for job in chosen("mmap,bind-reuse", JOBS)] == ["bind-reuse", "mmap"]


def test_the_name_of_a_benchmark_that_no_job_has_means_all_its_jobs():
    assert {job.name for job in chosen("event", JOBS)} == {job.name for job in JOBS if job.name.startswith("event-")}


def test_what_there_is_not_is_named(plain, tmp_path):
    assert "there is no sockets" in run_suite(plain, "--only", "sockets", "--out", tmp_path, status=1).stderr
    assert "make bench builds it" in run_suite(tmp_path, "--only", "socket", "--out", tmp_path, status=1).stderr


@pytest.mark.parametrize("size", ["small", "paper"])
def test_each_benchmark_has_a_name_of_its_own(size):
    assert len({job.name for job in JOBS}) == len(JOBS)
    assert all(getattr(job, size) > 0 for job in JOBS)


def test_what_all_runs_say_is_said_once(plain, tmp_path):
    command = [RUN, "--build", plain, "--only", "relay-vlan", "--runs", "3", "--out", tmp_path]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, timeout=120, check=True)
    assert done.stderr.count("vlan takes root, ip(8)") == 1
    assert [verdict for verdict, _ in analysis.load(table_path(tmp_path, "relay-vlan")).verdicts.values()] == 3 * ["SKIP"]
