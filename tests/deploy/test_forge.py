"""The forge's files are valid: its checks run what contributors run, and its forms ask what a fault's report needs."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from typing import Any

import pytest
import yaml

from tests.deploy import dockerfile
from tests.scenarios.program import REPOSITORY

FORGE = REPOSITORY / ".github"
CHECKS: dict[str, Any] = yaml.safe_load((FORGE / "workflows" / "checks.yml").read_text("utf-8"))


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.dependabot", "dependabot.yml"),
        ("vendor.github-workflows", "workflows/*.yml"),
        ("vendor.github-issue-forms", "ISSUE_TEMPLATE/[!c]*.yml"),
        ("vendor.github-issue-config", "ISSUE_TEMPLATE/config.yml"),
    ],
)
def test_the_files_follow_the_forges_schemas(schema: str, files: str) -> None:
    found = [str(path) for path in FORGE.glob(files)]
    assert found
    checked = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *found],
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
    )
    assert checked.returncode == 0, checked.stdout


def test_actions_are_named_by_commit() -> None:
    """Whoever takes over an action's repository can move its tags. The version is for Dependabot."""
    lines = [
        line.strip()
        for path in (FORGE / "workflows").glob("*.yml")
        for line in path.read_text("utf-8").splitlines()
        if "uses:" in line
    ]
    assert lines
    assert [line for line in lines if not re.fullmatch(r"- uses: [\w/.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


def test_the_checks_have_limits_and_name_targets_that_exist() -> None:
    assert all(job["timeout-minutes"] <= 90 for job in CHECKS["jobs"].values())
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    for target in ("quick", "test"):
        assert f"\n{target}:" in makefile
    stages = dockerfile.read((REPOSITORY / "Dockerfile").read_text("utf-8"))
    assert set(CHECKS["jobs"]["images"]["strategy"]["matrix"]["target"]) <= set(stages)


def test_everything_is_tested_on_each_python_that_installs_it() -> None:
    """The package names the versions for indexes, and takes no other."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    tested = CHECKS["jobs"]["whole"]["strategy"]["matrix"]["python"]
    mark = "Programming Language :: Python :: "
    assert tested == [each.removeprefix(mark) for each in project["classifiers"] if each.startswith(mark)]
    minors = [int(each.partition(".")[2]) for each in tested]
    assert project["requires-python"] == f">=3.{minors[0]},<3.{minors[-1] + 1}"
    assert minors == list(range(minors[0], minors[-1] + 1))
