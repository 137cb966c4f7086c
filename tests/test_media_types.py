"""The table of media types is the one that its generator makes of the package mime-db."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

MEDIA = Path(__file__).resolve().parent.parent / "gatling" / "media"


@pytest.fixture(scope="module")
def list_of_npm(node):
    path = node / "mime-db" / "db.json"
    if not path.exists():
        pytest.skip("mime-db is not installed")
    return path


def test_the_table_is_what_the_list_gives(list_of_npm):
    made = subprocess.run([sys.executable, MEDIA / "media_type_table.py", list_of_npm], capture_output=True, check=True, text=True)
    assert made.stdout == (MEDIA / "media_type_table.h").read_text(), "make it again with media_type_table.py"


def test_an_extension_with_two_types_has_to_be_decided(list_of_npm, tmp_path):
    listed = json.loads(list_of_npm.read_text())
    for kind in ("image/one", "model/two"):
        listed[kind] = {"source": "iana", "extensions": ["unheard"]}
    changed = tmp_path / "db.json"
    changed.write_text(json.dumps(listed))
    made = subprocess.run([sys.executable, MEDIA / "media_type_table.py", changed], capture_output=True, check=False, text=True)
    assert made.returncode and "unheard has several types: choose one of image/one, model/two" in made.stderr


def test_nothing_is_decided_twice_or_for_nothing(list_of_npm):
    """Otherwise the reasons given in the generator would be of no effect."""
    source = (MEDIA / "media_type_table.py").read_text()
    namespace = {"__name__": "media_type_table"}
    exec(compile(source, "media_type_table.py", "exec"), namespace)  # noqa: S102
    own = [extension for extensions in namespace["OWN"].values() for extension in extensions.split()]
    decided = own + namespace["UNKNOWN"]
    assert len(set(decided)) == len(decided)
    listed = {extension for entry in json.loads(list_of_npm.read_text()).values() for extension in entry.get("extensions", ())}
    assert set(namespace["UNKNOWN"]) <= listed
    assert all(re.fullmatch(r"[a-z0-9+_.~-]+", extension) for extension in listed | set(own))
