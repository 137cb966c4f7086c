"""Profiles of benchmarks, and flame graphs of them."""

import html
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import stacks
from gatling import Root, Server
from running import httpbench

SUITE = Path(__file__).parents[2] / "bench" / "suite"
BEFORE = "kbench;main;mmap;slow 30\nkbench;main;mmap;same 10\nkbench;main;read 4\n"
AFTER = "kbench;main;mmap;quick 5\nkbench;main;mmap;same 10\nkbench;main;read 4\n"


@pytest.fixture(autouse=True)
def tools(plain, monkeypatch):
    monkeypatch.setenv("PATH", f"{plain}/tools/inferno/bin:{os.environ['PATH']}")
    if not shutil.which("inferno-flamegraph"):
        pytest.skip("there is no cargo to install inferno with")


def sample(command, *frames):
    """Returns a sample as perf script prints it."""
    lines = [f"{command}    81     1.600615: cpu-clock: ", *(f"\tffffffff819be45c {name} ([kernel.kallsyms])" for name in frames)]
    return "\n".join(lines) + "\n\n"


def run(program, *arguments, status=0, **options):
    done = subprocess.run([SUITE / program, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False, **options)
    assert done.returncode == status, done.stderr
    return done


def flame(tmp_path, *arguments, **options):
    for name, folded in (("before", BEFORE), ("after", AFTER)):
        (tmp_path / name).write_text(folded)
    return run("flame", "--out", tmp_path / "flame.svg", *arguments, cwd=tmp_path, **options)


def functions_in(svg):
    """Returns {function: percent of all samples} of a flame graph."""
    titles = map(html.unescape, re.findall(r"<title>(.*?)</title>", svg))
    return {match[1]: float(match[2]) for match in (re.match(r"(.+) \([\d,]+ samples, ([\d.]+)%", title) for title in titles) if match}


def test_samples_are_folded():
    assert stacks.fold(2 * sample("kbench", "inner", "outer") + sample("kbench", "outer")) == "kbench;outer 1\nkbench;outer;inner 2\n"


def test_where_a_part_is_measured_nothing_else_is_kept():
    text = sample("kbench", "make_file") + sample("measured", "mmap")
    assert stacks.fold(text) == "measured;mmap 1\n"
    assert stacks.fold(sample("kbench", "make_file")) == "kbench;make_file 1\n"


def test_what_sampling_costs_is_left_out():
    assert stacks.fold(sample("kbench", "mmap") + sample("kbench", "memset", "perf_event_mmap", "mmap")) == "kbench;mmap 1\n"


def test_a_function_has_the_time_of_what_it_calls_and_once_if_it_calls_itself():
    found = stacks.functions_of("a;b;a;c 4\na;d 2\n")
    assert {name: ns / stacks.PERIOD_NS for name, ns in found.items()} == {"a": 6, "b": 4, "c": 4, "d": 2}


def test_the_functions_that_changed_most_come_first():
    assert [row[0] for row in stacks.most_changed(BEFORE, AFTER)][:5] == ["slow", "kbench", "main", "mmap", "quick"]


def test_a_graph_has_the_functions_as_wide_as_their_time(tmp_path):
    flame(tmp_path, "before")
    found = functions_in((tmp_path / "flame.svg").read_text())
    assert found["main"] == 100 and found["slow"] == 68.18 and found["mmap"] == 90.91


def test_two_profiles_make_a_graph_of_what_changed(tmp_path):
    done = flame(tmp_path, "before", "after")
    svg = (tmp_path / "flame.svg").read_text()
    assert re.search(r"<title>quick \(5 samples, 26\.32%; \+[\d.]+%\)</title>", svg)
    assert re.search(r"7\.50 ms +0\.00 ms +slow", done.stdout) and re.search(r"0\.00 ms +1\.25 ms +quick", done.stdout)


def test_a_graph_may_be_of_one_function(tmp_path):
    flame(tmp_path, "--below", "mmap", "before")
    assert functions_in((tmp_path / "flame.svg").read_text()) == {"all": 100, "mmap": 100, "slow": 75, "same": 25}
    assert "nowhere is in no stack" in flame(tmp_path, "--below", "nowhere", "before", status=1).stderr


def test_what_is_missing_is_named_with_what_installs_it(tmp_path, plain, monkeypatch):
    monkeypatch.setattr(stacks, "TOOLS", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(stacks.NoStacks, match="inferno-flamegraph is not there: make inferno"):
        stacks.flame(BEFORE, "")
    with pytest.raises(stacks.NoStacks, match="perf is not there: make deps FOR=profile"):
        stacks.profile_command([plain / "bench" / "kbench"])


def test_a_benchmark_is_profiled_beside_its_run_and_the_report_shows_where_its_time_goes(plain, tmp_path):
    for name in ("one", "two"):
        run("run", "--build", plain, "--only", "mmap", "--runs", 1, "--profile", "--label", name, "--out", tmp_path / name)
    folded = (tmp_path / "one" / "mmap.folded").read_text()
    assert all(line.startswith("measured;") for line in folded.splitlines())
    assert any("mmap" in function for function in stacks.functions_of(folded))
    run("report", "--out", tmp_path / "report.html", tmp_path / "one", tmp_path / "two")
    page = (tmp_path / "report.html").read_text()
    assert page.count("<iframe") == 3 and "<h4>mmap: two against one</h4>" in page and "<td><code>" in page


def test_a_process_that_runs_is_sampled(plain, tmp_path):
    path = tmp_path / "folded"
    with subprocess.Popen(["/usr/bin/python3", "-c", "while True: pass"]) as process:
        with stacks.profile_process(process.pid, path):
            subprocess.run([plain / "bench" / "kbench", "socket", "-n", "2000"], stdout=subprocess.DEVNULL, check=True)
        process.kill()
    assert all(line.startswith("python3;") for line in path.read_text().splitlines())


def test_httpbench_samples_a_server(plain, tmp_path):
    root = Root({"index.html": b"hello"})
    with Server(plain, root, "-j", "1") as server:
        command = [plain / "bench" / "httpbench", "--profile", str(server.pid), "-d", "1", server.url("/")]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    root.remove()
    assert not done.stderr
    run("flame", "--out", tmp_path / "flame.svg", tmp_path / "perf.data")
    assert "epoll_wait" in " ".join(functions_in((tmp_path / "flame.svg").read_text()))


def test_what_cannot_be_sampled_is_named(plain):
    def said(pid, **options):
        return httpbench(plain, "--profile", pid, "-n", 1, "http://127.0.0.1:1/", status=2, **options).stderr

    assert "there is no process 4194305" in said(4194305)
    assert "cannot start perf(1)" in said(os.getpid(), env=os.environ | {"PATH": "/nowhere"})
