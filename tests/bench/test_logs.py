"""The logs of several load generators: how these are started together, and the logs merged."""

import base64
import json
import math
import os
import re
import struct
import subprocess
import time
import zlib
from pathlib import Path

import pytest

from origin import OK, Origin
from running import httpbench

pytestmark = pytest.mark.decided


def test_the_logs_are_what_the_histogram_package_reads(plain, tmp_path, venv):
    with Origin() as origin:
        result = httpbench(plain, "-d", 2.5, "-R", 300, "--hlog", tmp_path / "log", origin.url, tmp_path=tmp_path)
    check_same(hdr(venv, "read", tmp_path / "log"), result["durations"])


def test_logs_are_merged_as_the_histogram_package_merges_them(plain, tmp_path, venv):
    logs = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    for seed, log in enumerate(logs):
        hdr(venv, "write", log, str(seed), "5000")
    result = httpbench(plain, "merge", "--json", tmp_path / "json", *logs)
    merged = json.loads((tmp_path / "json").read_text())
    check_same(hdr(venv, "read", *logs), merged["durations"])
    assert merged["answered"] == 15000 and "15000" in result.stdout


def hdr(venv, *arguments):
    script = Path(__file__).with_name("hdr.py")
    done = subprocess.run([venv / "bin" / "python", script, *arguments], capture_output=True, text=True, check=True)
    return json.loads(done.stdout) if done.stdout else None


def check_same(expected, durations):
    assert expected
    for tag, e in expected.items():
        assert durations[tag]["samples"] == e["samples"] and durations[tag]["percentiles_ns"] == e["percentiles_ns"]
        assert durations[tag]["mean_ns"] == pytest.approx(e["mean_ns"], abs=0.1)
        assert durations[tag]["deviation_ns"] == pytest.approx(e["deviation_ns"], abs=0.1)


def test_a_log_cut_short_is_told_and_counts_as_far_as_it_goes(plain, tmp_path):
    with Origin() as origin:
        httpbench(plain, "-d", 2.2, "-R", 300, "--hlog", tmp_path / "log", origin.url)
    lines = (tmp_path / "log").read_text().splitlines(keepends=True)
    whole = [i for i, line in enumerate(lines) if line.startswith("Tag=whole")]
    (tmp_path / "cut").write_text("".join(lines[: whole[1]]) + lines[whole[1]][:100])
    done = httpbench(plain, "merge", tmp_path / "cut", status=2)
    assert re.fullmatch(r"httpbench: .*/cut: .*cut short\n", done.stderr)
    assert re.search(r"^answered   [23]\d\d in", done.stdout, re.MULTILINE)


def test_what_failed_is_in_the_log_and_above_all_percentiles_that_it_reaches(plain, tmp_path, venv):
    def behave(_, number, __):
        return OK if number % 10 else b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"

    with Origin(behave) as origin:
        httpbench(plain, "-n", 100, "-T", 2, "--hlog", tmp_path / "log", origin.url, status=1)
    tags = hdr(venv, "read", tmp_path / "log")
    assert tags["failed_whole"]["samples"] == 10 and tags["failed_whole"]["percentiles_ns"]["50"] == pytest.approx(2e9, rel=1e-3)
    (tmp_path / "cut").write_text("".join(
        line for line in (tmp_path / "log").read_text().splitlines(keepends=True) if not line.startswith("#[Failed")
    ))  # fmt: skip
    httpbench(plain, "merge", "--json", tmp_path / "json", tmp_path / "cut")
    whole = json.loads((tmp_path / "json").read_text())["durations"]["whole"]
    assert whole["samples"] == 90 and whole["censored"] == 10
    assert whole["percentiles_ns"]["90"] < 2e9 and whole["percentiles_ns"]["99"] is None


@pytest.mark.parametrize("cut", [r"#\[Failed.*", r"#\[Run.*", r" answered .*", r"(?<= answered \d\d).*"], ids=lambda c: c.split("*")[0])
def test_a_log_that_lacks_its_last_lines_says_so(plain, tmp_path, cut):
    with Origin() as origin:
        httpbench(plain, "-n", 200, "--hlog", tmp_path / "log", origin.url)
    (tmp_path / "cut").write_text(re.sub(cut, "", (tmp_path / "log").read_text(), flags=re.DOTALL))
    done = httpbench(plain, "merge", tmp_path / "cut", status=2)
    assert "cut short" in done.stderr and "answered   200 in" in done.stdout


def test_counts_above_an_hour_count_as_an_hour(build, tmp_path):
    """Other libraries have a few places for longer durations."""
    counts = b"\xb7\x8b\x04" + b"\x0a"  # 33,500 zeros, then 5
    plain = struct.pack(">IIIIqqd", 0x1C849313, len(counts), 0, 3, 1, 3_600_000_000_000, 1.0) + counts
    packed = zlib.compress(plain)
    text = base64.b64encode(struct.pack(">II", 0x1C849314, len(packed)) + packed).decode()
    (tmp_path / "log").write_text(f"#[StartTime: 1700000000.000 x]\nTag=whole,0.000,1.000,1.000,{text}\n"
                                  "#[Run: elapsed_s 1.0 answered 5 ]\n")  # fmt: skip
    httpbench(build, "merge", "--json", tmp_path / "json", tmp_path / "log")
    whole = json.loads((tmp_path / "json").read_text())["durations"]["whole"]
    assert whole["samples"] == 5 and whole["percentiles_ns"]["50"] == pytest.approx(3.6e12, rel=1e-3)


def test_ranks_have_source_addresses_of_their_own(plain, tmp_path):
    with Origin() as origin:
        of = []
        for rank in (0, 1):
            ranked(plain, tmp_path, rank, "-c", 4, "-k", 1, "--source", "127.0.9.8/29", origin.url, ranks=2)
            of.append({peer[0] for peer in origin.peers})
            origin.peers.clear()
    assert of == [{f"127.0.9.{n}" for n in (9, 10, 11)}, {f"127.0.9.{n}" for n in (12, 13, 14)}]


def ranked(plain, directory, rank, *arguments, ranks=3, **options):
    log = directory / f"{rank}.hlog"
    httpbench(plain, "--rank", rank, "--ranks", ranks, "-n", 30, "--hlog", log, *arguments, **options)
    return log


def test_ranks_that_are_missing_or_there_twice_are_told(plain, tmp_path):
    with Origin() as origin:
        logs = [ranked(plain, tmp_path, rank, origin.url) for rank in (0, 2)]
    done = httpbench(plain, "merge", "--json", tmp_path / "json", *logs, logs[1], status=2)
    assert done.stderr.splitlines() == [
        f"httpbench: {logs[1]}: left out, rank 2 is there already",
        "httpbench: of 3 ranks 1 are missing, the first is 1",
    ]
    assert json.loads((tmp_path / "json").read_text())["answered"] == 20


@pytest.mark.parametrize("other", [["-k", 2], ["-R", 600], ["-T", 3], ["-p", 2]], ids=str)
def test_runs_that_were_told_to_do_something_else_are_not_merged(plain, tmp_path, other):
    with Origin() as origin:
        logs = [ranked(plain, tmp_path, 0, origin.url, ranks=2), ranked(plain, tmp_path, 1, *other, origin.url, ranks=2)]
    done = httpbench(plain, "merge", "--json", tmp_path / "json", *logs, status=2)
    assert f"{logs[1]}: left out, made with other options than {logs[0]}" in done.stderr
    assert json.loads((tmp_path / "json").read_text())["answered"] == 15


def test_the_rate_of_all_is_that_of_the_time_in_which_all_ran(plain, tmp_path, venv):
    """Three logs of a second, with 1,000 answers each; the second log starts half a second
    later."""
    logs = []
    for i, start in enumerate((0, 0.5, 0)):
        logs.append(tmp_path / str(i))
        hdr(venv, "write", logs[-1], str(i), "1000")
        logs[-1].write_text(logs[-1].read_text().replace("StartTime: 1700000000.000", f"StartTime: {1_700_000_000 + start:.3f}"))
    done = httpbench(plain, "merge", "--json", tmp_path / "json", *logs, status=2)
    assert "the logs have 0.5 s of 1 s in common: --start-at makes runs begin together" in done.stderr
    assert re.search(r"^together   for 0\.50 s of 1\.50 s, 3000 a second$", done.stdout, re.MULTILINE)
    assert json.loads((tmp_path / "json").read_text())["answered_per_s"] == pytest.approx(3000)


def run_all(command, environment=None, **popen):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, **(environment or {})}, **popen)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def check_together(plain, directory, origin, logs, answered):
    merged = httpbench(plain, "merge", "--json", directory / "json", *sorted(directory.glob("*.hlog")))
    assert len(list(directory.glob("*.hlog"))) == logs and merged.stdout.count(".hlog: answered") == logs
    result = json.loads((directory / "json").read_text())
    assert result["answered"] == answered == origin.requests


def test_gnu_parallel_starts_several_at_a_time(plain, tmp_path):
    start = math.ceil(time.time()) + 2
    with Origin() as origin:
        run_all(
            ["parallel", "--will-cite", "--sshlogin", "3/:", "cd", tmp_path, ";", plain / "bench" / "httpbench", "--ranks", "3",
             "-R", "300", "--arrival", "constant", "-d", "1", "--start-at", str(start), "--hlog", "{}.hlog", origin.url,
             ":::", "1", "2", "3"]
        )  # fmt: skip
        check_together(plain, tmp_path, origin, 3, 300)
        starts = [float(re.search(r"StartTime: ([\d.]+)", log.read_text()).group(1)) for log in tmp_path.glob("*.hlog")]
        assert all(0 <= s - start < 0.3 for s in starts)


def test_mpi_tells_each_its_rank(plain, tmp_path):
    with Origin() as origin:
        run_all(
            ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2", plain / "bench" / "httpbench", "-n", "101", "-c", "4",
             "--source", "127.0.5.0/28", "--hlog", "%r.hlog", origin.url], cwd=tmp_path
        )  # fmt: skip
        check_together(plain, tmp_path, origin, 2, 101)
        assert len({peer[0] for peer in origin.peers}) == 8


ENVIRONMENTS = [
    {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"},
    {"PMI_RANK": "1", "PMI_SIZE": "4"},
    {"SLURM_PROCID": "1", "SLURM_NTASKS": "4"},
]


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda e: next(iter(e)))
def test_launchers_say_rank_and_size(build, tmp_path, environment):
    with Origin() as origin:
        run_all([build / "bench" / "httpbench", "-n", "102", "--json", tmp_path / "%r.json", origin.url], environment)
        assert json.loads((tmp_path / "1.json").read_text())["answered"] == origin.requests == 26


@pytest.mark.parametrize("environment,rank", [({"JOB_COMPLETION_INDEX": "2"}, 2), ({"PARALLEL_SEQ": "2"}, 1)])
def test_launchers_say_the_rank_alone(build, tmp_path, environment, rank):
    with Origin() as origin:
        command = [build / "bench" / "httpbench", "--ranks", "3", "-n", "100", "--json", tmp_path / "%r.json", origin.url]
        run_all(command, environment)
        assert json.loads((tmp_path / f"{rank}.json").read_text())["answered"] == (33 if rank else 34)


# --- two runs compared ---


@pytest.fixture(scope="module")
def drifting(tmp_path_factory, venv):
    """Makes logs of runs whose latencies drift like those of real ones; the same arguments make the
    same log."""

    def make(seed, seconds=60, samples=150, factor=1.0, failed=0):
        path = tmp_path_factory.mktemp("logs") / "log"
        hdr(venv, "drift", path, *map(str, (seed, seconds, samples, factor, failed)))
        return path

    return make


def test_runs_of_the_same_server_are_not_told_apart(plain, drifting):
    done = httpbench(plain, "compare", "--fail", "p99>5%", "--fail", "rate<5%", drifting(1), drifting(2))
    assert not re.search(r" (more|less)$", done.stdout, re.MULTILINE) and done.stdout.count("%: no, with a confidence of ") == 2
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_run_that_is_slower_is_found_with_an_interval_around_the_truth(plain, drifting):
    done = httpbench(plain, "compare", "--fail", "p99>5%", drifting(3), drifting(4, factor=1.3), status=1)
    for name in ("50%", "99%"):
        least, most, word = re.search(rf"^{name} .* ([\d.]+) to ([\d.]+) +(\w+)$", done.stdout, re.MULTILINE).groups()
        assert float(least) < 1.3 < float(most) and word == "more"
    assert re.search(r"^url +http://a/1.0, http://a/1.3$", done.stdout, re.MULTILINE)
    httpbench(plain, "compare", "--fail", "p99>50%", drifting(3), drifting(4, factor=1.3))


def test_an_interval_that_says_nothing_has_no_upper_bound(plain, drifting):
    """In the second half of the run everything takes a thousand times as long."""
    log, slow = drifting(7, seconds=20), drifting(8, seconds=20, factor=1000).read_text()
    late = re.findall(r"^Tag=whole,1\d\..*\n", slow, re.MULTILINE)
    log.write_text(re.sub(r"^Tag=whole,1\d\..*\n", lambda _: late.pop(0), log.read_text(), flags=re.MULTILINE))
    done = httpbench(plain, "compare", log, log)
    assert re.search(r"^50% .* 1\.000   0\.000 or more$", done.stdout, re.MULTILINE)
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_rate_below_one_is_none_of_zero(plain, drifting):
    """Nothing is answered in every other second."""
    log = drifting(7, samples=1)
    log.write_text(re.sub(r"^Tag=whole,\d*[13579]\.000,.*\n", "", log.read_text(), flags=re.MULTILINE))
    assert re.search(r"^answered +0\.5\d*/s +0\.5\d*/s ", httpbench(plain, "compare", log, log).stdout, re.MULTILINE)


def test_a_rate_that_falls_is_found(plain, drifting):
    done = httpbench(plain, "compare", "--fail", "rate<5%", drifting(5), drifting(6, samples=120), status=1)
    assert re.search(r"^answered +150/s +120/s +0.800 .* less$", done.stdout, re.MULTILINE)


def test_requests_that_time_out_after_the_run_do_not_lower_its_rate(plain, drifting):
    """A run of 60 s, the last request of which timed out ten seconds later."""
    log = drifting(7, failed=1)
    lines = log.read_text().splitlines(keepends=True)
    late = next(line for line in lines if line.startswith("Tag=failed_whole,59.")).replace(",59.000,", ",69.000,")
    lines = [line for line in lines if not line.startswith("Tag=failed")]
    log.write_text("".join(lines[:-2]) + late + "".join(lines[-2:]))
    done = httpbench(plain, "compare", "--fail", "rate<5%", drifting(8), log)
    assert re.search(r"^answered +150/s +150/s +1.000 ", done.stdout, re.MULTILINE)
    assert re.search(r"^sections +20 of 3 s, 20 of 3 s$", done.stdout, re.MULTILINE) and re.search(r"^99% .* to ", done.stdout, re.MULTILINE)


def test_percentiles_among_failed_requests_are_worse_than_any(plain, drifting):
    done = httpbench(plain, "compare", "--fail", "p99>5%", drifting(7), drifting(8, failed=5), status=1)
    assert "p99>5%: yes, too many requests failed" in done.stdout and re.search(r"^99% .* >10.0s ", done.stdout, re.MULTILINE)
    done = httpbench(plain, "compare", "--fail", "p99>5%", drifting(7, failed=5), drifting(8), status=2)
    assert "p99>5%: open" in done.stdout


@pytest.fixture(scope="module")
def queues(tmp_path_factory, venv):
    """Logs of servers that take 500 and 390 requests a second, of 400 that come."""
    paths = {capacity: tmp_path_factory.mktemp("queues") / str(capacity) for capacity in (500, 390)}
    for capacity, path in paths.items():
        hdr(venv, "queue", path, "1", "20", "400", str(capacity))
    return paths


def test_an_overloaded_server_does_not_pass(plain, queues):
    done = httpbench(plain, "compare", "--fail", "p99>5%", queues[500], queues[390], status=1)
    assert re.search(r"^verdict    B: OVERLOADED: a queue grew: ", done.stdout, re.MULTILINE) and "verdict    A" not in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if line[:2] not in ("A ", "B "))  # with paths
    assert "p99>5%: yes, B is overloaded: " in done.stdout


def test_nothing_is_better_than_an_overloaded_server(plain, queues):
    done = httpbench(plain, "compare", "--fail", "p50>5%", queues[390], queues[500], status=2)
    assert "p50>5%: open, A was overloaded itself" in done.stdout


def test_a_run_in_which_the_client_was_the_limit_decides_nothing(plain, queues, tmp_path):
    log = tmp_path / "client"
    log.write_text(queues[500].read_text().replace("#[Run:", "#[Verdict: CLIENT: it was busy]\n#[Run:"))
    done = httpbench(plain, "compare", "--fail", "p99>5%", queues[500], log, status=2)
    assert "p99>5%: open, the verdict of B is CLIENT: it was busy" in done.stdout and "verdict    B: CLIENT: it was busy\n" in done.stdout
    merged = httpbench(plain, "merge", queues[500], log)
    assert f"{log}: answered" in merged.stdout and merged.stdout.count("verdict  CLIENT: it was busy\n") == 1


def test_the_share_of_failures_is_a_condition(plain, drifting):
    log = drifting(7, failed=1)  # of 151 a second
    assert "failed>0.5%: yes, it is 0.662% of 9060" in httpbench(plain, "compare", "--fail", "failed>0.5%", drifting(8), log, status=1).stdout
    assert "failed>1%: no, " in httpbench(plain, "compare", "--fail", "failed>1%", drifting(8), log).stdout


@pytest.mark.parametrize(
    "arguments,expected",
    [
        ([], "compare needs the logs of two runs: --hlog FILE writes one"),
        (["--fail", "99>5%", "a", "b"], "--fail takes a condition like 'p99>5%', 'rate<5%' or 'failed>0.1%', not '99>5%'"),
        (["--fail", "p99>5", "a", "b"], "not 'p99>5'"),
        (["--fail", "rate>5%", "a", "b"], "not 'rate>5%'"),
        (["--confidence", "100", "a", "b"], "--confidence"),
        (["none", "none"], "none: No such file or directory"),
    ],
)
def test_what_cannot_be_compared_says_why(plain, arguments, expected):
    assert expected in httpbench(plain, "compare", *arguments, status=2).stderr


def test_short_runs_are_not_compared(plain, drifting):
    done = httpbench(plain, "compare", drifting(9, seconds=9), drifting(9, seconds=10), status=2)
    assert "it is too short to be compared: 10 seconds are needed" in done.stderr and done.stderr.count("\n") == 1
