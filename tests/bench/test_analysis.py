"""The analysis of curves whose law is known."""

import analysis
import numpy as np
import pytest

LAST, EVERY, RUNS = 15_000, 15, 5
N = np.arange(0, LAST, EVERY)


def runs_of(law, noise=0.1, seed=1, runs=RUNS):
    """Returns runs of a law with noise like that of clocks: a few percent, a level of its own for
    each run, and spikes."""
    rng = np.random.default_rng(seed)
    series = []
    for _ in range(runs):
        values = law(N) * rng.lognormal(0, noise, len(N)) * rng.lognormal(0, 0.02)
        values[rng.integers(len(N), size=5)] *= 50
        series.append((N, np.round(values)))
    return series


LAWS = {
    "O(1)": lambda n: np.full(len(n), 1300.0),
    "O(log n)": lambda n: 200 + 400 * np.log(n + 2),
    "O(n)": lambda n: 2000 + 20.0 * n,
    "O(n^2)": lambda n: 1000 + 0.01 * n**2,
}


@pytest.mark.parametrize("words", LAWS)
@pytest.mark.parametrize("seed", range(5))
def test_a_law_is_recognized(words, seed):
    assert analysis.growth(runs_of(LAWS[words], seed=seed)).words == words


@pytest.mark.parametrize("seed", range(3))
def test_another_exponent_is_told_with_its_interval(seed):
    growth = analysis.growth(runs_of(lambda n: 500 + 0.5 * n**1.4, seed=seed))
    k, low, high = growth.exponent
    assert growth.words.startswith("O(n^1.4 ±") and low <= 1.4 + 0.1 and high >= 1.4 - 0.1 and low <= k <= high


@pytest.mark.parametrize("place, times", [(7000, 200), (3000, 3), (12_000, 40)])
def test_a_step_is_found_where_it_is(place, times):
    growth = analysis.growth(runs_of(lambda n: np.where(n < place, 600.0, 600.0 * times)))
    ((at, factor),) = growth.steps
    assert abs(at - place) < 0.05 * LAST and times * 0.8 < factor < times * 1.2
    assert growth.words.startswith(f"O(1) up to {at:.0f}")


def test_what_rises_before_a_step_is_not_called_constant():
    growth = analysis.growth(runs_of(lambda n: np.where(n < 7500, 1000.0 + n * 0.27, 150_000.0)))
    assert growth.words.startswith("grows up to 7")


def test_what_falls_has_no_steps():
    growth = analysis.growth(runs_of(lambda n: 3000 - 0.15 * n))
    assert growth.words.startswith("falls to 0.2") and not growth.steps


def table_with(verdicts, law=LAWS["O(1)"], last=LAST):
    table = analysis.Table(columns=["x_ns"])
    for number, (verdict, values) in enumerate(zip(verdicts, runs_of(law, runs=len(verdicts)))):
        end = last if verdict == "SHORT" else LAST
        table.runs[number] = {"n": values[0][values[0] < end], "x_ns": values[1][values[0] < end]}
        table.verdicts[number] = ("PASS" if verdict == "SHORT" else verdict, "")
    return table


def test_runs_that_were_disturbed_do_not_count_if_others_are_left():
    assert len(table_with(["PASS", "NOISY", "PASS", "FAIL", "XPASS"]).series("x_ns")) == 3
    assert len(table_with(["PASS", "NOISY", "NOISY", "NOISY"]).series("x_ns")) == 4


def test_a_run_that_ended_early_does_not_spoil_the_others():
    series = table_with(["PASS", "PASS", "SHORT", "PASS"], last=100).series("x_ns")
    assert len(series) == 3 and analysis.growth(series).words == "O(1)"


@pytest.mark.parametrize("last", [1, 60, 99, 100, 150])
def test_however_few_points_there_are_it_answers(last):
    ns = np.arange(last)
    assert analysis.growth([(ns, np.full(last, 100.0))] * 3).words


def test_two_steps_are_both_found():
    growth = analysis.growth(runs_of(lambda n: np.select([n < 4000, n < 10_000], [500.0, 2000.0], 30_000.0)))
    assert [round(at, -3) for at, _ in growth.steps] == [4000, 10_000]


def test_noise_that_hides_the_law_is_undecided():
    rng = np.random.default_rng(3)
    series = [(N, 1000 * (1 + N / LAST * rng.uniform(-0.8, 1.6)) * rng.lognormal(0, 1, len(N))) for _ in range(3)]
    assert analysis.growth(series).words.startswith("undecided")


def test_few_points_are_undecided():
    assert analysis.growth([(N[:10], np.ones(10))]).words.startswith("undecided")


@pytest.mark.parametrize("words", LAWS)
def test_a_run_against_itself_shows_no_difference(words):
    series = runs_of(LAWS[words])
    assert analysis.difference(series, series).words == "no difference shown"


def test_two_runs_of_one_law_show_no_difference():
    shown = [analysis.difference(runs_of(LAWS["O(n)"], seed=s), runs_of(LAWS["O(n)"], seed=100 + s)).words for s in range(10)]
    assert shown.count("no difference shown") >= 9


def test_a_difference_is_shown_with_its_size():
    difference = analysis.difference(runs_of(LAWS["O(1)"], seed=1), runs_of(lambda n: 1.2 * LAWS["O(1)"](n), seed=2))
    assert difference.words.endswith(")") and difference.p < 0.05 and difference.delta == 1
    assert 1.15 < difference.ratio[0] < 1.25 and difference.ratio[1] > 1.05 and difference.ratio[2] < 1.35


def test_few_runs_show_nothing():
    assert analysis.difference(runs_of(LAWS["O(1)"], runs=1), runs_of(LAWS["O(n)"], runs=1)).words.endswith("too few runs")


def grouped(peaks, runs=RUNS, every=15, last=15_000):
    """Returns a table of groups of a constant time, with noise, a spike of each run alone, and peaks at the same n in each run."""
    lines = ["run\tn\tx_ns\tx_ns.median\tx_ns.max\tx_ns.max_n"]
    for run in range(runs):
        values = np.round(1000 * np.random.default_rng(run).lognormal(0, 0.1, last))
        values[[103 + 1000 * run, *peaks]] = 50_000
        for at in range(0, last, every):
            group = values[at : at + every]
            lines.append("\t".join(f"{value:.0f}" for value in (run, at, group[0], np.median(group), group.max(), at + group.argmax())))
        lines.append(f"# verdict\t{run}\tPASS\t")
    return analysis.parse("\n".join(lines))


def test_peaks_that_each_run_has_are_told_from_spikes():
    table = grouped([253, 509, 1021, 2045, 4093, 8189])
    assert [n for n, _ in analysis.peaks(table, "x_ns")] == [253, 509, 1021, 2045, 4093, 8189]
    assert analysis.peak_words(table, "x_ns") == "peaks in every run at 253, 509, 1021, 2045, 4093, 8189, of up to 50 times as much"
    assert table.columns == ["x_ns"] and analysis.growth(table.medians("x_ns")).words == "O(1)"


def test_spikes_are_no_peaks():
    assert not analysis.peak_words(grouped([]), "x_ns") and not analysis.peaks(grouped([253], runs=2), "x_ns")
