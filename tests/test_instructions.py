"""The cost of a request does not grow unnoticed."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.alone
def test_a_request_costs_no_more_instructions_and_system_calls_than_it_did(plain):
    program = Path(__file__).parents[1] / "bench" / "instructions.py"
    done = subprocess.run([sys.executable, program, plain], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
