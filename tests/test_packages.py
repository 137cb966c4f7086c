"""What the build needs is installed, or said to be missing: .ci/packages."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PACKAGES = Path(__file__).resolve().parent.parent / ".ci" / "packages"
USED = ("awk", "cat", "env", "paste", "sh", "sort", "tr", "uname")
LIBRARIES = "libc6-dev libnghttp2-dev libowfat-dev libseccomp-dev libssl-dev zlib1g-dev"
SUDO = {"of no use": "exit 1", "without a password": '[ "$1" = -n ] || exec "$@"'}


class Machine:
    """A PATH with few commands in it. asked has a line for each use of apt-get and sudo."""

    def __init__(self, directory, uid=0, sudo=None, compiler=None):
        self.bin, self.asked = directory / "bin", directory / "asked"
        self.bin.mkdir()
        self.asked.touch()
        for name in USED:
            (self.bin / name).symlink_to(shutil.which(name))
        self.write("id", f"echo {uid}")
        self.write("apt-get", f'echo "apt-get $*" >> {self.asked}')
        if sudo:
            self.write("sudo", f'echo "sudo $*" >> {self.asked}; {sudo}')
        if compiler:
            self.write(compiler, "exit 0")

    def write(self, name, script):
        (self.bin / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.bin / name).chmod(0o755)

    def packages(self, *arguments, cc="cc"):
        """Returns whether all is there, what was said, and what was asked for."""
        environment = {"PATH": str(self.bin), "CC": cc}
        done = subprocess.run(["/bin/sh", PACKAGES, *arguments], env=environment, capture_output=True, text=True, check=False)
        assert not done.stdout
        return done.returncode == 0, done.stderr, self.asked.read_text().splitlines()


pytestmark = pytest.mark.skipif(os.uname().sysname != "Linux", reason="names of Debian")


def test_root_installs_the_compiler_too(tmp_path):
    _, said, asked = Machine(tmp_path).packages("install", "build")
    assert said.startswith(f"gatling: installing gcc {LIBRARIES} \n")
    assert [line.split("=300 ")[1] for line in asked] == ["update", f"install -y --no-install-recommends gcc {LIBRARIES}"]


@pytest.mark.parametrize("sudo", [None, SUDO["of no use"]], ids=["without sudo", "with a password"])
def test_a_user_is_told_the_command_and_asked_for_no_password(tmp_path, sudo):
    there, said, asked = Machine(tmp_path, uid=1000, sudo=sudo).packages("install", "build")
    assert not there and not [line for line in asked if line != "sudo -n true"]
    assert said == (f"gatling: missing: cc fmt.h nghttp2/nghttp2.h openssl/sha.h seccomp.h stdio.h zlib.h: "
                    f"install with: sudo apt-get install --no-install-recommends gcc {LIBRARIES}\n")  # fmt: skip


def test_a_user_with_a_sudo_that_asks_for_no_password_installs(tmp_path):
    _, _, asked = Machine(tmp_path, uid=1000, sudo=SUDO["without a password"]).packages("install", "build")
    assert len([line for line in asked if line.startswith("sudo env DEBIAN_FRONTEND=noninteractive apt-get ")]) == 2
    assert asked[-1].endswith(f"install -y --no-install-recommends gcc {LIBRARIES}")


def test_another_compiler_is_the_package_of_its_name(tmp_path):
    _, said, _ = Machine(tmp_path).packages("install", "build", cc="clang -m64")
    assert said.startswith(f"gatling: installing clang {LIBRARIES} \n")


@pytest.mark.parametrize("uid", [0, 1000])
def test_where_nothing_is_missing_nothing_is_asked(tmp_path, uid):
    machine = Machine(tmp_path, uid=uid, sudo=SUDO["without a password"], compiler="cc")
    assert machine.packages("install", "build") == (True, "", [])


def test_who_only_looks_installs_nothing(tmp_path):
    there, said, asked = Machine(tmp_path).packages("see", "build")
    assert not there and not asked and said.endswith(f": 'make deps' installs gcc {LIBRARIES}\n")


def test_all_tests_take_what_a_check_takes_and_more(tmp_path):
    machine = Machine(tmp_path)
    few, many = (set(machine.packages("see", purpose)[1].split(" installs ")[1].split()) for purpose in ("check", "check-all"))
    assert few < many and "libcmocka-dev" in few and "chromium" in many - few
