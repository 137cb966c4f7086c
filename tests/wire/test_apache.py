"""The server is compared with Apache 2.4 over files .htaccess that are made up: it must never admit whom Apache does
not, and decide as Apache does where it understands a file. SEED=N FILES=N."""

import collections
import os
import random
import subprocess
import time

import pytest

import apache
from gatling import Root, Server, runnable

pytestmark = [pytest.mark.others, pytest.mark.decided, pytest.mark.clear, pytest.mark.skipif(not apache.is_there(), reason="without apache2-bin, and root")]

SEED, FILES = int(os.environ.get("SEED", "1")), int(os.environ.get("FILES", "250"))
ADMITTED = {200, 301, 404}
HASH = "$1$saltsalt$SWh2jK7VNoHg7Y0vgbCuG/"  # of "right"


def compare(build, tmp_path, cases):
    """Returns for each case its outcome, with the requests that differ. cases: {name: (text, inner text or None)}"""
    root = Root({".htpasswd": f"ann:{HASH}\nbob:{HASH}\n".encode()})
    for name, (text, inner) in cases.items():
        apache.fill(root.path / name, text.replace("{root}", str(root.path)), inner and inner.replace("{root}", str(root.path)))
    apache.open_all(root.path)
    time.sleep(2.1)  # until then files are new, and read again for each request
    asked = [request for name in cases for request in apache.requests(name)]
    with apache.Apache(root.path, tmp_path) as reference:
        expected = apache.statuses(reference.port, asked)
    with Server(build, root, "-j", "2", "--trust", "127.0.0.1") as server:
        got = apache.statuses(server.plain_port, asked)
    check = subprocess.run([runnable(build), "--check", "-E", root.path], capture_output=True, text=True, timeout=60, check=False)  # says everything
    said = check.stdout.splitlines()
    root.remove()
    outcomes = collections.defaultdict(list)
    for request, theirs, ours in zip(asked, expected, got, strict=True):
        outcomes[request.path.split("/")[1]].append((request, theirs, ours))
    return outcomes, [*said, *server.errors]


def wider(theirs, ours):
    """Returns whether the server gives away more than Apache does."""
    return ours != theirs and (ours in ADMITTED or (ours == 401 and theirs == 403))


def is_same(request, theirs, ours):
    """Returns whether the answers are the same. What has sections for names is not listed."""
    return theirs == ours or (request.path.endswith("/list/") and ours == 403)


def test_it_is_never_more_open_than_apache_and_the_same_where_it_understands(build, tmp_path):
    dice = random.Random(SEED)
    cases = {}
    for n in range(FILES):
        inner = apache.htaccess(dice, "{root}") if dice.random() < 0.3 else None
        cases[f"c{n}"] = apache.htaccess(dice, "{root}"), inner
    outcomes, errors = compare(build, tmp_path, cases)
    counts = collections.Counter()
    for name, found in outcomes.items():
        text, inner = cases[name]
        said = [error for error in errors if error.removeprefix("gatling: ").startswith(f"{name}/")]
        worst = next((one for one in found if wider(*one[1:])), None)
        assert not worst, f"{worst}\n--- {name}\n{text}--- inner\n{inner}\n{said}"
        same = all(is_same(*one) for one in found)
        understood = not any("access is denied" in error for error in said)
        different = next((one for one in found if not is_same(*one)), None)
        assert same or not understood, f"{different}\n--- {name}\n{text}--- inner\n{inner}\n{said}"
        counts["same" if same else "stricter", "understood" if understood else "closed"] += 1
    print(dict(counts))
