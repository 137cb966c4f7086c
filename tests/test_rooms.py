"""The order of the rooms: a file includes and calls files of its own room and of those below it, and
no two files include or call each other, directly or indirectly."""

import collections
import functools
import re
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent

# From the top. Rooms in one row do not include each other.
SERVER = [
    ["gatling"],
    ["gatling/options"],
    ["gatling/load"],
    ["gatling/quic"],
    ["gatling/conn"],
    ["gatling/http2", "gatling/http3"],
    ["gatling/streams"],
    ["gatling/exchange"],
    ["gatling/site/answer"],
    ["gatling/site"],
    ["gatling/site/cache"],
    ["gatling/site/access"],
    ["gatling/site/listing", "gatling/site/rules"],
    ["gatling/upstream"],
    ["gatling/client"],
    ["gatling/tls", "gatling/log", "gatling/status", "gatling/acme"],
    ["gatling/files"],
    ["gatling/media"],
    ["gatling/codec"],
    ["gatling/hpack", "gatling/http"],
    ["gatling/keeper"],
    ["gatling/broker"],
    ["gatling/base"],
    ["gatling/sandbox"],
    ["io"],
]
BENCH = [
    ["bench/accuracy"],
    ["bench/httpbench", "bench/connbench", "bench/crowd", "bench/kbench", "bench/versus", "bench/suite"],
    ["bench/httpbench/load"],
    ["bench/httpbench/statistics"],
    ["bench/httpbench/transport"],
    ["bench/client"],
    ["bench"],
    ["io"],
]
FILES_MAX = 25  # in a room, as far as a build needs them
ALTERNATIVES = re.compile(r"io/(epoll|kqueue|poll|sigio|uring|sendfile-\w+)\.c|(gatling/quic|bench/httpbench/transport)/none\.c|gatling/codec/no_\w+\.c")  # a build takes one or two


def sources(*folders):
    names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders], cwd=TOP, check=True,
                           capture_output=True, text=True).stdout.split()  # fmt: skip
    return [TOP / name for name in names if name.endswith((".c", ".h")) and (TOP / name).exists()]


def included(source):
    names = re.findall(r'^\s*#\s*include "([^"]+)"', source.read_text(), re.MULTILINE)
    return [TOP / name for name in names if (TOP / name).exists()]


def room(source):
    return str(source.relative_to(TOP).parent)


def module(source):
    """Returns the module of a file. A .c file and its header are one: whoever includes the header
    calls the other."""
    return str(source.relative_to(TOP).with_suffix(""))


def circles(arrows):
    """Returns each circle of modules, as the modules on it. arrows: {module: the modules that it needs}."""
    found, done = [], set()

    def follow(name, path):
        if name in path:
            found.append(path[path.index(name):])  # fmt: skip
        elif name not in done:
            for other in sorted(arrows.get(name, set()) - {name}):
                follow(other, [*path, name])
            done.add(name)

    for name in sorted(arrows):
        follow(name, [])
    return found


def includes(folders):
    arrows = {}
    for source in sources(*folders):
        arrows.setdefault(module(source), set()).update(module(other) for other in included(source))
    return arrows


def symbols(folder):
    """Returns the names that each module defines, and those that it needs: two of {module: names}. folder: of object files."""
    objects = {folder / f"{module(source)}.o" for source in sources("gatling", "io", "bench")}
    there = [path for path in sorted(objects) if path.exists()]
    said = subprocess.run(["nm", "-A", "--format=posix", *there], check=True, capture_output=True, text=True).stdout
    defined, needed = {}, {}
    for path, name, kind in re.findall(r"^(\S+)\.o: (\S+) (\w)", said, re.MULTILINE):
        if kind in "TDBRCVWU":
            (needed if kind == "U" else defined).setdefault(str(Path(path).relative_to(folder)), set()).add(name)
    return defined, needed


@functools.cache
def calls(folder):
    """Returns {module: the modules of which it needs a function or variable}. Programs may have the same names."""
    defined, needed = symbols(folder)
    definers = collections.Counter(name for names in defined.values() for name in names)
    owner = {name: module for module, names in defined.items() for name in names if definers[name] == 1}
    return {module: {owner[name] for name in names if name in owner} for module, names in needed.items()}


@pytest.mark.parametrize("folder,rooms", [("gatling", SERVER), ("bench", BENCH)])
def test_a_room_includes_only_rooms_below_it(folder, rooms):
    level = {name: row for row, names in enumerate(rooms) for name in names}
    wrong = []
    for source in sources(folder, "io"):
        here = room(source)
        assert here in level, f"{here} is no room: tests/test_rooms.py names them"
        for other in included(source):
            there = room(other)
            if there != here and level.get(there, -1) <= level[here]:
                wrong.append(f"{source.relative_to(TOP)} includes {other.relative_to(TOP)}")
    assert not wrong


def test_no_two_files_include_each_other():
    assert circles(includes(["gatling", "io", "bench"])) == []


def test_no_two_files_call_each_other(objects):
    assert circles(calls(objects)) == []


@pytest.mark.parametrize("rooms", [SERVER, BENCH], ids=["gatling", "bench"])
def test_a_room_calls_only_rooms_below_it(objects, rooms):
    level = {name: row for row, names in enumerate(rooms) for name in names}
    wrong = []
    for here, others in calls(objects).items():
        for there in others:
            above, below = (level.get(str(Path(name).parent)) for name in (here, there))
            if None not in (above, below) and Path(here).parent != Path(there).parent and below <= above:
                wrong.append(f"{here} calls {there}")
    assert not wrong


def test_a_room_can_be_taken_in():
    count = {}
    for source in sources("gatling", "io", "bench"):
        if not ALTERNATIVES.fullmatch(str(source.relative_to(TOP))):
            count[room(source)] = count.get(room(source), 0) + 1
    assert {name: n for name, n in count.items() if n > FILES_MAX} == {}


def test_only_the_workers_and_what_starts_them_include_worker_h():
    worker = TOP / "gatling" / "worker.h"
    assert sorted(str(s.relative_to(TOP)) for s in sources("gatling") if worker in included(s)) == [
        "gatling/listen.h", "gatling/worker.c", "gatling/workers.h"]  # fmt: skip


def test_the_page_of_the_event_layer_has_all_its_functions():
    page = (TOP / "man/io.3").read_text()
    for name in ("io/io.h", "io/alarm.h", "io/datagram.h", "io/iob.h"):
        header = re.sub(r"/\*.*?\*/", "", (TOP / name).read_text(), flags=re.DOTALL)
        functions = set(re.findall(r"\b(iob?_\w+)\(", header))
        types = set(re.findall(r"^typedef .*\b(iob?_\w+)\(", header, re.MULTILINE))
        assert {f for f in functions if not re.search(rf"^\.(Fn|Fo) {f}\b", page, re.MULTILINE)} == set()
        assert {f for f in functions - types if f".Nm {f}" not in re.findall(r"\.Nm \w+", page)} == set()


@pytest.mark.parametrize("folders", [["gatling", "io"], ["bench/httpbench", ":(glob)bench/*.[ch]", "io"], ["bench/kbench", ":(glob)bench/*.[ch]", "io"]])
def test_a_name_of_a_type_stands_for_one_thing_in_a_program(folders):
    defined = collections.defaultdict(set)
    for source in sources(*folders):
        if not ALTERNATIVES.fullmatch(str(source.relative_to(TOP))):
            for name in re.findall(r"^[^\S\n]*(?:static )?(?:const )?((?:struct|enum|union) \w+) \{", source.read_text(), re.MULTILINE):
                defined[name].add(str(source.relative_to(TOP)))
    assert {name: files for name, files in defined.items() if len(files) > 1} == {}


FOREIGN = {"tcp.h", "zconf.h"}  # of libraries


def test_files_that_texts_name_are_there():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=TOP, check=True, capture_output=True,
                            text=True).stdout.split()  # fmt: skip
    listed = [name for name in listed if (TOP / name).exists()]
    names, missing = {Path(name).name for name in listed}, []
    for name in listed:
        if name.startswith(("gatling/", "io/", "bench/", "README", "man/")) and name.endswith((".c", ".h", "README", ".1", ".3", ".5", ".7", ".8")):
            text = re.sub(r"^#\s*include <.*", "", (TOP / name).read_text(), flags=re.MULTILINE)
            found = re.findall(r"(?<![\w.<-])(?:\w+/)*([a-z_0-9-]+\.[ch])\b(?![.\w])", text)
            missing += [(name, file) for file in found if file not in names | FOREIGN]
    assert missing == []


def test_no_two_modules_of_the_tests_have_one_name():
    """pytest and the tests import each by its name alone."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "tests/*.py"], cwd=TOP, check=True,
                            capture_output=True, text=True).stdout.split()  # fmt: skip
    count = collections.Counter(Path(name).name for name in listed if (TOP / name).exists())
    assert {name for name, n in count.items() if n > 1} == {"conftest.py"}


def test_the_way_through_the_code_names_each_room():
    text = (TOP / "gatling" / "README").read_text()
    assert [folder for row in SERVER for folder in row if f" {folder.split('/')[-1]}/" not in text] == []
