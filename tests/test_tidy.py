"""Files in which clang-tidy found nothing are not checked again: .ci/tidy."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

TIDY = Path(__file__).resolve().parent.parent / ".ci" / "tidy"
HEADER = "static inline int twice(int n) { return 2 * n; }\n"
SOURCE = '#include "lib/a.h"\nint four(void);\nint four(void) { return twice(2); }\n'
WRONG = "static inline int twice(int n) { return n * (int)sizeof(sizeof(short)); }\n"
ALLOWED = WRONG.replace("\n", " // NOLINT\n")
CHECKS = "Checks: '-*,bugprone-*'\nWarningsAsErrors: '*'\nHeaderFilterRegex: '.*'\n"


class Checkout:
    """A file and its header; clang-tidy writes a line whenever it is run."""

    def __init__(self, directory):
        self.path, self.asked = directory / "checkout", directory / "asked"
        (self.path / "lib").mkdir(parents=True)
        self.write(**{"lib/a.c": SOURCE, "lib/a.h": HEADER, ".clang-tidy": CHECKS})
        wrapper = directory / "bin" / "clang-tidy"
        wrapper.parent.mkdir()
        real = shutil.which("clang-tidy")
        wrapper.write_text(f'#!/bin/sh\n[ "$1" = --version ] || echo "$@" >>{self.asked}\nexec {real} "$@"\n')
        wrapper.chmod(0o755)
        path = f"{wrapper.parent}:{os.environ['PATH']}"
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(directory / "cache"), "PATH": path}

    def write(self, **files):
        for name, text in files.items():
            (self.path / name).write_text(text)

    def tidy(self, *flags):
        """Returns whether nothing was found, and whether clang-tidy was run."""
        before = self.asked.read_text() if self.asked.exists() else ""
        done = subprocess.run([TIDY, "lib/a.c", "-I.", *flags], cwd=self.path, env=self.environment, capture_output=True,
                              text=True, check=False)  # fmt: skip
        assert (done.returncode == 0) == (not done.stdout), done
        return done.returncode == 0, self.asked.read_text() != before


@pytest.fixture
def checkout(tmp_path):
    if not shutil.which("clang-tidy"):
        pytest.skip("clang-tidy is not there")
    made = Checkout(tmp_path)
    assert made.tidy() == (True, True)
    assert made.tidy() == (True, False)
    return made


def test_a_finding_that_a_header_brings_is_found_each_time(checkout):
    checkout.write(**{"lib/a.h": WRONG})
    assert checkout.tidy() == (False, True)
    assert checkout.tidy() == (False, True)
    checkout.write(**{"lib/a.h": HEADER})
    assert checkout.tidy() == (True, False)


def test_so_is_one_that_a_header_from_elsewhere_brings(checkout):
    system = checkout.path.parent / "system"
    system.mkdir()
    checkout.write(**{"lib/a.c": "#include <size.h>\n" + SOURCE.replace("twice(2)", "SIZE(short)")})
    (system / "size.h").write_text("#define SIZE(x) (int)sizeof(x)\n")
    assert checkout.tidy(f"-I{system}") == (True, True)
    assert checkout.tidy(f"-I{system}") == (True, False)
    (system / "size.h").write_text("#define SIZE(x) (int)sizeof(sizeof(x))\n")
    assert checkout.tidy(f"-I{system}") == (False, True)


def test_a_comment_counts(checkout):
    checkout.write(**{"lib/a.h": ALLOWED})
    assert checkout.tidy() == (True, True)
    assert checkout.tidy() == (True, False)
    checkout.write(**{"lib/a.h": WRONG})
    assert checkout.tidy() == (False, True)


def test_other_flags_and_other_checks_are_another_question(checkout):
    assert checkout.tidy("-DOTHER") == (True, True)
    checkout.write(**{".clang-tidy": CHECKS.replace("bugprone-*", "bugprone-*,misc-*")})
    assert checkout.tidy() == (True, True)
    checkout.write(**{"lib/a.h": WRONG})
    assert checkout.tidy() == (False, True)
    checkout.environment["CHECKS"] = "-bugprone-sizeof-expression"
    assert checkout.tidy() == (True, True)


def test_what_nobody_asked_for_in_a_month_is_forgotten(checkout):
    (kept,) = (Path(checkout.environment["XDG_CACHE_HOME"]) / "gatling-check" / "tidy").iterdir()
    subprocess.run([TIDY], env=checkout.environment, check=True)
    assert kept.exists()
    os.utime(kept, (0, 0))
    subprocess.run([TIDY], env=checkout.environment, check=True)
    assert not kept.exists()


def test_without_a_place_to_remember_it_clang_tidy_runs(checkout):
    checkout.environment["XDG_CACHE_HOME"] = "/dev/null"
    assert checkout.tidy() == (True, True)
    assert checkout.tidy() == (True, True)
