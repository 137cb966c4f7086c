"""Another kernel in an emulated machine, whose clock counts instructions."""

import os
import shutil
import subprocess
from pathlib import Path

import analysis
import guests
import pytest
import stacks
from suite import table_path

VM = Path(__file__).parents[2] / "bench" / "suite" / "vm"
KERNEL = "6.12"  # of Debian 12 and 13


def vm(plain, out, *arguments, status=0):
    done = subprocess.run([VM, "--build", plain, "--out", out, *map(str, arguments)], capture_output=True, text=True,
                          timeout=600, check=False)  # fmt: skip
    if "apt-get" in done.stderr and status == 0:
        pytest.skip(done.stderr.strip())
    assert done.returncode == status, done.stderr
    return done


def test_two_boots_give_the_same_numbers(plain, tmp_path):
    for name in ("a", "b"):
        vm(plain, tmp_path / name, "--only", "socket,thread", "--runs", 1, "--accel", "tcg", KERNEL)
    (a,), (b,) = (list((tmp_path / name).iterdir()) for name in ("a", "b"))
    for job in ("socket", "thread"):
        assert table_path(a, job).read_bytes() == table_path(b, job).read_bytes()
    socket = analysis.load(table_path(a, "socket"))
    assert socket.header["kernel"][0].startswith(f"Linux {KERNEL}.") and "emulated" in socket.header
    assert socket.runs[0]["n"].max() > 50_000  # more descriptors than most machines allow


def test_a_profile_has_the_functions_of_that_kernel(plain, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{plain}/tools/inferno/bin:{os.environ['PATH']}")
    if not shutil.which("inferno-collapse-perf"):
        pytest.skip("there is no cargo to install inferno with")
    try:
        guests.package_of("6.1")
    except guests.Missing as missing:
        pytest.skip(str(missing))
    vm(plain, tmp_path, "--only", "mmap", "--runs", 1, "--accel", "tcg", "--profile", "6.1")
    functions = stacks.functions_of(next(tmp_path.glob("*/mmap.folded")).read_text())
    assert functions["mas_preallocate"] > 10 * stacks.PERIOD_NS  # of 6.1: newer ones hardly take that long


def test_a_link_takes_modules_of_that_kernel(plain, tmp_path):
    vm(plain, tmp_path, "--only", "stream-vxlan,relay-vxlan,forward-wireguard-ipv6", "--runs", 1, "--accel", "tcg", KERNEL)
    for name, link in (("stream-vxlan", "vxlan"), ("relay-vxlan", "vxlan"), ("forward-wireguard-ipv6", "wireguard")):
        table = analysis.load(table_path(next(tmp_path.iterdir()), name))
        assert table.header["path"] == [f"{link} over veth(4)"] and table.runs[0]["received_mbit_s"][-1] > 50, name


def test_a_kernel_that_there_is_not_is_named(plain, tmp_path):
    assert "linux-image-1.0." in vm(plain, tmp_path, "1.0", status=1).stderr


def test_a_guest_that_does_not_come_up_shows_its_console(plain, tmp_path):
    (tmp_path / "vmlinuz-none").write_bytes(b"no kernel")
    assert "vmlinuz-none" in vm(plain, tmp_path, "--only", "socket", "--accel", "tcg", tmp_path / "vmlinuz-none", status=1).stderr


def test_a_bisection_needs_one_benchmark_and_two_kernels(plain, tmp_path):
    assert "two kernels at least" in vm(plain, tmp_path, "--bisect", "socket", "6.1", status=1).stderr
    assert "--bisect takes one of" in vm(plain, tmp_path, "--bisect", "bind,socket", "6.1", "6.12", status=1).stderr
