"""The unit tests in C, a program at a time."""

import subprocess


def test_unit(unit_program):
    done = subprocess.run([unit_program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
