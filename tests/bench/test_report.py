"""The report, from results that the test makes up."""

import base64
import io
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from suite import table_path, write_table

REPORT = Path(__file__).parents[2] / "bench" / "suite" / "report"
RUNS = 5


def make_table(path, benchmark, column, law, seed, mechanism="epoll", landmarks=()):
    rng, out = np.random.default_rng(seed), io.StringIO()
    for key, *values in (("program", "kbench"), ("command", "kbench x"), ("mechanism", mechanism), ("kernel", "Linux <6>"),
                         ("benchmark", benchmark, "a summary"), ("how", "With care."), ("kind", "-"), ("n", "things")):  # fmt: skip
        print(f"# {key}", *values, sep="\t", file=out)
    for mark in landmarks:
        print("# landmark", *mark, sep="\t", file=out)
    print("run", "n", column, sep="\t", file=out)
    for run in range(RUNS):
        for n in range(0, 6000, 10):
            print(run, n, round(law(n) * rng.lognormal(0, 0.05)), sep="\t", file=out)
        print(f"# verdict\t{run}\tPASS\t", file=out)
    write_table(path, out.getvalue())


@pytest.fixture
def results(tmp_path):
    """Makes two results that differ in one table."""
    for name, factor in (("one", 1), ("two", 1.5)):
        directory = tmp_path / name
        directory.mkdir()
        (directory / "label").write_text(f"kernel {name} & co\n")
        make_table(table_path(directory, "socket"), "socket", "socket_ns", lambda n: 900 if n < 4000 else 9000, 1, landmarks=[(4000, "a table")])
        make_table(table_path(directory, "event-poll"), "event", "event_ns", lambda n, f=factor: f * (2000 + 20 * n), 2, "poll")
        make_table(table_path(directory, "event-epoll"), "event", "event_ns", lambda n: 2000, 3)
    return tmp_path / "one", tmp_path / "two"


def report(tmp_path, *arguments, status=0, name="report.html"):
    done = subprocess.run([REPORT, "--out", tmp_path / name, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, done.stderr
    return (tmp_path / name).read_text() if status == 0 else done.stderr


def test_growth_steps_and_landmarks_are_said_in_words(tmp_path, results):
    page = report(tmp_path, results[0])
    row = {job: re.search(rf"href='#{job}'.*?</tr>", page, re.DOTALL)[0] for job in ("socket", "event-poll", "event-epoll")}
    assert "<b>O(n)</b>" in row["event-poll"] and "<b>O(1)</b>" in row["event-epoll"]
    assert re.search(r"O\(1\) up to (39|40)\d\d, then 10 times as much", row["socket"]) and "(a table)" in row["socket"]
    assert "Linux &lt;6&gt;" in page and "kernel one &amp; co" in page


def test_results_are_compared_with_the_first(tmp_path, results):
    page = report(tmp_path, *results)
    poll = re.search(r"href='#event-poll'.*?</tr>", page, re.DOTALL)[0]
    epoll = re.search(r"href='#event-epoll'.*?</tr>", page, re.DOTALL)[0]
    assert re.search(r"1\.[45]\d? times \(1\.", poll) and "no difference shown" in epoll


def test_the_same_results_make_the_same_report(tmp_path, results):
    assert report(tmp_path, *results, name="a") == report(tmp_path, *results, name="b")


def test_a_page_needs_nothing_else_and_its_ids_are_its_own(tmp_path, results):
    page = report(tmp_path, *results)
    ids = re.findall(r"\bid=['\"]([^'\"]+)", page)
    assert len(ids) == len(set(ids)) and page.count("<svg") == 2 * 3
    assert all(reference in ids for reference in re.findall(r"(?:href|url\()=?['\"]?#([\w.-]+)", page))
    assert not re.findall(r"(?:src|href)=['\"]?(?:https?:|//)", re.sub(r"xmlns(:\w+)?=\S+", "", page))


def test_one_result_has_its_variants_in_one_figure(tmp_path, results):
    page = report(tmp_path, results[0])
    assert page.count("<figure>") == 2 and page.count("event-epoll") > 2


@pytest.mark.parametrize("content, words", [("", "not a table"), ("run\tn\tx_ns\n0\t1\tx\n", "line 2"), ("run\tn\tx_ns\n0\t1\n", "line 2")])
def test_a_broken_table_is_named(tmp_path, results, content, words):
    write_table(table_path(results[0], "socket"), content)
    error = report(tmp_path, results[0], status=1)
    assert words in error and "socket.tsv.gz" in error and error.count("\n") == 1


def test_a_table_that_is_cut_off_or_not_compressed_is_named(tmp_path, results):
    table = table_path(results[0], "socket")
    for content in (table.read_bytes()[:-100], b"run\tn\tx_ns\n", b""):
        table.write_bytes(content)
        error = report(tmp_path, results[0], status=1)
        assert "socket.tsv.gz: not " in error and error.count("\n") == 1


def test_a_directory_without_results_is_named(tmp_path):
    assert str(tmp_path) in report(tmp_path, tmp_path, status=1)


def test_what_is_no_time_is_told_by_its_size(tmp_path):
    make_table(table_path(tmp_path, "stream"), "stream", "received_mbit_s", lambda n: 40_000, 1)
    row = re.search(r"href='#stream'.*?</tr>", report(tmp_path, tmp_path), re.DOTALL)[0]
    assert re.search(r"received mbit/s.*<b>(39|40),\d\d\d</b> \(3\d,\d\d\d to 4\d,\d\d\d", row) and "O(" not in row


def test_the_crowd_is_shown_if_it_was_measured(tmp_path, results):
    (tmp_path / "slashdot.tsv").write_text("server\tload\tgoodput\nnginx\t4\t1234.5\n")
    (tmp_path / "slashdot-goodput.svg").write_text("<svg/>")
    page = report(tmp_path, "--crowd", tmp_path, results[0])
    assert "<th>goodput</th>" in page and "<td>nginx</td><td>4</td><td>1234.5</td>" in page
    assert f"data:image/svg+xml;base64,{base64.b64encode(b'<svg/>').decode()}" in page
    assert "A crowd" not in report(tmp_path, results[0])
    (tmp_path / "slashdot.tsv").unlink()
    assert "make slashdot" in report(tmp_path, "--crowd", tmp_path, results[0], status=1)


def test_two_results_fit_in_two_megabytes(tmp_path):
    """The size of a page is that of the pixels that have points, not of the points."""
    one, two = (Path(__file__).parents[2] / "bench" / "results" / name for name in ("example-6.1", "example-6.12"))
    assert len(report(tmp_path, one, two)) < 2_000_000
