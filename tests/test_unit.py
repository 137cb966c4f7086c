"""The unit tests in C, a program at a time."""

import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent


def test_unit(unit_program):
    done = subprocess.run([unit_program], capture_output=True, text=True, timeout=120, check=False, cwd=TOP)
    assert done.returncode == 0, done.stdout + done.stderr
