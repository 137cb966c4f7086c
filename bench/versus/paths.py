"""Runs servers and clients at the two ends of a network with a delay and loss, in an emulated machine
or in namespaces of the kernel that runs.

The ends are namespaces, near and far, and between them is a third one that passes on packets. It
delays and loses them in each direction, and limits their rate if it is to: what it drops, nobody is
told of. A packet is a segment or a datagram, since the loss of one should not take 64 KB with it.
Nothing is remembered of earlier connections, and the client's windows are open from the start, so
that only the sender decides.
"""

import argparse
import platform
import shutil
import sys
from pathlib import Path

sys.path += [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[1] / "suite")]

from enclosure import delays_packets, run_enclosed
from guests import GuestError, Missing, boot, kernel_file, make_initramfs, modules_of, programs_of, tables_of

NEAR, NEAR_GATEWAY, FAR, FAR_GATEWAY = "10.0.0.1", "10.0.0.2", "10.0.1.1", "10.0.1.2"
MODULES = "veth", "sch_netem", "tcp_diag"
EMULATOR = "qemu-system-x86_64", "cpio", "strip"
PROGRAMS = "sh", "cat", "ip", "mkdir", "sleep", "tc"
WINDOW = 6 * 2**20
THIS = "this"
SMALL = "thash_entries=2048"  # the hash table of sockets, which queued.c goes through each time
BOOT_S, REAL_S = 3600, 4 * 3600  # at most

SCRIPT = f"""
PATH=/bin
set -e
exec 2>&1

# END ADDRESS GATEWAY
join() {{
	ip link add ${{1}}0 netns $1 type veth peer name ${{1}}1 netns between
	ip -n $1 address add $2/24 dev ${{1}}0
	ip -n between address add $3/24 dev ${{1}}1
	ip -n $1 link set dev lo up
	ip -n $1 link set dev ${{1}}0 gso_max_segs 1 up
	ip -n between link set dev ${{1}}1 up
	ip -n $1 route add default via $3
	ip netns exec $1 sh -c "echo 1 >/proc/sys/net/ipv4/tcp_no_metrics_save"
}}

# CONTROL: of congestion, with which the server sends
prepare() {{
	mkdir -p /run/netns /var/run /var/lib/nginx /var/log/nginx
	for space in near between far; do ip netns add $space; done
	join near {NEAR} {NEAR_GATEWAY}
	join far {FAR} {FAR_GATEWAY}
	ip netns exec between sh -c "echo 1 >/proc/sys/net/ipv4/ip_forward"
	ip netns exec near sh -c "echo $1 >/proc/sys/net/ipv4/tcp_congestion_control"
	ip netns exec far sh -c "echo 4096 {WINDOW} {WINDOW} >/proc/sys/net/ipv4/tcp_rmem"
	[ ! -w /proc/sys/net/core/rmem_max ] || echo {WINDOW} >/proc/sys/net/core/rmem_max
}}

# DELAY LOSS LIMIT [RATE]: of each direction
network() {{
	for end in near far; do
		tc -n between qdisc replace dev ${{end}}1 root netem delay $1ms loss $2% limit $3 ${{4:+rate $4}}
	done
}}

# COMMAND...
serve() {{
	ip netns exec near "$@" >/tmp/log 2>&1 &
	sleep 1
	kill -0 $! || {{ cat /tmp/log; exit 1; }}
}}

# HTTPBENCH...: one client after the other
load() {{
	ip netns exec far "$@" -c 1 -k 1 -T 3600 --json /tmp/json >/tmp/log || {{ cat /tmp/log; exit 1; }}
	cat /tmp/json
}}

# CONNBENCH...
kept() {{
	ip netns exec far "$@"
}}

# PORT MICROSECONDS HTTPBENCH...: what was queued, then the result
queue() {{
	ip netns exec near queued $1 $2 >/tmp/queued &
	shift 2
	load "$@" >/tmp/result || {{ cat /tmp/result; exit 1; }}
	kill $!
	wait $!
	cat /tmp/queued /tmp/result
}}

"$@"
"""
SHELL = "/bin/sh /script"
LARGE = 10**6  # packets of a queue that is never full


def program(name):
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if not path:
        raise Missing(f"{name} is not installed: make deps FOR=delay")
    return path


def lacks(image, names):
    """Returns those of the modules that the package's kernel neither contains nor has as files."""
    there = " ".join(path.name for path in image.parents[1].rglob("*.ko*"))
    there += " ".join(path.read_text() for path in image.parents[1].rglob("modules.builtin"))
    return [name for name in names if f"{name}.ko" not in there]


def modules(image, controls, directory):
    names = [*MODULES, *(f"tcp_{name}" for name in controls if name != "cubic")]  # it is always built in
    missing = lacks(image, names)
    if missing:
        raise Missing(f"{image.name} has no {', '.join(missing)}: --kernel selects another")
    return modules_of(image, names, directory)


def files_of(image, controls, written, directory):
    """Returns the files of a guest: {path in it: file}, the modules first. image: None if it runs
    on this kernel; written: {path in it: content} of more files."""
    files = modules(image, controls, directory) if image else {}
    files |= programs_of(*map(program, PROGRAMS))
    for name, content in {"script": SCRIPT.encode(), **written}.items():
        files[name] = directory / name.replace("/", "-")
        files[name].write_bytes(content)
    return files


def kernel_of(arguments):
    """Returns the kernel's name and its image, or None instead of that if it is the running one."""
    if arguments.kernel == THIS:
        if not delays_packets(program("tc")):
            raise Missing("this kernel has no netem, or this is not root: without --kernel this, another one is emulated")
        return platform.release(), None
    for name in EMULATOR:
        program(name)
    version, image = kernel_file(arguments.kernel, arguments.build / "kernels")
    return f"{version}, emulated", image


def opening(files, control):
    """Returns the first lines of a plan."""
    return [*(f"{name} /{name}" for name in files if name.startswith("modules/")), f"prepare {SHELL} prepare {control}"]


def run(image, files, lines, build, directory):
    """Runs a plan. Returns {name of a line: what it has written}. Raises GuestError if one has
    failed."""
    plan = "\n".join(lines) + "\n"
    if not image:
        tables = run_enclosed(files, plan, directory, REAL_S)
    else:
        make_initramfs(files, plan, build, directory / "initramfs")
        tables = tables_of(boot(image, directory / "initramfs", "tcg", directory, BOOT_S, SMALL))
    for what, (status, text) in tables.items():
        if status:
            raise GuestError(f"{what}: {(text.strip().splitlines() or [f'status {status}'])[0]}", b"")
    return {what: text for what, (_, text) in tables.items()}


# --- what programs that measure such networks share ---


def numbers(text):
    return [float(number) for number in text.split(",")]


def parser_of(description, ports):
    """Returns a parser of the options that they share. ports: those of the servers, by name."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("build", type=Path)
    parser.add_argument("--servers", default=",".join(ports), metavar="NAME,...")
    parser.add_argument("--controls", default="cubic,bbr", metavar="NAME,...", help="of congestion; default: cubic,bbr")
    parser.add_argument("--delays", type=numbers, default=[0, 10, 40, 200], metavar="MS,...", help="there and back; default: 0,10,40,200")
    parser.add_argument("--losses", type=numbers, default=[0, 1], metavar="PERCENT,...", help="default: 0,1")
    parser.add_argument("--kernel", default="6.12", help="default: the newest 6.12; this: the one that runs")
    parser.add_argument("--out", type=Path, default=Path("build/versus"))
    return parser


def parse_options(parser, ports, fail):
    """Returns the options. fail(text) ends the program."""
    arguments = parser.parse_args()
    arguments.servers, arguments.controls = arguments.servers.split(","), arguments.controls.split(",")
    for name in [n for n in arguments.servers if n not in ports]:
        fail(f"there is no server {name}: {', '.join(ports)}")
    return arguments


def networks(arguments):
    """Returns {name: (loss, delay)} of all networks."""
    return {f"{loss:g}%-{delay:g}ms": (loss, delay) for loss in arguments.losses for delay in arguments.delays}


def write_tsv(path, rows):
    """Writes rows, of which there is one at least, with the names of their columns above them."""
    with open(path, "w", encoding="utf-8") as out:
        print(*rows[0], sep="\t", file=out)
        for row in rows:
            print(*(f"{value:.3f}" if isinstance(value, float) else value for value in row.values()), sep="\t", file=out)
