"""What the build needs is installed, or said to be missing: .ci/packages."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

PACKAGES = Path(__file__).resolve().parent.parent / ".ci" / "packages"
USED = ("awk", "cat", "env", "paste", "sed", "sh", "sort", "tr", "uname")
HTTP3 = ("libnghttp3-dev", "libngtcp2-crypto-ossl-dev", "libngtcp2-dev")
LIBRARIES = "libc6-dev libcrypt-dev libnghttp2-dev libowfat-dev libseccomp-dev libssl-dev linux-libc-dev zlib1g-dev"
SUDO = {"of no use": "exit 1", "without a password": '[ "$1" = -n ] || exec "$@"'}


class Machine:
    """A PATH with few commands in it. asked has a line for each use of the package manager and sudo. suites: those that apt knows."""

    def __init__(self, directory, uid=0, sudo=None, compiler=None, suites=(), manager="apt-get"):
        self.bin, self.asked = directory / "bin", directory / "asked"
        self.bin.mkdir()
        self.asked.touch()
        for name in USED:
            (self.bin / name).symlink_to(shutil.which(name))
        self.write("id", f"echo {uid}")
        configured = '[ "$1 $2" = "indextargets --no-release-info" ]'  # else only those whose lists have been fetched
        self.write(manager, f'{configured} && echo "{" ".join(suites)}" || echo "apt-get $*" >> {self.asked}')
        if sudo:
            self.write("sudo", f'echo "sudo $*" >> {self.asked}; {sudo}')
        if compiler:
            self.write(compiler, "echo /usr/lib/any")  # it finds every header and library

    def write(self, name, script):
        (self.bin / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.bin / name).chmod(0o755)

    def packages(self, *arguments, cc="cc"):
        """Returns whether all is there, what was said, and what was asked for."""
        environment = {"PATH": str(self.bin), "CC": cc}
        done = subprocess.run(["/bin/sh", PACKAGES, *arguments], env=environment, capture_output=True, text=True, check=False)
        assert not done.stdout
        return done.returncode == 0, done.stderr, self.asked.read_text().splitlines()


pytestmark = pytest.mark.skipif(os.uname().sysname != "Linux", reason="names of Linux")


def test_root_installs_the_compiler_too(tmp_path):
    _, said, asked = Machine(tmp_path).packages("install", "build")
    assert said.startswith(f"gatling: installing gcc {LIBRARIES} \n")
    assert [line.split("=300 ")[1] for line in asked] == ["update", f"install -y --no-install-recommends gcc {LIBRARIES}"]


@pytest.mark.parametrize("sudo", [None, SUDO["of no use"]], ids=["without sudo", "with a password"])
def test_a_user_is_told_the_command_and_asked_for_no_password(tmp_path, sudo):
    there, said, asked = Machine(tmp_path, uid=1000, sudo=sudo).packages("install", "build")
    assert not there and not [line for line in asked if line != "sudo -n true"]
    assert said == (f"gatling: missing: cc crypt.h fmt.h libc.a linux/landlock.h nghttp2/nghttp2.h openssl/sha.h seccomp.h stdio.h sys/queue.h zlib.h: "
                    f"install with: sudo apt-get install --no-install-recommends gcc {LIBRARIES}\n")  # fmt: skip


def test_a_user_with_a_sudo_that_asks_for_no_password_installs(tmp_path):
    _, _, asked = Machine(tmp_path, uid=1000, sudo=SUDO["without a password"]).packages("install", "build")
    assert len([line for line in asked if line.startswith("sudo env DEBIAN_FRONTEND=noninteractive apt-get ")]) == 2
    assert asked[-1].endswith(f"install -y --no-install-recommends gcc {LIBRARIES}")


ELSEWHERE = {
    "dnf": "dnf install gcc glibc-devel glibc-static kernel-headers libnghttp2-devel libowfat-devel libseccomp-devel libxcrypt-devel openssl-devel zlib-devel",
    "apk": "apk add bsd-compat-headers gcc libowfat-dev libseccomp-dev linux-headers musl-dev nghttp2-dev openssl-dev zlib-dev",
    "pacman": "pacman -S gcc glibc libnghttp2 libseccomp libxcrypt linux-api-headers openssl zlib; in the AUR: libowfat",
}


@pytest.mark.parametrize("manager", ELSEWHERE)
@pytest.mark.parametrize("uid", [0, 1000])
def test_fedora_alpine_and_arch_are_told_the_command(tmp_path, manager, uid):
    there, said, asked = Machine(tmp_path, uid=uid, sudo=SUDO["without a password"], manager=manager).packages("install", "build", "maybe-http3")
    assert not there and [line for line in asked if line != "sudo -n true"] == []
    assert said.split(": install with: ")[1] == f"{'sudo ' if uid else ''}{ELSEWHERE[manager]}\n"


def test_who_only_looks_there_is_told_what_tells_the_command(tmp_path):
    there, said, asked = Machine(tmp_path, manager="apk").packages("see", "build")
    assert not there and not asked and ": 'make deps' says how to install bsd-compat-headers gcc " in said


def test_what_no_package_has_is_said(tmp_path):
    machine = Machine(tmp_path, compiler="cc", manager="pacman")
    machine.write("cc", 'case $1 in -print-file-name=libc.a) echo /usr/lib/libc.a;; -print*) echo "${1#*=}";; esac')
    machine.write("python3", "exit 0")
    assert machine.packages("install", "oci")[1] == "gatling: missing: libbrotlienc.a libcrypto.a libnghttp2.a libseccomp.a libz.a: no package of this system has it\n"


def test_each_thing_has_a_name_in_each_system():
    rows = [line.split() for line in PACKAGES.read_text().split("table=")[1].split("\n'\n")[0].splitlines()[2:]]
    assert len(rows) > 70 and [row for row in rows if len(row) != 8] == []


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


@pytest.mark.parametrize("suites,suffix", [(("trixie", "trixie-backports"), "/trixie-backports"), (("forky",), "")])
def test_the_libraries_of_http3_come_from_backports_of_debian_13_and_later_from_the_release(tmp_path, suites, suffix):
    _, _, asked = Machine(tmp_path, compiler="cc", suites=suites).packages("install", "http3")
    names = asked[-1].split(" --no-install-recommends ")[1].split()
    assert names == [*(name + suffix for name in HTTP3), "libssl-dev", "pkgconf"]


@pytest.mark.parametrize("action", ["install", "see"])
@pytest.mark.parametrize("suites", [("trixie", "trixie-updates"), ("bookworm", "bookworm-backports")], ids=lambda names: names[0])
def test_a_debian_without_the_libraries_of_http3_is_told_where_they_are_and_nothing_is_installed(tmp_path, suites, action):
    there, said, asked = Machine(tmp_path, compiler="cc", suites=suites).packages(action, "http3")
    assert not there and not asked
    assert said == ("gatling: missing: libnghttp3>=1.15 libngtcp2>=1.22 libngtcp2_crypto_ossl>=1.22: with 'deb http://deb.debian.org/debian "
                    "trixie-backports main' in /etc/apt/sources.list of Debian 13, 'make deps FOR=http3' installs them\n")  # fmt: skip


@pytest.mark.parametrize("suites,installs", [(("trixie", "trixie-backports"), True), (("trixie",), False), (("bookworm", "bookworm-backports"), False)], ids=lambda names: str(names))
def test_a_build_that_need_not_have_http3_takes_its_libraries_where_they_can_be_installed(tmp_path, suites, installs):
    there, said, asked = Machine(tmp_path, suites=suites).packages("install", "build", "maybe-http3")
    names = asked[-1].split(" --no-install-recommends ")[1].split()
    assert (f"{HTTP3[0]}/trixie-backports" in names) == installs and ("pkgconf" in names) == installs and "gcc" in names
    assert "libngtcp2>=1.22" not in said or installs


@pytest.mark.parametrize("version,there", [("1.21.9", False), ("1.22.0", True), ("2.0", True)])
def test_a_library_that_is_too_old_is_missing(tmp_path, version, there):
    machine = Machine(tmp_path, compiler="cc", suites=("forky",))
    module = "Name: any\nDescription: any\nVersion: {}\n"
    for name, found in (("libngtcp2", version), ("libngtcp2_crypto_ossl", "1.22.1"), ("libnghttp3", "1.15.0"), ("openssl", "3.5.1")):
        (tmp_path / f"{name}.pc").write_text(module.format(found))
    machine.write("pkg-config", f'PKG_CONFIG_LIBDIR={tmp_path} exec {shutil.which("pkg-config")} "$@"')
    assert machine.packages("see", "http3")[0] == there


def test_what_a_server_without_http3_says_that_it_needs_is_what_the_build_asks_for():
    text = (PACKAGES.parent.parent / "gatling/quic/none.c").read_text()
    wanted = dict(re.findall(r"^http3 library:(\w+)>=(\S+)", PACKAGES.read_text(), re.MULTILINE))
    said = re.search(r"needs libngtcp2 >= (\S+), libngtcp2_crypto_ossl, libnghttp3 >= (\S+), OpenSSL >= ([\d.]+)", text).groups()
    assert said == tuple(wanted[name] for name in ("libngtcp2", "libnghttp3", "openssl")) and wanted["libngtcp2_crypto_ossl"] == wanted["libngtcp2"]
