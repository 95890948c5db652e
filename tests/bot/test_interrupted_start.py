"""Ctrl-C while `roomtone` still imports its modules or loads its models."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

# A library that is interrupted while it is imported, and goes on (pydantic's schemas do). `MODULE` is where.
_START = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import bot.__main__
sys.argv = ["roomtone", "models", "list"]
class Swallowing:
    def find_spec(self, name, *_):
        if name == "MODULE":
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                print("swallowed")
sys.meta_path.insert(0, Swallowing())
bot.__main__.main()
"""
_LOADED = """
import signal, sys
signal.signal(signal.SIGINT, signal.INHERITED)
import bot.cli.app, bot.__main__
def run(arguments, *, on_loaded):
    print(getattr(signal.getsignal(signal.SIGINT), "name", None) or signal.getsignal(signal.SIGINT).__name__)
    on_loaded()
    print(getattr(signal.getsignal(signal.SIGINT), "name", None) or signal.getsignal(signal.SIGINT).__name__)
    return 0
bot.cli.app.run_command_line = run
bot.__main__.main()
"""
_ENDED = """
import atexit, threading
import bot.cli.app, bot.__main__
atexit.register(print, "Python has ended")
def run(arguments, *, on_loaded):
    if ABANDONED:
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    print("all is closed")
    return 3
bot.cli.app.run_command_line = run
bot.__main__.main()
"""


def _run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("module", ["bot.cli.app", "bot.cli.models"])
def test_ctrl_c_while_modules_are_imported_ends_the_command(module: str) -> None:
    """No library can swallow it, and nobody reads a traceback."""
    ended = _run(_START.replace("MODULE", module))
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize(
    ("inherited", "while_loading", "afterwards"),
    [
        ("default_int_handler", "SIG_DFL", "default_int_handler"),
        # `nohup`, and a command behind `&` in a script.
        ("SIG_IGN", "SIG_IGN", "SIG_IGN"),
    ],
)
def test_a_command_handles_ctrl_c_itself_once_it_is_loaded(inherited: str, while_loading: str, afterwards: str) -> None:
    """From then on Python raises KeyboardInterrupt, as commands expect. What the parent ignores stays ignored."""
    ended = _run(_LOADED.replace("INHERITED", inherited))
    assert (ended.returncode, ended.stdout.split()) == (0, [while_loading, afterwards]), ended.stderr


@pytest.mark.parametrize(
    ("abandoned", "told"), [("False", "all is closed\nPython has ended\n"), ("True", "all is closed\n")]
)
def test_a_thread_that_still_loads_a_model_does_not_abort_the_end(abandoned: str, told: str) -> None:
    """If it came back to an interpreter that shuts down, C++ would end the process with SIGABRT. So
    Python is left at once, with the status and all that was printed.
    """
    ended = _run(_ENDED.replace("ABANDONED", abandoned))
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, told, "")
