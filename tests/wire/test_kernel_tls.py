"""TLS in the kernel: guests with Debian's kernels and tls.ko, in which gatling serves, and clients
compare what arrives."""

import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest

from guests import Missing, boot, kernel_file, make_initramfs, modules_of, programs_of, tables_of
from origin import certificate
from served import BIG, SMALL

pytestmark = pytest.mark.timeout(600)

GUEST_S = 500  # what takes 20 s takes longer on a machine that does other things, too: once more than 200
AHEAD_S = 3600  # by which the guest's clock is ahead, so that the certificate is valid
PROGRAMS = "sh", "cat", "cmp", "curl", "date", "env", "grep", "ip", "openssl", "sha256sum", "sleep", "tail", "wc"

# tls.ko requests ciphers by names with which modprobe(8) finds these; a guest has no modprobe
AES = "tls", "gcm", "ctr", "ghash_generic", "aesni_intel"
CHACHA = "chacha20poly1305", "chacha_generic", "poly1305_generic"

MIDDLE = {f"{size}": BIG[:size] for size in range(300_000, 330_000, 3_000)}  # the last record has many lengths
FILES = {"small": SMALL, "big": BIG} | MIDDLE

SCRIPT = r"""
PATH=/bin

serve() { # TIME
	ip link set lo up
	date -s "@$1" >/dev/null
	gatling -c /www -i 127.0.0.1 -j 1 -n -e --cert /cert.pem 2>/tmp/gatling &
	until grep -s serving /tmp/gatling || [ $((turns += 1)) = 100 ]; do sleep 0.1; done
	cat /tmp/gatling
}

buffers() { # bytes, of who receives and of who sends
	echo "4096 $1 $1" >/proc/sys/net/ipv4/tcp_rmem
	echo "4096 16384 $2" >/proc/sys/net/ipv4/tcp_wmem
}

# FILE OPTION...: begins late to read, and does until the server ends the stream: without close_notify that is an error
late() {
	file=$1
	shift
	{
		printf 'GET /%s HTTP/1.0\r\n\r\n' "$file" | openssl s_client -quiet -connect 127.0.0.1:443 "$@" 2>/tmp/errors
		echo $? >/tmp/status
	} | { sleep 0.1; cat; } >/tmp/answer
	tail -c "$(wc -c <"/www/$file")" /tmp/answer | sha256sum
	grep error: /tmp/errors
	return "$(cat /tmp/status)"
}

# the kernel's counters while a connection is open; when the host does other things for long, it may end before they are read
counters() {
	for attempt in 1 2 3; do
		{
			printf 'GET /small HTTP/1.1\r\nHost: a\r\n\r\n'
			until grep -q '^TlsCurrTxSw[^0-9]*1$' /proc/net/tls_stat || [ $((turns += 1)) = 100 ]; do sleep 0.1; done
			cat /proc/net/tls_stat >/tmp/counters
		} |
			openssl s_client -quiet -no_ign_eof -connect 127.0.0.1:443 >/tmp/answer 2>/tmp/errors
		grep -q '^TlsCurrTxSw[^0-9]*1$' /tmp/counters && break
	done
	cat /tmp/counters
}

http2() { # FILE
	curl -sSk --http2 -o /tmp/answer -w '%{http_version}' "https://127.0.0.1/$1" && cmp /tmp/answer "/www/$1"
}

"$@"
"""
# for programs without an option for it
TLS_1_2 = "openssl_conf = a\n[a]\nssl_conf = b\n[b]\nsystem_default = c\n[c]\nMaxProtocol = TLSv1.2\n"


def script(*words):
    return " ".join(("/bin/sh /script", *words))


def bench(version, file, requests, *arguments):
    limit = "OPENSSL_CONF=/tls-1.2" if version == "TLSv1.2" else "-u OPENSSL_CONF"
    return (f"/bin/env {limit} /bin/httpbench -n {requests} -c 1 {' '.join(arguments)} --insecure --expect /www/{file}"
            f" https://127.0.0.1/{file}")  # fmt: skip


VERSIONS = "TLSv1.2", "TLSv1.3"
REQUESTS = {"small": 10, "big": 2}
KEPT_OPEN = {(v, f, n, 1): bench(v, f, n) for v in VERSIONS for f, n in REQUESTS.items()}
ONE_EACH = {(v, f, n, n): bench(v, f, n, "-k", "1") for v in VERSIONS for f, n in REQUESTS.items()}
SEALED = {"-".join(map(str, key)): (key, words) for key, words in (KEPT_OPEN | ONE_EACH).items()}
CHACHA_OPTIONS = {
    "chacha": "-ciphersuites TLS_CHACHA20_POLY1305_SHA256",
    "chacha-1.2": "-tls1_2 -cipher ECDHE-ECDSA-CHACHA20-POLY1305",
}
REFUSED = {"small-records": "-maxfraglen 1024", **{f"no-{name}": options for name, options in CHACHA_OPTIONS.items()}}
CIPHERS = CHACHA_OPTIONS | {
    "aes128": "-ciphersuites TLS_AES_128_GCM_SHA256",
    "aes128-1.2": "-tls1_2 -cipher ECDHE-ECDSA-AES128-GCM-SHA256",
    "aes256-1.2": "-tls1_2 -cipher ECDHE-ECDSA-AES256-GCM-SHA384",
}


def commands(aes, chacha):
    """Returns the commands for a guest, {name: words}."""
    return {
        **{name: f"/{name}" for name in aes},
        "serve": script("serve", str(int(time.time()) + AHEAD_S)),
        **{name: words for name, (_, words) in SEALED.items()},
        "open": script("counters"),
        "http2": script("http2 big"),
        "buffers": script("buffers 16384 65536"),
        **{name: script("late", name) for name in MIDDLE},
        "http2-late": script("http2 300000"),
        **{name: script("late 300000", options) for name, options in REFUSED.items()},
        **{name: f"/{name}" for name in chacha},
        **{name: script("late 300000", options) for name, options in CIPHERS.items()},
    }


def or_skip(path, name):
    return path or pytest.skip(f"{name} is not there")


def program(name):
    return or_skip(shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin"), name)


def handed_out(image, plain, directory):
    """Returns the output of a guest in which gatling serves."""
    aes, chacha = modules_of(image, AES, directory), modules_of(image, CHACHA, directory)
    files = programs_of(plain / "gatling", plain / "bench" / "httpbench", *map(program, PROGRAMS)) | aes | chacha
    files["cert.pem"] = certificate(directory, "localhost", "IP:127.0.0.1")
    written = {f"www/{name}": content for name, content in FILES.items()}
    for name, content in (written | {"script": SCRIPT.encode(), "tls-1.2": TLS_1_2.encode()}).items():
        files[name] = directory / name.replace("/", "-")
        files[name].write_bytes(content)
    done = commands(aes, chacha)
    plan = "".join(f"{name} {words}\nafter-{name} /bin/cat /proc/net/tls_stat\n" for name, words in done.items())
    make_initramfs(files, plan, plain, directory / "initramfs")
    return boot(image, directory / "initramfs", "tcg", directory, GUEST_S)


class Guest:
    """The output of each command, and the kernel's counters after it."""

    def __init__(self, output):
        self.said = tables_of(output)
        self.names = [name for name in self.said if f"after-{name}" in self.said]
        assert "gatling: serving" in self.text("serve")

    def text(self, name):
        status, text = self.said[name]
        assert status == 0, f"{name}: {status}, {text}"
        return text

    def count(self, counter, name):
        return {key: int(count) for key, count in map(str.split, self.text(name).splitlines())}[counter]

    def sealed(self, name):
        """Returns how many connections the kernel took over during the command."""
        before = self.names[self.names.index(name) - 1]
        return self.count("TlsTxSw", f"after-{name}") - self.count("TlsTxSw", f"after-{before}")

    def whole(self, name, content):
        """Returns whether all of it came, including close_notify."""
        status, text = self.said[name]
        return status == 0 and text.split()[0] == hashlib.sha256(content).hexdigest()


def once(tmp_path_factory, name, make):
    """Returns what is made in a directory for it, once for all processes of pytest-xdist."""
    base = tmp_path_factory.getbasetemp()
    kept = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"kernel-tls-{name}"
    with open(f"{kept}.lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            with tempfile.TemporaryDirectory() as directory:
                kept.write_bytes(make(Path(directory)))
    return kept.read_bytes()


@pytest.fixture(scope="module", params=["6.1", "6.12"])
def guest(request, plain, tmp_path_factory):
    for name in ("qemu-system-x86_64", "cpio", "strip"):
        program(name)
    or_skip((plain / "bench" / "guest").exists(), "bench/guest, which is for x86-64 alone,")
    try:
        image = kernel_file(request.param, plain / "kernels")[1]
    except Missing as problem:
        pytest.skip(str(problem))
    return Guest(once(tmp_path_factory, request.param, lambda directory: handed_out(image, plain, directory)))


def test_the_kernel_seals_what_is_sent(guest):
    for name, ((version, _, requests, connections), _) in SEALED.items():
        text = guest.text(name)
        assert f"answered   {requests} in" in text and f"tls        {version} " in text and "failed" not in text
        assert guest.sealed(name) == connections
    assert guest.count("TlsCurrTxSw", "open") == 1
    assert guest.count("TlsCurrTxSw", "after-open") == 0


def test_http2(guest):
    for name in ("http2", "http2-late"):
        assert guest.text(name) == "2" and guest.sealed(name) == 1


def test_who_reads_late_gets_the_end_too(guest):
    """The socket is full: the last record waits beside it."""
    assert [name for name, content in MIDDLE.items() if not guest.whole(name, content)] == []
    assert all(guest.sealed(name) == 1 for name in MIDDLE)


def test_what_the_kernel_refuses_is_sealed_by_the_server(guest):
    assert [name for name in REFUSED if not guest.whole(name, MIDDLE["300000"])] == []
    assert not any(guest.sealed(name) for name in REFUSED)


def test_each_cipher(guest):
    assert [name for name in CIPHERS if not guest.whole(name, MIDDLE["300000"])] == []
    assert all(guest.sealed(name) == 1 for name in CIPHERS)
