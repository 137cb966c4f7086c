"""What other programs take from a measurement is seen, and whose it is."""

import contextlib
import re
import subprocess

import pytest

from running import httpbench
from test_truth import truth

pytestmark = pytest.mark.alone
BURN = "while :; do :; done"


@contextlib.contextmanager
def burning(tmp_path):
    """A program of that name takes a processor."""
    (tmp_path / "burner").symlink_to("/bin/dash")
    with subprocess.Popen([tmp_path / "burner", "-c", BURN]) as process:
        try:
            yield process
        finally:
            process.kill()


def taken(done):
    """Returns (percent, name, process) of what a report says about others, or ("0", "", "")."""
    said = re.search(r"other programs took (\d+) % of the processors, (\S+) \(process (\d+)\)", " ".join(done.stdout.split()))
    return said.groups() if said else ("0", "", "")


def test_a_program_that_takes_a_processor_is_named(plain, tmp_path):
    with truth(plain, "--service", 1000) as url, burning(tmp_path) as other:
        percent, *whose = taken(httpbench(plain, "-c", 2, "-d", 1, url))
    assert whose == ["burner", str(other.pid)] and int(percent) >= 10


def test_a_program_that_works_for_the_server_is_not_another(plain, tmp_path):
    with truth(plain, "--service", 1000) as url, burning(tmp_path):
        assert taken(httpbench(plain, "-c", 2, "-d", 1, "--backends", "postgres,burner", url))[1] != "burner"
        assert taken(httpbench(plain, "-c", 2, "-d", 1, "--backends", "burn,burners", url))[1] == "burner"


def test_the_server_is_not_another_but_one_that_listens_elsewhere_is(plain):
    """The servers are busy all the time."""
    with truth(plain) as url, truth(plain) as elsewhere:
        command = [plain / "bench" / "httpbench", "-c", "4", "-d", "20", elsewhere]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as load:
            said = [taken(httpbench(plain, "-c", 4, "-d", 1, "--backends", names, url))[1] for names in ("x", "httpbench,truth")]
            load.kill()
    assert said[0] in ("truth", "httpbench") and said[1] not in ("truth", "httpbench")


@pytest.mark.parametrize("benchmark", ["fork", "thread"])
def test_kernel_benchmarks_name_it_too(plain, tmp_path, benchmark):
    kind = [] if benchmark == "fork" else ["--kind", benchmark]
    with burning(tmp_path) as other:
        command = [plain / "bench" / "kbench", "fork", *kind, "-n", "1500", "--runs", "1"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert re.search(rf"# verdict\t0\tNOISY\tother programs took \d+ % of the processors, burner \(process {other.pid}\)", done.stdout)
