"""Boots kernels from Debian's packages in qemu, with an initramfs whose init is guest.c. The
packages are not installed.

Without KVM, qemu emulates, and the guest's clock counts instructions (-icount)."""

import contextlib
import lzma
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import processes

MEMORY_MB = 3072
BOOT_S = 60
DATE = "2026-01-01"  # the date in an emulated guest
QUIET = "console=ttyS0 quiet panic=-1 "
SAME = "nokaslr norandmaps tsc=reliable random.trust_cpu=on "  # removes other randomness
UNTESTED = "cryptomgr.notests"  # skips the self-tests of ciphers: about half of an emulated boot


class Missing(Exception):
    """Something that a guest needs is missing."""


def command_output(*command, cwd=None):
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    except FileNotFoundError as error:
        raise Missing(f"{command[0]} is not there") from error
    if done.returncode:
        raise Missing(f"{' '.join(command)}: {done.stderr.strip().splitlines()[-1:] or done.returncode}")
    return done.stdout


# --- kernels ---


def version_key(name):
    return [int(part) for part in re.findall(r"\d+", name)]


def package_of(kernel):
    """Returns the package of a kernel."""
    if kernel.startswith("linux-image-"):
        return kernel
    beginning = f"linux-image-{kernel}."
    names = command_output("apt-cache", "pkgnames", beginning).split()
    found = [n for n in names if re.fullmatch(re.escape(beginning) + r"[\d.]+([-+]\w+)?-cloud-amd64", n)]
    if not found:
        raise Missing(f"there is no package {beginning}*-cloud-amd64: apt-cache search linux-image lists those that there are")
    return max(found, key=version_key)


def unpack(package, directory, tree):
    """Downloads a package and unpacks it to tree, which then appears at once, since other processes
    may do the same."""
    command_output("apt-get", "-qq", "download", package, cwd=directory)
    (archive,) = directory.glob("*.deb")
    command_output("dpkg-deb", "-x", str(archive), str(directory / "tree"))
    with contextlib.suppress(OSError):  # it exists by now
        (directory / "tree").rename(tree)


def kernel_file(kernel, cache):
    """Returns the kernel's version and the path of its image."""
    if "/" in kernel:
        if not Path(kernel).is_file():
            raise Missing(f"{kernel} is not there")
        return Path(kernel).name.removeprefix("vmlinuz-"), Path(kernel)
    package = package_of(kernel)
    tree = cache / package
    if not list(tree.glob("boot/vmlinuz-*")):
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as name:
            unpack(package, Path(name), tree)
    image = next(tree.glob("boot/vmlinuz-*"), None)
    if not image:
        raise Missing(f"{package} has no kernel in it")
    return image.name.removeprefix("vmlinuz-"), image


def modules_of(image, names, directory):
    """Returns the modules with these names from the kernel's package, and those that they need, as
    {path in the guest: file}, in the order in which they must be loaded. Those built into the
    kernel are left out."""
    packed = {re.sub(r"\.ko(\.xz)?$", "", path.name).replace("-", "_"): path for path in image.parents[1].rglob("*.ko*")}
    found = {}

    def add(name):
        inside, path = f"modules/{name}.ko", packed.get(name)
        if inside in found or not path:
            return
        content = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        for needed in re.search(rb"\0depends=([^\0]*)", content)[1].decode().split(","):
            add(needed.replace("-", "_"))
        found[inside] = directory / f"{name}.ko"
        found[inside].write_bytes(content)

    for name in names:
        add(name)
    return found


# --- the guest ---


def programs_of(*paths):
    """Returns programs and the libraries that they are linked with: {path in the guest: file}."""
    found = {}
    for path in map(Path, paths):
        found[f"bin/{path.name}"] = path
        for library in re.findall(r"(/\S+) \(0x", command_output("ldd", str(path))):
            found[library[1:]] = Path(library)
    return found


def fill_root(root, files, plan):
    """Fills a directory that will be the root of programs. files: {path in it: file}."""
    for inside in ("proc", "sys", "dev", "tmp"):
        (root / inside).mkdir()
    for inside, file in files.items():
        if not file.exists():
            raise Missing(f"{file} is not there: make vm builds it")
        (root / inside).parent.mkdir(parents=True, exist_ok=True)
        if os.access(file, os.X_OK):
            command_output("strip", "--strip-debug", "-o", str(root / inside), str(file))
        else:
            shutil.copy(file, root / inside)
    (root / "plan").write_text(plan)


def make_initramfs(files, plan, build, path):
    """Makes an archive with init, its plan, see guest.c, and files: {path in the guest: file}."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        fill_root(root, {"init": build / "bench" / "guest", **files}, plan)
        members = sorted(str(member.relative_to(root)) for member in root.rglob("*"))
        for member in (root, *root.rglob("*")):
            os.utime(member, (0, 0))
        archive = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet", "--reproducible", "-R", "0:0"], cwd=root,
                                 input="\n".join(members).encode(), capture_output=True, check=True).stdout  # fmt: skip
    path.write_bytes(archive)


class GuestError(Exception):
    """A guest ended early; output is what it sent until then."""

    def __init__(self, words, output):
        super().__init__(words)
        self.output = output


def boot(image, initramfs, accel, directory, limit_s, append=""):
    """Runs a guest to its end. append: more parameters for its kernel. Returns what it sent. Raises
    GuestError."""
    console, output = directory / "console", directory / "output"
    command = ["qemu-system-x86_64", "-M", "q35", "-smp", "1", "-m", str(MEMORY_MB), "-nodefaults", "-no-user-config",
               "-no-reboot", "-display", "none", "-serial", f"file:{console}", "-debugcon", f"file:{output}",
               "-global", "isa-debugcon.iobase=0xe9", "-kernel", str(image), "-initrd", str(initramfs)]  # fmt: skip
    if accel == "kvm":
        command += ["-accel", "kvm", "-cpu", "host", "-append", f"{QUIET} {append}"]
    else:
        command += ["-accel", "tcg", "-cpu", "max", "-icount", "shift=0,sleep=off", "-seed", "1", "-rtc",
                    f"base={DATE},clock=vm", "-append", f"{QUIET + SAME + UNTESTED} {append}"]  # fmt: skip
    try:
        done = processes.run(command, limit_s, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        problem = done.stderr.strip()
    except FileNotFoundError as error:
        raise Missing(f"{command[0]} is not there") from error
    except subprocess.TimeoutExpired:
        problem = f"still running after {limit_s} s"
    words = console.read_text(errors="replace") if console.exists() else ""
    handed_out = output.read_bytes() if output.exists() else b""
    if "guest: done" not in words:
        raise GuestError(f"{image.name}: {problem or 'ended early'}; the console ends: {words[-400:]!r}", handed_out)
    return handed_out


def kvm_works(image, build):
    """Boots a guest with an empty plan, since it does not suffice that the device file exists.
    Returns whether it worked."""
    if not os.access("/dev/kvm", os.W_OK):
        return False
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        make_initramfs({}, "", build, directory / "initramfs")
        try:
            boot(image, directory / "initramfs", "kvm", directory, BOOT_S)
            return True
        except GuestError:
            return False


def tables_of(output):
    """Returns {name: (status, table)} from a guest's output."""
    found, at = {}, 0
    while match := re.compile(rb"=(\S+) (\d+) (\d+)\n").match(output, at):
        end = match.end() + int(match[3])
        found[match[1].decode()] = (int(match[2]), output[match.end():end].decode())
        at = end
    return found
