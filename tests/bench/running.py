"""Runs httpbench as the tests do."""

import json
import subprocess


def httpbench(build, *arguments, status=0, tmp_path=None, launcher=(), **options):
    """Returns its JSON or, without tmp_path, the completed process. launcher: a command that
    becomes it. options: for subprocess.run()."""
    command = [*launcher, build / "bench" / "httpbench", *map(str, arguments)]
    if tmp_path:
        command += ["--json", tmp_path / "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)
    assert done.returncode == status, done.stdout + done.stderr
    return json.loads((tmp_path / "json").read_text()) if tmp_path else done


def failures(result):
    return {kind: count for kind, count in result["failed"].items() if count}
