"""What the command lines of all load generators have in common."""

import subprocess

import pytest


COMMANDS = [["connbench"], ["crowd"], ["hold"], ["httpbench"], ["kbench"], ["kbench", "fork"]]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_fits_a_terminal_of_80_columns(plain, command):
    program, *arguments = command
    done = subprocess.run([plain / "bench" / program, *arguments, "--help"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and done.stdout.startswith("usage: ") and max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_that_cannot_be_written_is_an_error(build, command):
    program, *arguments = command
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([build / "bench" / program, *arguments, "--help"], stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=60, check=False)  # fmt: skip
    assert done.returncode == 1 and done.stderr == f"{program}: cannot write the report: No space left on device\n"


@pytest.mark.parametrize("program", ["connbench", "crowd"])
def test_too_few_descriptors_are_named(plain, program):
    done = subprocess.run(["prlimit", "--nofile=16", plain / "bench" / program, "http://127.0.0.1/"], capture_output=True, text=True,
                          timeout=60, check=False)  # fmt: skip
    assert done.returncode == 2 and not done.stdout
    assert done.stderr == f"{program}: the limit of 16 descriptors is too low, which ulimit -n sets (see --help)\n"
