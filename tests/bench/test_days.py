"""Results by day: changes of a level are found, and none where there is none; old results are
thinned out."""

import datetime
import fcntl
import importlib.machinery
import importlib.util
import re
import subprocess
from pathlib import Path

import changes
import numpy as np
import pytest
from suite import table_path, write_table

SUITE = Path(__file__).parents[2] / "bench" / "suite"
FIRST = datetime.date(2026, 9, 1)


def program(name):
    """Returns a program of the suite as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(SUITE / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


# --- changes ---


@pytest.mark.parametrize(
    "draw",
    [lambda rng: rng.normal(100, 2, 60), lambda rng: rng.lognormal(0, 0.5, 60), lambda rng: rng.choice([1.0, 1.01], 60),
     lambda _: np.ones(60)],
    ids=["normal", "lognormal", "two values", "constant"],
)  # fmt: skip
def test_of_series_without_a_change_one_in_twenty_at_most_is_split(draw):
    rng = np.random.default_rng(7)
    assert sum(bool(changes.change_points(draw(rng))) for _ in range(200)) <= 18  # 10 expected, 3 sigma above


def test_a_change_is_found_where_it_is():
    rng = np.random.default_rng(7)
    for at in (3, 20, 57):
        values = rng.normal(100, 1, 60)
        values[at:] *= 1.1
        assert [index for index, _ in changes.change_points(values, 0.001)] == [at]
    values = rng.normal(100, 1, 90)
    values[30:60] *= 0.9
    assert [index for index, _ in changes.change_points(values, 0.001)] == [30, 60]


def test_one_that_stands_out_is_no_change():
    values = np.random.default_rng(7).normal(100, 1, 60)
    values[30] = 200
    assert not changes.change_points(values, 0.001)
    assert not changes.change_points([1.0, 2.0, 3.0]) and not changes.change_points([])


def test_a_level_that_comes_and_goes_is_found():
    def series(seed):
        return np.where((np.arange(30) >= 12) & (np.arange(30) < 20), 1.3, 1) * np.random.default_rng(seed).lognormal(0, 0.1, 30)

    assert sum(bool(changes.change_points(series(seed))) for seed in range(40)) >= 28


def test_neighbours_that_are_alike_are_no_change():
    """A first-order autoregression with 0.6; of independent ones 2 would be expected, and without a correction 20 are found."""
    def series(rng):
        values = [rng.normal()]
        for _ in range(29):
            values.append(0.6 * values[-1] + 0.8 * rng.normal())
        return np.exp(0.1 * np.array(values))

    assert sum(bool(changes.change_points(series(np.random.default_rng(seed)))) for seed in range(40)) <= 9


def test_a_drift_is_told_from_steps():
    rng, days_of = np.random.default_rng(7), np.arange(40)
    drift = (1 + 0.02 * days_of) * rng.lognormal(0, 0.02, 40)
    steps = np.where(days_of < 25, 1.0, 1.5) * rng.lognormal(0, 0.02, 40)
    assert changes.drift(drift, changes.change_points(drift)) and not changes.drift(steps, changes.change_points(steps))
    assert not changes.drift(np.ones(40), []) and not changes.drift([], []) and not changes.drift(rng.normal(100, 1, 40), [])


@pytest.mark.parametrize("level", [0.05, 0.0125, 0.05 / 90])
def test_a_step_in_a_series_too_short_for_the_level_is_not_found(level):
    """Half as many results more make up for the permutations being drawn at random."""
    needed = changes.results_needed(level)
    for n, found in ((needed - 2, []), (needed * 3 // 2, [needed * 3 // 4])):
        values = np.random.default_rng(1).normal(0, 1, n) + 1000 * (np.arange(n) >= n // 2)
        assert [index for index, _ in changes.change_points(values, level)] == found


# --- the page ---


def make_results(folder, days, level=lambda day, job: 1000, host="alpha", settings=lambda day: 4096):
    rng = np.random.default_rng(1)
    for day in range(days):
        out = folder / f"{host}-6.1-{FIRST + datetime.timedelta(day)}"
        out.mkdir(parents=True)
        (out / "series").write_text(f"{host}\n")
        for job in ("socket", "bind"):
            base = level(day, job) * rng.lognormal(0, 0.01)
            rows = "".join(f"{run}\t{n}\t{int(base * rng.lognormal(0, 0.01))}\n" for run in range(3) for n in range(0, 300, 3))
            verdicts = "".join(f"# verdict\t{run}\tPASS\t\n" for run in range(3))
            head = {"command": f"kbench {job} -n 300", "kernel": f"Linux 6.1.{day} #1", "net/core/somaxconn": settings(day),
                    "benchmark": f"{job}\twhat it does", "how": "Thus.", "kind": "tcp", "n": "things"}  # fmt: skip
            text = "".join(f"# {key}\t{value}\n" for key, value in head.items())
            write_table(table_path(out, job), f"{text}run\tn\tcall_ns\n{rows}{verdicts}")


def days(folder, tmp_path, status=0):
    done = subprocess.run([SUITE / "days", "--out", tmp_path / "page", folder], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def test_ten_days_with_a_tenfold_cost_are_not_called_unchanged(tmp_path):
    make_results(tmp_path / "results", 10, lambda day, job: 10_000 if day >= 5 else 1000)
    make_results(tmp_path / "results", 3, host="beta")
    done = days(tmp_path / "results", tmp_path)
    text = (tmp_path / "page" / "index.html").read_text()
    assert "None was found" not in text and (text.count("Too few results") == 2 or "times as much" in done.stdout)


def test_a_drift_is_named_as_one(tmp_path):
    make_results(tmp_path / "results", 20, lambda day, job: int(1000 * (1 + 0.05 * day)) if job == "bind" else 1000)
    done = days(tmp_path / "results", tmp_path)
    assert re.search(r"alpha: bind call_ns drifts to (1\.9\d?|2|2\.0\d?) times as much, 2026-09-01 to 2026-09-20, p = ", done.stdout)
    assert "drifts to" in (tmp_path / "page" / "index.html").read_text()


def test_a_change_is_named_with_what_differs_and_nothing_else_is(tmp_path):
    make_results(tmp_path / "results", 20, lambda day, job: 1300 if job == "bind" and day >= 12 else 1000,
                 settings=lambda day: 128 if day >= 12 else 4096)  # fmt: skip
    make_results(tmp_path / "results", 8, host="beta")
    (tmp_path / "results" / "example-of-another").mkdir()
    missing = tmp_path / "results" / "alpha-6.1-2026-09-05"
    table_path(missing, "socket").unlink()
    (missing / "missing").write_text("socket\tNOEXIT\tstill running after 300 s\n")
    done = days(tmp_path / "results", tmp_path)
    found = [line for line in done.stdout.splitlines() if "times as much" in line]
    assert len(found) == 1 and re.search(r"alpha: bind call_ns is 1\.[23]\d* times as much since 2026-09-13", found[0])
    text = (tmp_path / "page" / "index.html").read_text()
    assert "net/core/somaxconn: 4096 &rarr; 128" in text and "kernel: Linux 6.1.11 #1 &rarr; Linux 6.1.12 #1" in text
    assert text.count("<h3>Changes</h3>") == 2 and text.count("Too few results: 10 ") == 1 and "None was found" not in text
    assert "NOEXIT</span></td>" in text and "title='still running after 300 s'" in text
    assert text.index("09-20</a>") < text.index("09-01</a>")  # the newest first
    links = set(re.findall(r"(?:href|src)='([^'#]+)", text))
    assert len(links) == 28 + 4 and all((tmp_path / "page" / link).exists() for link in links)
    assert "http:" not in text and "https:" not in text


def test_what_was_made_of_a_result_is_kept_until_it_changes(tmp_path):
    make_results(tmp_path / "results", 3)
    days(tmp_path / "results", tmp_path)
    page = tmp_path / "page" / "alpha-6.1-2026-09-01.html"
    before = page.stat().st_mtime_ns
    days(tmp_path / "results", tmp_path)
    assert page.stat().st_mtime_ns == before
    write_table(table_path(tmp_path / "results" / "alpha-6.1-2026-09-01", "bind"), "nonsense\n")
    days(tmp_path / "results", tmp_path)
    assert page.stat().st_mtime_ns > before and "FAIL</span></td>" in (tmp_path / "page" / "index.html").read_text()


def test_without_results_it_says_what_makes_them(tmp_path):
    (tmp_path / "results").mkdir()
    assert "make bench makes some" in days(tmp_path / "results", tmp_path, status=1).stderr
    assert "is no folder" in days(tmp_path / "nothing", tmp_path, status=1).stderr


# --- every day ---


def test_results_are_thinned_out_by_age():
    superfluous, today = program("daily").superfluous, datetime.date(2030, 1, 1)
    every = [Path(f"alpha-6.1-{today - datetime.timedelta(age)}") for age in range(4 * 365)]
    left = set(every) - set(superfluous(every, today))
    assert len(left) < 120 and set(every[:40]) <= left
    assert not superfluous(sorted(left), today)
    there = []
    for day in range(3 * 365):  # one day after the other
        there.append(Path(f"alpha-6.1-{FIRST + datetime.timedelta(day)}"))
        gone = superfluous(there, FIRST + datetime.timedelta(day))
        there = [path for path in there if path not in gone]
    assert 40 + 26 + 25 <= len(there) < 120 and there[0].name < "alpha-6.1-2026-10-02"
    others = [Path("example-6.1"), Path("beta-6.1-2029-12-31"), Path("beta-6.1-2029-12-31.2")]
    assert superfluous(others, today) == [Path("beta-6.1-2029-12-31")]
    assert superfluous([Path("gamma-6.1-2020-01-01")], today) == [Path("gamma-6.1-2020-01-01")]


def test_one_at_a_time(tmp_path):
    with open(tmp_path / ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run([SUITE / "daily", "--results", tmp_path], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "another one is running" in done.stderr and len(list(tmp_path.iterdir())) == 1


def test_a_day(plain, tmp_path):
    done = subprocess.run([SUITE / "daily", "--results", tmp_path / "results", "--out", tmp_path / "page", "--build", plain, "--only",
                           "socket", "--runs", "1"], capture_output=True, text=True, timeout=120, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = (path for path in (tmp_path / "results").iterdir() if path.is_dir())
    assert (result / "daily").exists()
    assert result.name.endswith(str(datetime.date.today())) and table_path(result, "socket").exists()
    assert f"{result.name}.html" in (tmp_path / "page" / "index.html").read_text()


@pytest.mark.parametrize("script, verdict", [("exec sleep 60", "NOEXIT"), ("trap '' TERM; sleep 60 & wait; wait", "NOTERM"),
                                             ("echo no memory >&2; exit 1", "NORUN")])  # fmt: skip
def test_what_does_not_end_is_ended_and_said(tmp_path, monkeypatch, script, verdict):
    run = program("run")
    monkeypatch.setattr(run, "LIMIT_S", 0.2)
    monkeypatch.setattr(run, "LIMIT_TIMES", 0)
    monkeypatch.setattr(run.processes, "STOP_S", 0.3)
    kbench = tmp_path / "bench" / "kbench"
    kbench.parent.mkdir()
    kbench.write_text(f"#!/bin/sh\n{script}\n")
    kbench.chmod(0o755)
    out = tmp_path / "out"
    monkeypatch.setattr("sys.argv", ["run", "--build", str(tmp_path), "--only", "socket", "--out", str(out)])
    monkeypatch.setattr(run.processes, "end_on_signals", lambda: None)
    with pytest.raises(SystemExit):
        run.main()
    job, word, words = (out / "missing").read_text().rstrip("\n").split("\t")
    assert (job, word) == ("socket", verdict) and words and not list(out.glob("*.tsv*"))
