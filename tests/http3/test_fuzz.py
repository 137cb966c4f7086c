"""The fuzzers that take the libraries of HTTP/3, for as long as "make check ALL=1" runs the others."""

import os

import pytest

FUZZERS = ("field_section", "http3", "quic", "quic_channels")
SECONDS = 10


def make(http3, target):
    http3.run("make", "-s", f"-j{os.cpu_count()}", f"BUILD={http3.build}", "HTTP3=yes", f"FUZZERS={' '.join(FUZZERS)}", f"FUZZ_CORPUS={http3.corpus}/corpus",
              f"FUZZ_SECONDS={SECONDS}", target)  # fmt: skip


@pytest.fixture(scope="module")
def fuzzers(http3):
    make(http3, "fuzzers")


@pytest.mark.usefixtures("fuzzers")
@pytest.mark.parametrize("name", FUZZERS)
def test_fuzzing_finds_nothing(http3, name):
    make(http3, f"fuzz-{name}")
