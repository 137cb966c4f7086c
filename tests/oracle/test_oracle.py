"""The server answers as the manual says: some seconds of fuzz.py."""

import pytest

import fuzz
import generator
import reference

SECONDS, SEED = 50, 1


@pytest.mark.timeout(300)
def test_the_server_decides_as_the_manual_says(first_build):
    found = fuzz.fuzz(first_build, SECONDS, SEED, shrink=3)
    assert not found, found


def test_a_difference_is_found_and_made_small(first_build, monkeypatch):
    monkeypatch.setattr(reference, "refusals", lambda *_: set())
    found = fuzz.fuzz(first_build, 2, SEED, shrink=1)
    first = found.split("\n\n")[0]
    assert "got realm" in first and first.count(".htaccess") == 1, found


@pytest.mark.parametrize("path, stays", [("/goods/5", True), ("/goods/../admin", False), ("/goods/%2e%2E/admin", False), ("/other", False)])
def test_a_path_that_leaves_its_rule_is_found(path, stays):
    site = generator.Site("s.example", rules=["/shop id=:id http://127.0.0.1:80/goods/:id 200"])
    case = fuzz.Case((), generator.Site(""), site, generator.Asked("GET", "{site}", "/shop"), False, got=("passed", path))
    assert fuzz.stays(case) == stays
