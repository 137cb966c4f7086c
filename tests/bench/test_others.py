"""What other programs take from a measurement is seen, and whose it is."""

import contextlib
import os
import re
import subprocess

import pytest

from running import httpbench
from test_truth import truth

BURN = "while :; do :; done"


def preferred():
    """Makes a process one that takes most, whatever else runs."""
    os.nice(-10)


@contextlib.contextmanager
def burning(tmp_path):
    """A program of that name takes a processor."""
    (tmp_path / "burner").symlink_to("/bin/dash")
    with subprocess.Popen([tmp_path / "burner", "-c", BURN], preexec_fn=preferred) as process:
        try:
            yield process
        finally:
            process.kill()


def taken(done):
    """Returns (percent, name, process) of what a report says about others, or ("0", "", "")."""
    said = re.search(r"other programs took (\d+) % of the processors, (\S+) \(process (\d+)\)", " ".join(done.stdout.split()))
    return said.groups() if said else ("0", "", "")


def test_a_program_that_takes_a_processor_is_named(build, tmp_path):
    with truth(build, "--service", 1000) as url, burning(tmp_path) as other:
        percent, *whose = taken(httpbench(build, "-c", 2, "-d", 1, url))
    assert whose == ["burner", str(other.pid)] and int(percent) >= 10


def test_a_program_that_works_for_the_server_is_not_another(build, tmp_path):
    with truth(build, "--service", 1000) as url, burning(tmp_path):
        assert taken(httpbench(build, "-c", 2, "-d", 1, "--backends", "postgres,burner", url))[1] != "burner"
        assert taken(httpbench(build, "-c", 2, "-d", 1, "--backends", "burn,burners", url))[1] == "burner"


def test_the_server_is_not_another_but_one_that_listens_elsewhere_is(build):
    """The servers are busy all the time."""
    with truth(build) as url, truth(build, preexec_fn=preferred) as elsewhere:
        command = [build / "bench" / "httpbench", "-c", "4", "-d", "20", elsewhere]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=preferred) as load:
            said = [taken(httpbench(build, "-c", 4, "-d", 1, "--backends", names, url))[1] for names in ("x", "httpbench,truth")]
            load.kill()
    assert said[0] in ("truth", "httpbench") and said[1] not in ("truth", "httpbench")


@pytest.mark.parametrize("benchmark", ["fork", "thread"])
def test_kernel_benchmarks_name_it_too(build, tmp_path, benchmark):
    kind = [] if benchmark == "fork" else ["--kind", benchmark]
    with burning(tmp_path) as other:
        command = [build / "bench" / "kbench", "fork", *kind, "-n", "3000", "--runs", "1"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert re.search(rf"# verdict\t0\tNOISY\tother programs took \d+ % of the processors, burner \(process {other.pid}\)", done.stdout)
