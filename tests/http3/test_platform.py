"""Debian 13 with backports: the build has HTTP/3 there, its unit tests pass, and clients outside reach it."""

import re

from gatling import Root


def test_the_build_has_http3(http3):
    assert re.search(r"^HTTP/3: ngtcp2 [\d.]+, nghttp3 [\d.]+$", http3.run(http3.build / "gatling", "--version"), re.MULTILINE)


def test_the_libraries_are_linked_and_there_is_a_client(http3):
    assert {"libngtcp2", "libnghttp3"} <= set(re.findall(r"\b(lib\w+)\.so", http3.run("ldd", http3.build / "gatling")))
    assert " HTTP3 " in http3.run("curl", "--version")


def test_the_unit_tests_that_take_the_libraries_pass(http3):
    programs = sorted((http3.build / "tests").glob("test_*"))
    assert programs
    for program in programs:
        http3.run(program)


def test_a_client_outside_is_served_by_a_server_inside(http3):
    root = Root({"index.html": b"inside"})
    with http3.server(root) as server:
        assert server.get("/").body == b"inside"
        assert server.sandbox
    root.remove()
