"""The unit tests in C, a program at a time."""

import filecmp
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent


def test_unit(unit_program):
    program, twin = unit_program
    if twin:  # the twin runs
        assert filecmp.cmp(program, twin, shallow=False)
        return
    done = subprocess.run([program], capture_output=True, text=True, timeout=120, check=False, cwd=TOP)
    assert done.returncode == 0, done.stdout + done.stderr
