"""A trial: a rehearsal that is kept, in a folder with its memory, log, transcript and settings.

`roomtone --config FOLDER` lets every other command look at it.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.brain.settings import BrainSettings
from bot.errors import SetupError
from bot.folder_lock import is_locked
from bot.private_files import make_private_folder, write_private_text
from compaction.language.text import words
from compaction.model import Seq, Turn, TurnKind
from config.location import FILE_NAME
from config.problems import toml_value
from config.schema import Settings
from rehearsal.roomtone.recording import RECORDING, captions_of

TRANSCRIPT = "transcript.jsonl"
_HEAD = "# A trial that `roomtone rehearse --keep` or `roomtone run` without a token has kept."
_SOUND = (RECORDING, captions_of(Path(RECORDING)).name)
# What a trial has, and the next one in the same folder replaces. The settings are first: they show that it is a trial.
_FILES = (FILE_NAME, TRANSCRIPT, *_SOUND, "roomtone.db", "roomtone.db-wal", "roomtone.db-shm", "logs")
# Where the last finished trial is while the next one is played, and when it has been replaced.
_EARLIER = ".earlier"
_REPLACED = ".replaced"
# A word of fewer letters is seldom what somebody would search for.
_SEARCHED_LETTERS = 6


@contextmanager
def trial_in(folder: Path) -> Iterator[None]:
    """Keep a trial in this folder. An earlier one there is deleted when the block ends. If the trial is broken off, the
    earlier one is there again; if the process was killed, from the next call on.

    Raises `SetupError` if the folder has other files or cannot be written, or if the bot of a trial in it runs.
    """
    is_trial = _is_trial(folder) or _is_trial(folder / _EARLIER)
    if is_trial and is_locked(folder):
        raise SetupError(
            f"The trial in {folder} is played now. Wait for its end, or stop it with Ctrl-C, and start again."
        )
    with _writing(folder):
        if not is_trial and folder.is_dir() and any(folder.iterdir()):
            raise SetupError(
                f"{folder} has files that do not belong to a trial. Name an empty or a new folder after --keep."
            )
    try:
        _set_aside(folder)
        yield
    except BaseException:
        _put_back(folder)
        raise
    if (folder / _EARLIER).is_dir():
        # In one step: what is left of a trial that is being deleted must not be put back.
        (folder / _EARLIER).rename(folder / _REPLACED)
        shutil.rmtree(folder / _REPLACED, ignore_errors=True)


def _set_aside(folder: Path) -> None:
    """Set the last finished trial aside, and mark the folder as one for a trial. Raises `SetupError`."""
    _put_back(folder)
    earlier = folder / _EARLIER
    with _writing(folder):
        shutil.rmtree(folder / _REPLACED, ignore_errors=True)
        if _is_trial(folder):
            make_private_folder(earlier)
            # The settings last: with them all is aside.
            _move(folder, earlier, reversed(_FILES))
        make_private_folder(folder)
        # The mark comes first, so that the folder of a trial that was interrupted can be used again.
        write_private_text(folder / FILE_NAME, f"{_HEAD}\n")


def _put_back(folder: Path) -> None:
    """Put the last finished trial back if it, or a part of it, is aside. Raises `SetupError`."""
    earlier = folder / _EARLIER
    with _writing(folder):
        if _is_trial(earlier):
            # All of it is aside, so that what is here belongs to the trial that was broken off.
            for name in _FILES:
                _delete(folder / name)
        if earlier.is_dir():
            _move(earlier, folder, _FILES)
            earlier.rmdir()


def _move(source: Path, target: Path, names: Iterable[str]) -> None:
    for name in names:
        if (source / name).exists():
            (source / name).rename(target / name)


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def names_with(name: str) -> tuple[str, ...]:
    """Return the names of a bot whose own is `name`, with the spellings of the usual one."""
    usual = BrainSettings().names
    return usual if name == usual[0] else (name,)


def write_settings(folder: Path, settings: Settings, *, bot_name: str) -> None:
    """Write the settings with which other commands look at the trial, also while it is played. Raises `SetupError`."""
    chosen: dict[str, dict[str, object]] = {
        "brain": {"names": names_with(bot_name)},
        "models": {"directory": settings.models.directory.absolute()},
        "storage": {"data_dir": "."},
        "budget": {"max_context_tokens": settings.budget.max_context_tokens},
    }
    sections = [
        "\n".join([f"[{section}]", *(f"{key} = {toml_value(value)}" for key, value in keys.items())])
        for section, keys in chosen.items()
    ]
    with _writing(folder):
        write_private_text(folder / FILE_NAME, "\n\n".join([_HEAD, *sections]) + "\n")


async def finish_trial(folder: Path, settings: Settings, *, bot_name: str) -> str:
    """Write the trial's transcript.

    Returns a word that was said often, for `trial_lines`; empty if people said nothing.
    """
    from bot.clock import SystemClock
    from bot.store.database import open_database
    from bot.store.sessions import Sessions
    from bot.store.turns import SqlTurnStore

    clock = SystemClock()
    lines: list[dict[str, object]] = []
    said: list[str] = []
    async with open_database(settings.storage.database, data_dir=settings.storage.data_dir) as database:
        turns = SqlTurnStore(database, clock)
        for session in reversed(await Sessions(database, clock).recent()):
            for turn in await turns.turns(session.id, Seq(0), Seq(session.turn_count)):
                lines += _lines(turn, bot_name)
                if turn.kind is TurnKind.SPEECH and not turn.tombstone:
                    said += [part.text for part in turn.parts]
    write_private_text(folder / TRANSCRIPT, "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines))
    return _said_often(said, {str(line["speaker"]).casefold() for line in lines} | {bot_name.casefold()})


def trial_lines(folder: Path, said_often: str) -> list[str]:
    """Return where the trial is, and what can be done with it. `said_often`: a word to search for, or nothing."""
    program = shlex.quote(_program())
    here = f"{program} --config {shlex.quote(_short(folder))}"
    return [
        f"\nThis trial is kept in {_short(folder)}. Look at it:",
        f"  {here} memory list",
        *([f"  {here} memory search {said_often}"] if said_often else []),
        f"  {here} explain",
        f"  {here} tail --event compaction",
        f"  {program} replay {shlex.quote(_short(folder / TRANSCRIPT))}",
    ]


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Raise `SetupError` if the folder cannot be written."""
    try:
        yield
    except OSError as error:
        raise SetupError(
            f"A trial cannot be kept in {folder}: {error.strerror or error}. Name a folder that you may write to."
        ) from error


def _is_trial(folder: Path) -> bool:
    try:
        return (folder / FILE_NAME).read_text("utf-8").startswith(_HEAD)
    except (OSError, UnicodeDecodeError):
        return False


def _lines(turn: Turn, bot_name: str) -> list[dict[str, object]]:
    if turn.tombstone or turn.kind not in {TurnKind.SPEECH, TurnKind.ASSISTANT}:
        return []
    return [
        {"speaker": part.speaker or bot_name, "text": part.text, "at": round(turn.started_at, 3)} for part in turn.parts
    ]


def _said_often(texts: Iterable[str], names: Collection[str]) -> str:
    """Return the long word that was said most often, and of several the first."""
    counts = Counter(word for text in texts for word in words(text) if word.isalpha() and word not in names)
    return next((word for word, _ in counts.most_common() if len(word) >= _SEARCHED_LETTERS), "")


def _program() -> str:
    """Return how this program was called, as far as a person can type it again."""
    called = Path(sys.argv[0])
    found = shutil.which("roomtone")
    if called.name != "roomtone" or (found is not None and Path(found).resolve() == called.resolve()):
        return "roomtone"
    return _short(called)


def _short(path: Path) -> str:
    """Return a path as seen from the working directory, if it is below it."""
    absolute = path.absolute()
    return str(absolute.relative_to(Path.cwd())) if absolute.is_relative_to(Path.cwd()) else str(absolute)
