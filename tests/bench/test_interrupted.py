"""A measurement that is interrupted leaves no process behind."""

import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
START_S, END_S = 60, 20
PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
VERSUS = ["versus/versus.py", "{plain}", "--out", "{out}", "--rounds", "1000", "--only"]
MEASUREMENTS = {  # a command below bench/, and programs that it runs at some time
    "versus": ([*VERSUS, "1k", "--servers", "gatling,epoll,lazy"], {"gatling", "smallest", "httpbench"}),
    "versus-idle": ([*VERSUS, "idle", "--servers", "gatling"], {"gatling", "httpbench"}),
    "hostile": (["versus/hostile.py", "{plain}", "full"], {"gatling"}),
    "slashdot": (["versus/slashdot.py", "{plain}", "--servers", "gatling", "--out", "{out}"], {"gatling", "crowd"}),
    "generators": (["versus/generators.py", "{plain}", "shortlived"], {"gatling", "nginx", "httpbench"}),
    "instructions": (["instructions.py", "{plain}"], {"callgrind-amd64"}),
    "suite": (["suite/run", "--build", "{plain}", "--out", "{out}", "--runs", "100", "--only", "thread"], {"kbench"}),
    "suite-server": (["suite/run", "--build", "{build}", "--out", "{out}", "--only", "http-epoll"], {"gatling", "connbench"}),
    "delay": (["versus/delay.py", "{plain}", "--servers", "gatling", "--out", "{out}"], {"qemu-system-x86"}),
    "vm": (["suite/vm", "--build", "{plain}", "--out", "{out}", "--only", "socket", "--accel", "tcg", "6.12"], {"qemu-system-x86"}),
}


@contextlib.contextmanager
def adopting():
    """Makes orphans of this process's children its own children."""
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, 0)


def descendants():
    """Returns {pid: program} of the processes below this one."""
    programs, children = {}, {}
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            program, state, parent = re.match(r"\d+ \((.*)\) (\S) (\d+)", (directory / "stat").read_text(), re.DOTALL).groups()
            children.setdefault(int(parent), []).append(int(directory.name))
            if state != "Z":
                programs[int(directory.name)] = program
    found = [os.getpid()]
    for pid in found:
        found += children.get(pid, [])
    return {pid: programs[pid] for pid in found[1:] if pid in programs}


def wait_until(condition, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def needs(name):
    if name == "generators" and not shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin"):
        pytest.skip("nginx is not installed")


def heed_signals():
    """A shell that runs the tests in the background ignores SIGINT, and ignored signals stay
    ignored."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def measuring(name, plain, tmp_path):
    """Yields the measurement when all of its programs run, and a function that returns what is left
    of it."""
    needs(name)
    command, programs = MEASUREMENTS[name]
    build = tmp_path / "build"
    for part in ("gatling", "bench"):
        (build / "kernel-epoll").mkdir(parents=True, exist_ok=True)
        (build / "kernel-epoll" / part).symlink_to(plain / part)
    (build / "bench").symlink_to(plain / "bench")
    words = [word.format(plain=plain, build=build, out=tmp_path / "out") for word in command]
    before = descendants()

    def left():
        return {pid: program for pid, program in descendants().items() if pid not in before}

    with adopting(), contextlib.ExitStack() as ended:
        with open(tmp_path / "words", "wb") as out:
            process = subprocess.Popen([sys.executable, BENCH / words[0], *words[1:]], stdout=out, stderr=out,
                                       start_new_session=True, preexec_fn=heed_signals)  # fmt: skip
        ended.callback(end, process, left)
        started = wait_until(lambda: programs <= set(left().values()) or process.poll() is not None, START_S)
        if process.poll() is not None and "apt-get" in (tmp_path / "words").read_text():
            pytest.skip((tmp_path / "words").read_text())
        assert started and process.poll() is None, (tmp_path / "words").read_text()
        yield process, left


def end(process, left):
    process.kill()
    process.wait()
    for pid in left():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_a_measurement_that_is_terminated_ends_all_that_it_started(plain, tmp_path, name):
    with measuring(name, plain, tmp_path) as (process, left):
        process.terminate()
        assert process.wait(END_S) == 128 + signal.SIGTERM, (tmp_path / "words").read_text()
        assert wait_until(lambda: not left(), 2), left()
        assert "Traceback" not in (tmp_path / "words").read_text()
        if name.startswith("suite"):
            assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_the_keyboard_and_a_lost_terminal_interrupt_the_whole_group(plain, tmp_path, number):
    with measuring("versus-idle", plain, tmp_path) as (process, left):
        os.killpg(process.pid, number)
        assert process.wait(END_S) == 128 + number, (tmp_path / "words").read_text()
        assert wait_until(lambda: not left(), 2), left()


def served(left):
    """Returns the temporary directory of a measurement whose gatling runs."""
    gatling = next(pid for pid, program in left().items() if program == "gatling")
    words = Path(f"/proc/{gatling}/cmdline").read_text().split("\0")
    return Path(words[words.index("-c") + 1]).parent


def test_a_measurement_that_is_killed_takes_its_children_with_it(plain, tmp_path):
    with measuring("versus", plain, tmp_path) as (process, left):
        directory = served(left)
        process.kill()
        assert wait_until(lambda: not left(), END_S), left()
        shutil.rmtree(directory)


def test_the_files_that_were_served_are_removed(plain, tmp_path):
    with measuring("versus", plain, tmp_path) as (process, left):
        directory = served(left)
        assert directory.is_dir()
        process.terminate()
        process.wait(END_S)
        assert not directory.exists()
