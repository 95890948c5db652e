"""Makes what stands in for the base image: an empty root with Debian's required packages and this test's Python.

The files are copied from this machine, so nothing is downloaded. Whatever the image needs beyond them is missing here
too, and the test fails.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

# What python:…-slim has beyond Debian's required packages and Python's own libraries.
_EXTRA = ("ca-certificates", "netbase", "tzdata")
_LEFT_OUT = ("/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/", "/usr/share/info/", "/usr/lib/systemd/")
_MERGED = ("bin", "lib", "lib64", "sbin")
_EMPTY = ("app", "dev", "etc", "proc", "root", "run", "sys", "tmp", "usr/local/bin", "usr/local/lib", "var/tmp")


def obstacle() -> str | None:
    """Return why no root can be made here, or None."""
    if os.geteuid() != 0:
        return "the image's steps are run in a root of their own, which needs root"
    if not all(map(shutil.which, ("dpkg-query", "unshare", "chroot", "ldd", "tar"))):
        return "the stand-in for the base image is made of Debian's packages, and this machine is no Debian"
    if sys.base_prefix == "/usr":
        return "the stand-in for the base image needs a Python in a folder of its own, as in /usr/local or of pyenv"
    tried = subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True, check=False)
    return None if tried.returncode == 0 else "this machine forbids mounts"


def make(root: Path) -> None:
    """Fill the folder `root`."""
    for folder in (*_EMPTY, *(f"usr/{name}" for name in _MERGED)):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for name in _MERGED:
        (root / name).symlink_to(f"usr/{name}")
    (root / "tmp").chmod(0o1777)
    paths = set[str]()
    for line in _output("dpkg-query", "--listfiles", *_packages()).splitlines():
        if line.startswith("/") and not line.startswith(_LEFT_OUT):
            place = Path(line)
            real = place.parent.resolve() / place.name
            if real.is_symlink() or real.is_file():
                paths.add(str(real))
    _copy(paths, root)
    _copy_python(root)
    for name in ("passwd", "group"):
        shutil.copy(f"/usr/share/base-passwd/{name}.master", root / "etc" / name)
    for name in ("shadow", "gshadow"):
        (root / "etc" / name).touch(mode=0o640)
    # These describe the machine. An engine brings its own, and certificates of the machine's own authorities.
    for name in ("/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/pip.conf"):
        if Path(name).exists():
            shutil.copy(name, root / name[1:])
    shutil.copytree("/etc/ssl/certs", root / "etc/ssl/certs", dirs_exist_ok=True)
    subprocess.run(["chroot", root, "ldconfig"], check=True)
    # Python runs pip from the wheel that it brings along. Installing it takes longer than all that it installs.
    pip = root / "usr/local/bin/pip"
    pip.write_text('#!/bin/sh\nexec python3 "$(echo /usr/local/lib/python3.*/ensurepip/_bundled/pip-*.whl)/pip" "$@"\n')
    pip.chmod(0o755)


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _packages() -> list[str]:
    """Return Debian's required packages of this machine and what they depend on."""
    shown = "${Package}\t${Essential}\t${Priority}\t${Pre-Depends}, ${Depends}\n"
    needs: dict[str, str] = {}
    found = set(_EXTRA)
    for line in _output("dpkg-query", "--show", f"--showformat={shown}").splitlines():
        name, essential, priority, depends = line.split("\t")
        needs[name] = depends
        if essential == "yes" or priority == "required":
            found.add(name)
    waiting = list(found)
    while waiting:
        for wanted in re.findall(r"[a-z0-9][a-z0-9.+-]+", re.sub(r"\(.*?\)|:\w+", "", needs.get(waiting.pop(), ""))):
            if wanted in needs and wanted not in found:
                found.add(wanted)
                waiting.append(wanted)
    return sorted(found & needs.keys())


def _copy(paths: set[str], root: Path) -> None:
    listed = "\n".join(path.removeprefix("/") for path in sorted(paths)).encode()
    pack = ["tar", "--create", "--directory=/", "--no-recursion", "--files-from=-"]
    packed = subprocess.run(pack, input=listed, stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "--extract", f"--directory={root}"], input=packed, check=True)


def _copy_python(root: Path) -> None:
    """Copy the interpreter to /usr/local, without what was installed into it, and the system's libraries it needs."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    prefix, local = Path(sys.base_prefix), root / "usr/local"
    shutil.copy(prefix / "bin" / f"python{version}", local / "bin")
    for name in ("python3", "python"):
        (local / "bin" / name).symlink_to(f"python{version}")
    own = ("site-packages", "test", "tests", "idlelib", "tkinter", "__pycache__", "config-*", "*.a")
    library = local / "lib" / f"python{version}"
    shutil.copytree(prefix / "lib" / library.name, library, ignore=shutil.ignore_patterns(*own))
    (library / "site-packages").mkdir()
    for shared in (prefix / "lib").glob("libpython*.so*"):
        shutil.copy(shared, local / "lib", follow_symlinks=False)
    modules = [local / "bin" / f"python{version}", *library.rglob("*.so")]
    # ldd's status is 1 where a module needs nothing.
    listed = subprocess.run(["ldd", *modules], capture_output=True, text=True, check=False).stdout
    for path in set(re.findall(r"=> (/\S+)", listed)):
        target = root / Path(path).resolve().parent.relative_to("/") / Path(path).name
        if not path.startswith(str(prefix)) and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
