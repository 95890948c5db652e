"""An embedding model in a thread: urgent texts go first, failures reach the caller, and the thread ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
from structlog.typing import EventDict

from bot.embedding import sentence_encoder as encoder_module
from bot.embedding.sentence_encoder import EMBED_TIMEOUT_S, MODEL_NAME, ThreadedEmbedder
from bot.errors import ModelError
from compaction.errors import EmbeddingError
from compaction.ports import WordLikeness
from tests.fakes.loop_time import pass_loop_time, wait_out
from tests.patience import PATIENCE_S
from voice.daemon_thread import LOAD_TIMEOUT_S


class ScriptedEngine:
    """Embeds a text as its length, after the test sets `open`. Fails on 'bad'."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.begun = threading.Event()
        self.done: list[str] = []

    def embed(self, text: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        """Return a vector with one component."""
        self.begun.set()
        assert self.open.wait(PATIENCE_S)
        if text == "bad":
            raise RuntimeError("no")
        self.done.append(text)
        return np.array([len(text)], dtype=np.float32)

    def compare_words(self, query: str, texts: Sequence[str]) -> Sequence[WordLikeness]:
        """Return whether each text is the query."""
        return [[float(text == query)] for text in texts]


Loads: TypeAlias = Callable[[Callable[[], ScriptedEngine]], ThreadedEmbedder]


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Loads:
    """Returns an embedder whose model is loaded by a function of the test."""

    def made(load: Callable[[], ScriptedEngine]) -> ThreadedEmbedder:
        monkeypatch.setattr(encoder_module, "SentenceEncoder", lambda _: load())
        return ThreadedEmbedder(Path("models"))

    return made


async def test_texts_become_vectors_in_order(loads: Loads) -> None:
    """Each text gives one vector, in the order of the texts."""
    async with loads(ScriptedEngine) as embedder:
        assert embedder.model == MODEL_NAME
        assert await embedder.embed(["a", "ccc", "bb"]) == [[1.0], [3.0], [2.0]]
        assert await embedder.embed([]) == []
        assert await embedder.compare_words("a", ["b", "a"]) == [[0.0], [1.0]]


async def test_who_waits_goes_before_the_index(loads: Loads) -> None:
    """A text that somebody waits for comes before the rest of a batch; the text that is being embedded is finished."""
    engine = ScriptedEngine()
    engine.open.clear()
    async with loads(lambda: engine) as embedder:
        indexing = asyncio.ensure_future(embedder.embed(["one", "two", "three"]))
        await asyncio.to_thread(engine.begun.wait, PATIENCE_S)
        asking = asyncio.ensure_future(embedder.embed(["ask"], urgent=True))
        await asyncio.sleep(0)
        engine.open.set()
        assert await asking == [[3.0]]
        await indexing
    assert engine.done[:2] == ["one", "ask"]


async def test_a_failing_text_is_told_and_ends_nothing(loads: Loads) -> None:
    """If a text fails, its caller gets an EmbeddingError and later texts are still embedded."""
    async with loads(ScriptedEngine) as embedder:
        with pytest.raises(EmbeddingError, match="RuntimeError"):
            await embedder.embed(["bad", "bad", "fine"])
        assert await embedder.embed(["fine"]) == [[4.0]]


async def test_what_nobody_waits_for_is_left_undone(loads: Loads) -> None:
    """The waiting texts of a cancelled call are skipped."""
    engine = ScriptedEngine()
    engine.open.clear()
    async with loads(lambda: engine) as embedder:
        given_up = asyncio.ensure_future(embedder.embed(["one", "two", "three"]))
        await asyncio.to_thread(engine.begun.wait, PATIENCE_S)
        given_up.cancel()
        await asyncio.wait({given_up})
        engine.open.set()
        await embedder.embed(["after"])
    assert engine.done == ["one", "after"]


async def test_after_the_end_nothing_is_embedded(loads: Loads) -> None:
    """An embedder that was never started, or is closed, raises an error instead of waiting for ever."""
    embedder = loads(ScriptedEngine)
    with pytest.raises(EmbeddingError, match="not run"):
        await embedder.embed(["early"])
    async with embedder:
        pass
    with pytest.raises(EmbeddingError, match="not run"):
        await embedder.embed(["late"])


async def test_who_gives_up_while_the_model_loads_ends_the_thread(loads: Loads) -> None:
    """Cancelling the start ends the thread once the model is loaded, and the embedder refuses texts."""
    is_loading, may_load = threading.Event(), threading.Event()

    def load() -> ScriptedEngine:
        is_loading.set()
        assert may_load.wait(PATIENCE_S)
        return ScriptedEngine()

    embedder = loads(load)
    starting = asyncio.ensure_future(embedder.__aenter__())
    await asyncio.to_thread(is_loading.wait, PATIENCE_S)
    starting.cancel()
    await asyncio.wait({starting})
    may_load.set()
    await embedder.__aexit__(None, None, None)
    assert not any(thread.name.startswith("embedder") for thread in threading.enumerate())
    with pytest.raises(EmbeddingError, match="not run"):
        await embedder.embed(["late"])


async def test_a_text_that_hangs_keeps_nobody_waiting(
    loads: Loads, monkeypatch: pytest.MonkeyPatch, logs: list[EventDict]
) -> None:
    """Whoever waits behind it gets an EmbeddingError in time. The end leaves the thread behind, and the interpreter
    does not wait for it either.
    """
    engine = ScriptedEngine()
    engine.open.clear()
    async with loads(lambda: engine) as embedder:
        asked = [asyncio.ensure_future(embedder.embed([text])) for text in ("hangs", "behind")]
        await asyncio.to_thread(engine.begun.wait, PATIENCE_S)
        pass_loop_time(monkeypatch, EMBED_TIMEOUT_S)
        assert all("TimeoutError" in str(each) for each in await asyncio.gather(*asked, return_exceptions=True))
        monkeypatch.setattr(encoder_module, "STOP_TIMEOUT_S", 0.0)
    assert [line["event"] for line in logs] == ["model_thread_left_behind"]
    [left] = [thread for thread in threading.enumerate() if thread.name == "embedder"]
    assert left.daemon
    engine.open.set()
    await asyncio.to_thread(left.join, PATIENCE_S)
    assert engine.done == ["hangs"]


async def test_a_model_that_is_never_loaded_is_given_up(loads: Loads, monkeypatch: pytest.MonkeyPatch) -> None:
    """If its disk hangs, entering the embedder raises an error in time."""
    gate = threading.Event()

    def load() -> ScriptedEngine:
        assert gate.wait(PATIENCE_S)
        return ScriptedEngine()

    loading = asyncio.create_task(loads(load).__aenter__())
    await wait_out(monkeypatch, LOAD_TIMEOUT_S)
    with pytest.raises(ModelError, match="TimeoutError"):
        await loading
    gate.set()


async def test_a_model_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    """If the model files are missing, entering the embedder raises an error that says what to do."""
    with pytest.raises(ModelError, match="pull embed"):
        async with ThreadedEmbedder(tmp_path / "absent"):
            pass


async def test_a_model_that_breaks_while_loading_is_told(loads: Loads) -> None:
    """If loading the model raises, the error names only the type of the exception."""

    def load() -> ScriptedEngine:
        raise ValueError("secret words")

    with pytest.raises(ModelError, match="ValueError"):
        async with loads(load):
            pass
