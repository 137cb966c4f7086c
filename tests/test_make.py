"""Targets of GNUmakefile that take long but do not wait: they run beside tests that wait for the
clock."""

import os
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent


@pytest.mark.timeout(1800)
def test_make(make_target, plain):
    """Runs the target at a low priority, so that the other tests do not wait for it."""
    command = ["nice", "make", "--no-print-directory", "-s", f"-j{os.cpu_count()}", f"BUILD={plain}", make_target]
    done = subprocess.run(command, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_what_is_built_is_not_built_again(plain):
    """Other tests run the programs meanwhile, and a program that is being linked cannot be run."""
    command = ["make", "--no-print-directory", f"BUILD={plain}", "all"]
    done = subprocess.run(command, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert not done.stdout
