"""The memory that other programs use: the example of its page, functions that fail, stores that are mappings."""

from __future__ import annotations

import asyncio
import json
import re
import shelve
import shutil
import subprocess
import sys
from collections import UserDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from compaction import CompactionError, CompactionEvent, ConversationMemory, RunFailed, RunLanded, StoreError, Turn
from rehearsal.roomtone.evenings.virtual_time import LoopClock
from tests.compaction.turn_store_contract import EVENING, turn
from tests.fakes.turn_store import InMemoryTurnStore
from tests.fakes.virtual_time import virtually
from tests.sources import PACKAGES, ROOT

# Runs an example as a program and tells what it has imported.
_IMPORTED = """
import json, runpy, sys

sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


async def _first_words(previous: str, turns: Sequence[Turn]) -> str:
    return f"{previous} {turns[0].text.split()[0]}.".strip()


async def _talk(memory: ConversationMemory, count: int) -> None:
    for number in range(count):
        await memory.add("Ada", f"word{number} and no more", at=float(number))
        await memory.fold()


def test_the_example_remembers_and_imports_nothing_of_a_bot(tmp_path: Path) -> None:
    """In an empty folder it replays the file, logs its folds, goes on from the store, imports nothing else of ours."""
    for name in ("memory.py", "evening.jsonl"):
        shutil.copy(ROOT / "examples" / name, tmp_path)
    program = [sys.executable, "-c", _IMPORTED, "memory.py", "evening.jsonl"]
    *printed, imported = subprocess.run(
        program, cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    for event in ("skipped", "started", "completed"):
        assert any(f'"voice_context_compaction_{event}"' in line for line in printed)
    assert printed[-1].endswith("Ben: Good night everyone, sleep well and see you on Saturday.")
    assert any("turns 0 to 29" in line for line in printed)
    unwanted = {*PACKAGES, "discord", "ctranslate2", "onnxruntime", "numpy", "aiohttp", "httpx2"} - {"compaction"}
    assert unwanted.isdisjoint(json.loads(imported))
    assert len((ROOT / "examples" / "memory.py").read_text("utf-8").splitlines()) <= 40


def test_the_page_s_first_example_runs_as_it_stands(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "memory-library.md").read_text("utf-8")
    [program] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "Ada: We rent the cabin." in ended.stdout


async def _raises(_previous: str, _turns: Sequence[Turn]) -> str:
    raise ValueError("Ada's gate code is 4411")


async def _hangs(_previous: str, _turns: Sequence[Turn]) -> str:
    await asyncio.get_running_loop().create_future()
    return "never"


async def _blank(_previous: str, _turns: Sequence[Turn]) -> str:
    return " \n"


async def _nothing(_previous: str, _turns: Sequence[Turn]) -> Any:
    return None


@pytest.mark.parametrize(
    ("summarise", "error_class", "detail"),
    [
        (_raises, "CompletionError", "Ada's gate code is 4411"),
        (_hangs, "TimeoutError", ""),
        (_blank, "SummaryRefusedError", ""),
        (_nothing, "SummaryRefusedError", ""),
    ],
)
@virtually
async def test_a_function_that_fails_moves_nothing(
    summarise: Any, error_class: str, detail: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The cursor stays, and a model still gets all turns. The event has what the function raised, and no log line has
    it: people may have said it. The next function folds.
    """
    store: dict[str, Any] = {}
    events: list[CompactionEvent] = []
    clock = LoopClock()
    async with ConversationMemory.open(
        "talk", store=store, summarise=summarise, timeout_s=5.0, on_event=events.append, clock=clock
    ) as memory:
        await _talk(memory, 61)
        [failed] = [event for event in events if isinstance(event, RunFailed)]
        assert await memory.fold() is failed
        assert (failed.error_class, failed.retryable, failed.detail) == (error_class, True, detail)
        logged = capsys.readouterr().out
        assert error_class in logged
        assert "4411" not in str(events) + logged
        assert (memory.cursor, memory.summary, len(memory.context())) == (0, None, 61)
    async with ConversationMemory.open(
        "talk", store=store, summarise=_first_words, on_event=events.append, clock=clock
    ) as memory:
        assert await memory.fold() is None
        assert (memory.cursor, memory.summary) == (10, "word0.")
        assert isinstance(events[-2], RunLanded)


async def test_a_function_that_would_hold_up_the_program_is_refused() -> None:
    with pytest.raises(TypeError, match="async def"):
        async with ConversationMemory.open("talk", store={}, summarise=lambda *_: "Nothing."):  # type: ignore[arg-type]
            pass


@virtually
async def test_a_function_gets_what_is_known_so_far() -> None:
    """The first fold has no summary before it. Every eighth gets quotes in its place, and goes on from them."""
    known: list[str] = []

    async def summarise(previous: str, turns: Sequence[Turn]) -> str:
        known.append(previous)
        return f"Summary {turns[-1].seq}."

    async with ConversationMemory.open("talk", store={}, summarise=summarise, clock=LoopClock()) as memory:
        for number in range(150):
            await memory.add("Ada", f"We meet at {number % 12} in town {number}.", at=float(number))
            await memory.fold()
    assert known[:7] == ["", *(f"Summary {seq}." for seq in range(9, 60, 10))]
    assert "We meet at" in known[7]
    assert known[8] == "Summary 79."


@virtually
async def test_the_context_has_all_that_is_known(tmp_path: Path) -> None:
    """`system`, the summary, and each turn that is not folded. A shelf keeps them for the next process."""
    for turns in ((0, 40), (40, 75)):
        with shelve.open(str(tmp_path / "shelf")) as shelf:
            async with ConversationMemory.open(
                "talk", store=shelf, summarise=_first_words, clock=LoopClock()
            ) as memory:
                for number in range(*turns):
                    await memory.add("Ada", f"word{number} and no more", is_assistant=number == 74)
                    await memory.fold()
    system, summary, *said = memory.context(system="Be kind.")
    assert system == {"role": "system", "content": "Be kind."}
    assert "word0. word10." in summary["content"]
    assert [each["role"] for each in said] == ["user"] * 54 + ["assistant"]
    assert said[0]["content"].endswith("Ada: word20 and no more")
    short = memory.context(max_tokens=200)
    assert len(short) < 20
    assert short[-1] == said[-1]


class _Full(UserDict[str, Any]):
    full = False

    def __setitem__(self, key: str, item: Any) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        super().__setitem__(key, item)


@virtually
async def test_a_store_that_fails_loses_nothing() -> None:
    """Whoever adds a turn is told by an error of this package, and the turn is stored with the next."""
    store = _Full()
    async with ConversationMemory.open("talk", store=store, clock=LoopClock()) as memory:
        store.full = True
        with pytest.raises(StoreError) as told:
            await memory.add("Ada", "I was here.", at=0.0)
        assert isinstance(told.value, CompactionError)
        store.full = False
        await memory.add("Ben", "Me too.", at=1.0)
    async with ConversationMemory.open("talk", store=store, clock=LoopClock()) as memory:
        assert [each["content"].partition(": ")[2] for each in memory.context()] == ["I was here.", "Me too."]


async def test_a_turn_without_its_count_is_written_again() -> None:
    """A process that ends between the two writes of a turn has told nobody that the turn is stored."""
    store = InMemoryTurnStore()
    store.values[f"{EVENING}/0"] = turn(0, "half written")
    assert (await store.load(EVENING)).total_turns == 0
    await store.append_turn(EVENING, turn(0, "the first"))
    assert (await store.load(EVENING)).window == (turn(0, "the first"),)


@pytest.mark.parametrize(
    ("text", "at", "error"),
    [(None, 0.0, TypeError), (b"x", 0.0, TypeError), ("Hi.", 1.7e12, ValueError), ("Hi.", float("nan"), ValueError)],
)
async def test_what_is_no_turn_is_refused_and_nothing_breaks(text: Any, at: float, error: type[Exception]) -> None:
    """What came before stays, and what comes after is taken."""
    async with ConversationMemory.open("evening", store={}) as memory:
        await memory.add("Ada", "Hello.", at=0.0)
        with pytest.raises(error):
            await memory.add("Ada", text, at=at)
        await memory.add("Ada", "Good night.", at=1.0)
        assert [each["content"].count("Ada: ") for each in memory.context() if each["role"] == "user"] == [1, 1]
