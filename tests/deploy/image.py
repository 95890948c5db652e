"""Builds the Dockerfile's stages as folders and runs commands in the result, as a container engine would.

Each command has its own mounts and its own process table. A `RUN` step works in a stage's folder; a container's command
gets the folder read-only, as the image's user, without capabilities.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tests.deploy import bare_root
from tests.deploy.dockerfile import DockerStage, DockerStep, cache_mounts, environment, exec_form
from tests.patience import PATIENCE_S
from tests.scenarios.program import REPOSITORY

BASE_PATH = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
# How this machine reaches the package index. An engine passes on the like.
_PASSED_ON = ("PIP_", "UV_", "SSL_", "REQUESTS_CA", "HTTP", "http", "no_proxy", "NO_PROXY", "ALL_PROXY", "all_proxy")


@dataclass(slots=True)
class Image:
    """A stage as a folder, with what its instructions say about running it."""

    root: Path
    variables: dict[str, str]
    folder: str = "/"
    user: str = "root"
    entrypoint: list[str] | None = None
    command: list[str] | None = None
    health: list[str] | None = None
    volume: str | None = None
    stop_signal: str | None = None


class Builder:
    """Builds stages below the folder `place`. `cache`: the folder behind every cache mount, which is uv's."""

    def __init__(self, stages: Mapping[str, DockerStage], place: Path, cache: Path) -> None:
        self._stages = stages
        self._place = place
        self._cache = cache
        self._built: dict[str, Image] = {}

    def build(self, name: str) -> Image:
        """Return the stage `name`, built with all stages that it needs."""
        if name in self._built:
            return self._built[name]
        root = self._place / name.replace("/", "_").replace(":", "_")
        if name not in self._stages:
            bare_root.make(root)
            image = Image(root, dict(BASE_PATH))
        else:
            base = self.build(self._stages[name].base)
            # Hard links: a step that changes a file replaces it.
            subprocess.run(["cp", "--archive", "--link", base.root, root], check=True)
            image = replace(base, root=root)
            for step in self._stages[name].steps:
                self._apply(step, image)
        self._built[name] = image
        return image

    def _apply(self, step: DockerStep, image: Image) -> None:
        match step.keyword:
            case "RUN":
                self._run(step.text, image)
            case "COPY":
                self._copy(step.text, image)
            case "ENV":
                image.variables = environment(step.text, image.variables)
            case "WORKDIR":
                image.folder = step.text
                _inside(image.root, step.text).mkdir(parents=True, exist_ok=True)
            case "USER":
                image.user = step.text
            case "VOLUME":
                image.volume = step.text
            case "STOPSIGNAL":
                image.stop_signal = step.text
            case "ENTRYPOINT":
                image.entrypoint = exec_form(step.text)
            case "CMD":
                image.command = exec_form(step.text)
            case "HEALTHCHECK":
                image.health = exec_form(step.text.partition("CMD ")[2])

    def _copy(self, text: str, image: Image) -> None:
        words = shlex.split(text)
        options = dict(word.removeprefix("--").split("=", 1) for word in words if word.startswith("--"))
        *sources, target = (word for word in words if not word.startswith("--"))
        origin = self.build(options["from"]).root if "from" in options else REPOSITORY
        into = _inside(image.root, image.folder) / target if not target.startswith("/") else _inside(image.root, target)
        for source in sources:
            path = _inside(origin, source)
            if path.is_dir():
                into.mkdir(parents=True, exist_ok=True)
                linked = ["--link"] if "from" in options else []
                subprocess.run(["cp", "--archive", *linked, f"{path}/.", into], check=True)
            else:
                shutil.copy(path, into / path.name if target.endswith("/") or into.is_dir() else into)

    def _run(self, text: str, image: Image) -> None:
        mounts, command = cache_mounts(text)
        passed = {name: value for name, value in os.environ.items() if name.startswith(_PASSED_ON)}
        places = [f"{image.root}{target}" for target in mounts]
        setup = [f"mkdir -p {place} && mount --bind {self._cache} {place}" for place in places]
        assert image.user == "root", "this test knows RUN only as root"
        variables = {"HOME": "/root", **passed, **image.variables}
        ended = _isolated(image, setup, ["/bin/sh", "-ec", command], variables=variables)
        output = ended.communicate()[0]
        for target in mounts:
            # An engine keeps neither the mount nor the folder below it in the image.
            shutil.rmtree(_inside(image.root, target))
        assert ended.returncode == 0, f"RUN {command}\n{output[-4000:]}"


def start(image: Image, data: Path, *command: str, **variables: str) -> subprocess.Popen[str]:
    """Start a command as a container with a read-only root does; `data` is the volume, /tmp is in memory.

    Runs the image's entrypoint with `command`; an empty command means the image's own.
    """
    root = image.root
    setup = [
        f"mount --bind {root} {root} && mount -o remount,bind,ro {root}",
        f"mount --bind {data} {root}{image.volume}",
        f"mount -t tmpfs -o size=512m,mode=1777 tmpfs {root}/tmp",
    ]
    words = [*(image.entrypoint or []), *(command or image.command or [])]
    return _isolated(image, setup, words, variables={**image.variables, **variables}, user=image.user)


def run(image: Image, data: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command as `start` does, but without the image's entrypoint, and wait for its end."""
    started = start(replace(image, entrypoint=None), data, *command, **variables)
    out, _ = started.communicate(timeout=PATIENCE_S)
    return subprocess.CompletedProcess(command, started.returncode, out)


def _isolated(
    image: Image, setup: list[str], command: list[str], *, variables: Mapping[str, str], user: str = "root"
) -> subprocess.Popen[str]:
    """Start `command` in the image's folder, after the shell lines of `setup`."""
    root = image.root
    given = [f"{name}={value}" for name, value in variables.items()]
    become: list[str] = []
    if user != "root":
        uid, gid = user.split(":")
        rights = ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
        become = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", *rights]
        given = [f"HOME={_home(root, uid)}", *given]
    words = ["chroot", str(root), *become, "env", "-i", f"--chdir={image.folder}", *given, *command]
    script = "\n".join(
        [
            "set -e",
            "mount --make-rprivate /",
            *setup,
            f"mount -t proc proc {root}/proc",
            f"mount --rbind /dev {root}/dev",
            f"exec {shlex.join(words)}",
        ]
    )
    return subprocess.Popen(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
    )


def _inside(root: Path, path: str) -> Path:
    return root / path.lstrip("/")


def _home(root: Path, uid: str) -> str:
    lines = [line.split(":") for line in (root / "etc/passwd").read_text("utf-8").splitlines()]
    return next(line[5] for line in lines if line[2] == uid)
