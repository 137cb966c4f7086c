"""README's first commands on a Debian that has nothing but make and git. That those that run tests pass there, which takes
long, "make bare-check" tells."""

import os
import re

import pytest

from bare import RELEASES, Bare, commands, site

pytestmark = pytest.mark.others


@pytest.fixture(scope="module", params=RELEASES)
def bare(request):
    if os.geteuid() != 0:
        pytest.skip("takes root")
    with Bare(request.param) as made:
        yield made


def test_make_alone_installs_nothing(bare):
    with bare.running("make") as process:
        said = process.stdout.read()
    assert "gatling: missing: cc " in said and "installing" not in said and not (bare.path / "usr/bin/cc").exists()


def test_the_first_command_installs_builds_and_serves_and_then_serves_at_once(bare):
    run, *_ = commands()
    site(run, bare.path)
    said, page = bare.serve(run)
    assert page == b"it works" and "gatling: installing gcc " in said
    apt = bare.path / "usr/local/bin/apt-get"
    apt.write_text("#!/bin/sh\necho apt-get was run\n")
    apt.chmod(0o755)
    said, page = bare.serve(run)
    apt.unlink()
    assert page == b"it works" and not re.search("apt-get|installing|^(CC|LINK) ", said, re.MULTILINE), said


def test_what_the_others_install_can_be_installed_and_few_packages_do_for_a_check(bare):
    (bare.path / "root/simulate").write_text('APT::Get::Simulate "true";\n')
    count = []
    for check in commands()[1:]:
        with bare.running(check, APT_CONFIG="/root/simulate") as process:
            said = process.stdout.read()
        names = re.search("gatling: installing (.*)", said)[1].split()
        assert [name for name in names if f"\nInst {name} " not in said] == [], said
        count.append(len(names))
    few, many = count
    assert few < 30 and many > 40
