"""httpbench beside a server whose truth is known: what the server decides, and not how busy the machine is."""

import contextlib
import subprocess

import pytest

from running import failures, httpbench


@contextlib.contextmanager
def truth(build, *options):
    command = [build / "bench" / "truth", *map(str, options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/"
        finally:
            server.kill()


def measured(build, tmp_path, options, *arguments, status=0):
    with truth(build, *options) as url:
        return httpbench(build, *arguments, url, tmp_path=tmp_path, status=status)


@pytest.mark.parametrize("option,nth,kind", [("--fail", 2, "wrong_status"), ("--short", 4, "short")])
def test_the_share_that_fails_is_found_and_no_pass(build, tmp_path, option, nth, kind):
    result = measured(build, tmp_path, [option, nth], "-c", 4, "-n", 200, status=1)
    assert failures(result) == {kind: 200 // nth}
    assert result["verdict"] == "FAILED" and f"{100 // nth} %" in result["reason"]


def test_both_of_two_durations_are_found(build, tmp_path):
    whole = measured(build, tmp_path, ["--service", 2000, "--slow", 5, 40000], "-c", 1, "-n", 50)["durations"]["whole"]["percentiles_ns"]
    # a machine that is late makes them longer, and never shorter; a bucket of the histogram is 1 % wide
    assert whole["50"] >= 1_980_000 and whole["90"] >= 39_600_000


def test_a_queue_gives_no_more_than_its_rate(build, tmp_path):
    result = measured(build, tmp_path, ["--rate", 200], "-c", 4, "-n", 60)
    assert result["answered"] == 60 and result["elapsed_s"] >= 60 / 200 * 0.99


def test_the_stage_that_is_too_much_is_named(build, tmp_path):
    """Of the queue nothing is left at the end."""
    result = measured(build, tmp_path, ["--rate", 200], "--stages", "2s:20,7s:300,6s:20", "-c", 2000, "-T", 20)
    assert result["verdict"] == "OVERLOADED" and result["reason"].endswith("of the stage until 9 s")


@pytest.mark.parametrize("wrong", [["--nothing"], ["--rate"], ["--rate", "0"], ["--stall", "5", "5"]])
def test_a_wrong_option_of_it_is_refused(build, wrong):
    done = subprocess.run([build / "bench" / "truth", *wrong], capture_output=True, text=True, check=False, timeout=10)
    assert done.returncode == 2 and done.stderr.startswith("truth: ") and wrong[0] in done.stderr
