"""Samples stacks with perf(1) while a program runs, and draws flame graphs of them with inferno
(crates.io).

Profiles are kept as folded stacks: lines "FUNCTION;FUNCTION;... SAMPLES", the outermost function
first."""

import collections
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import processes

PERIOD_NS = 250_000  # of processor time between two samples
TOOLS = Path(__file__).resolve().parents[1] / "build" / "tools" / "inferno" / "bin"
SHOWN = 12  # functions in a table
LEAST = "0.1"  # percent of all samples: narrower parts are not drawn
MEASURED = "measured"  # the name of a process while it measures, see kbench.h
SAMPLING = ";perf_event_"  # of perf itself, for mmap(2) and the like
PERF_DATA = b"PERFILE2"


class NoStacks(Exception):
    """Stacks cannot be sampled or drawn."""


# --- sampling ---


def record(data, *what, perf="perf"):
    """Returns the command that samples a command ("--", WORD...) or a process ("-p", PID) into the
    file data."""
    # by a clock, since a virtual machine may lack hardware counters
    return [perf, "record", "-q", "-g", "-e", "cpu-clock", "-c", str(PERIOD_NS), "-o", str(data), *map(str, what)]


def script(data, perf="perf"):
    """Returns the command that prints the samples of a file as text."""
    return [perf, "script", "-i", str(data), "-F", "comm,tid,time,event,ip,sym,dso"]


def attempt(command, text=None):
    """Runs a command. Returns its process, whether it failed or not."""
    try:
        return subprocess.run(command, input=text, capture_output=True, text=True, errors="replace", check=False)
    except FileNotFoundError as error:
        raise NoStacks(f"{command[0]} is not there: make deps FOR=profile") from error


def run(command, text=None):
    done = attempt(command, text)
    if done.returncode:
        raise NoStacks(f"{Path(command[0]).name}: {' '.join(done.stderr.split()) or done.returncode}")
    return done.stdout


def profile_command(command):
    """Runs a command, which may fail. Returns its folded stacks."""
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "data"
        done = attempt(record(data, "--", *command))
        if not data.exists():
            raise NoStacks(f"perf: {' '.join(done.stderr.split())}")
        return fold(run(script(data)))


@contextlib.contextmanager
def profile_process(pid, path):
    """Samples a process during a "with" block, and writes its folded stacks to path."""
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "data"
        (orders, order), (answer, acknowledges) = os.pipe(), os.pipe()
        command = record(data, "--control", f"fd:{orders},{acknowledges}", "-p", pid)
        if not shutil.which(command[0]):
            raise NoStacks(f"{command[0]} is not there: make deps FOR=profile")
        with processes.Process(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, pass_fds=(orders, acknowledges)) as perf:
            os.close(acknowledges)
            os.write(order, b"enable\n")  # acknowledged when it samples; it is enabled already
            os.read(answer, 8)
            yield
            perf.send_signal(signal.SIGINT)
            words = perf.communicate()[1]
        for fd in (orders, order, answer):
            os.close(fd)
        if not data.exists():
            raise NoStacks(f"perf: {' '.join(words.split())}")
        path.write_text(fold(run(script(data))))


# --- drawing ---


def inferno(name, *arguments, text=None):
    """Runs a program of inferno. Returns its output."""
    path = shutil.which(name) or shutil.which(name, path=TOOLS)
    if not path:
        raise NoStacks(f"{name} is not there: make inferno")
    return run([path, "--quiet", *arguments], text)


def fold(text):
    """Folds the output of perf script, without the cost of sampling. If only a part of it is
    measured, returns only that part."""
    if not text.strip():
        raise NoStacks("no samples: the program took less than a quarter of a millisecond")
    lines = [line for line in inferno("inferno-collapse-perf", text=text).splitlines(keepends=True) if SAMPLING not in line]
    return "".join([line for line in lines if line.startswith(f"{MEASURED};")] or lines)


def load(path):
    """Returns the folded stacks in a file, which holds them or is perf's."""
    with open(path, "rb") as file:
        kept = file.read(len(PERF_DATA)) == PERF_DATA
    return fold(run(script(path))) if kept else Path(path).read_text()


def draw(folded, title, subtitle):
    """Returns a flame graph as SVG."""
    return inferno("inferno-flamegraph", "--title", title, "--subtitle", subtitle, "--minwidth", LEAST, "--deterministic", text=folded)


def flame(folded, title):
    """Returns the flame graph of a profile."""
    return draw(folded, title, "width: processor time; of these functions and what they call")


def scaled(before, after):
    """Returns the stacks of `before`, scaled to as many samples as `after` has: for two runs that
    took the same time, whatever they did in it."""
    total = [sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()) for folded in (before, after)]
    lines = (line.rsplit(" ", 1) for line in before.splitlines())
    return "".join(f"{stack} {round(int(samples) * total[1] / total[0])}\n" for stack, samples in lines)


def differential(before, after, title):
    """Returns the flame graph of `after`, in which red is more than before, and blue less."""
    with tempfile.TemporaryDirectory() as name:
        paths = Path(name) / "before", Path(name) / "after"
        for path, folded in zip(paths, (before, after)):
            path.write_text(folded)
        both = inferno("inferno-diff-folded", *map(str, paths))
    return draw(both, title, "width: processor time after; red: more than before, blue: less")


# --- tables ---


def below(folded, function):
    """Returns the stacks that contain a function, from that function on."""
    kept = collections.Counter()
    for line in folded.splitlines():
        stack, samples = line.rsplit(" ", 1)
        frames = stack.split(";")
        if function in frames:
            kept[";".join(frames[frames.index(function):])] += int(samples)
    if not kept:
        raise NoStacks(f"{function} is in no stack")
    return "".join(f"{stack} {samples}\n" for stack, samples in sorted(kept.items()))


def functions_of(folded):
    """Returns {function: nanoseconds in it and in what it calls}."""
    found = collections.Counter()
    for line in folded.splitlines():
        stack, samples = line.rsplit(" ", 1)
        for function in set(stack.split(";")):
            found[function] += int(samples) * PERIOD_NS
    return found


def most_changed(before, after):
    """Returns [(function, nanoseconds before, after)], those that differ most first."""
    first, second = functions_of(before), functions_of(after)
    found = ((function, first[function], second[function]) for function in first.keys() | second.keys())
    return sorted(found, key=lambda row: (-abs(row[2] - row[1]), row[0]))[:SHOWN]
