"""Takes each rule of docs/spec-coverage.md out once, and runs the tests that claim it: they must fail.

`rules.toml` says what to change for that. `python -m tests.docs.without_rules [1.2 1.13 …]` changes one rule at a time
in a copy of the tree, writes into the page how many were noticed, and prints those that none of their tests notices. It
takes ten minutes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

from tests.docs.spec_coverage import PAGE, REPOSITORY, covering, page

RULES: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("rules.toml").read_text("utf-8"))["rule"]
# What is large and not changed.
_SHARED = (".venv", "data")
_TIMEOUT_S = 600.0


def is_noticed(rule: dict[str, Any], tests: list[str], copy: Path) -> bool:
    """Return whether one of the tests fails in the copy without a rule."""
    changed = copy / rule["file"]
    whole = changed.read_text("utf-8")
    changed.write_text(whole.replace(rule["code"], rule["without"]), "utf-8")
    try:
        names = (each.split("::") for each in tests)
        wanted = [
            f"tests/{folder}/test_{module}.py::test_{test}"
            for path, test in names
            for folder, _, module in [path.rpartition("/")]
        ]
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *wanted]
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=_TIMEOUT_S, check=False)
        # 1: a test failed. A copy that cannot be imported notices everything.
        return done.returncode == 1 and b"ERROR collecting" not in done.stdout
    except subprocess.TimeoutExpired:
        return True
    finally:
        changed.write_text(whole, "utf-8")


def main(chosen: list[str]) -> int:
    """Try the rules of these requirements, or all. Return how many nobody noticed."""
    tests, tried, noticed, unseen = covering(), defaultdict[str, int](int), defaultdict[str, int](int), 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
        for name in filter(None, listed.stdout.split("\0")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, copy / name, follow_symlinks=False)
        for name in _SHARED:
            (copy / name).symlink_to(REPOSITORY / name)
        for rule in RULES:
            for number in (each for each in rule["of"] if not chosen or each in chosen):
                tried[number] += 1
                if is_noticed(rule, tests[number], copy):
                    noticed[number] += 1
                else:
                    unseen += 1
                    print(f"{number}: {rule['file']} without {rule['code']!r}", flush=True)  # noqa: T201 - a command
    PAGE.write_text(page({number: f" {noticed[number]}/{count}" for number, count in tried.items()}), "utf-8")
    return unseen


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
