"""What the command lines of all load generators have in common."""

import subprocess

import pytest


@pytest.mark.parametrize("command", [["connbench"], ["crowd"], ["hold"], ["httpbench"], ["kbench"], ["kbench", "fork"]], ids=" ".join)
def test_help_that_cannot_be_written_is_an_error(build, command):
    program, *arguments = command
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([build / "bench" / program, *arguments, "--help"], stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=60, check=False)  # fmt: skip
    assert done.returncode == 1 and done.stderr == f"{program}: cannot write the report: No space left on device\n"
