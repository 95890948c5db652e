"""An embedding model in a thread: urgent texts first, failures reach the caller, and it ends."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

from bot.embedding.minilm import minilm_embedder
from bot.embedding.worker import MAX_WAITING, ThreadedEmbedder
from bot.errors import ModelError
from compaction.errors import EmbeddingError


class ScriptedEngine:
    """Embeds a text as its length; waits for `open` first; fails on 'bad'."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.begun = threading.Event()
        self.done: list[str] = []

    def embed(self, text: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        """Return one component."""
        self.begun.set()
        assert self.open.wait(10)
        if text == "bad":
            raise RuntimeError("no")
        self.done.append(text)
        return np.array([len(text)], dtype=np.float32)


@pytest.mark.asyncio
async def test_texts_become_vectors_in_order() -> None:
    """One a text, in the order given."""
    async with ThreadedEmbedder(ScriptedEngine, model="lengths") as embedder:
        assert embedder.model == "lengths"
        assert await embedder.embed(["a", "ccc", "bb"]) == [[1.0], [3.0], [2.0]]
        assert await embedder.embed([]) == []


@pytest.mark.asyncio
async def test_who_waits_goes_before_the_index() -> None:
    """An urgent text overtakes everything but the one at hand."""
    engine = ScriptedEngine()
    engine.open.clear()
    async with ThreadedEmbedder(lambda: engine, model="lengths") as embedder:
        indexing = asyncio.ensure_future(embedder.embed(["one", "two", "three"]))
        await asyncio.to_thread(engine.begun.wait, 10)
        asking = asyncio.ensure_future(embedder.embed(["ask"], urgent=True))
        await asyncio.sleep(0)
        engine.open.set()
        assert await asking == [[3.0]]
        await indexing
    assert engine.done == ["one", "ask", "two", "three"]


@pytest.mark.asyncio
async def test_a_failing_text_is_told_and_ends_nothing() -> None:
    """The caller hears of it in our words; the next text is embedded."""
    async with ThreadedEmbedder(ScriptedEngine, model="lengths") as embedder:
        with pytest.raises(EmbeddingError, match="RuntimeError"):
            await embedder.embed(["bad", "bad", "fine"])
        assert await embedder.embed(["fine"]) == [[4.0]]


@pytest.mark.asyncio
async def test_what_nobody_waits_for_is_left_undone() -> None:
    """A cancelled caller's texts are skipped."""
    engine = ScriptedEngine()
    engine.open.clear()
    async with ThreadedEmbedder(lambda: engine, model="lengths") as embedder:
        given_up = asyncio.ensure_future(embedder.embed(["one", "two", "three"]))
        await asyncio.to_thread(engine.begun.wait, 10)
        given_up.cancel()
        await asyncio.wait({given_up})
        engine.open.set()
        await embedder.embed(["after"])
    assert engine.done == ["one", "after"]


@pytest.mark.asyncio
async def test_the_queue_has_an_end() -> None:
    """The index is told to come back; who waits for an answer is still served."""
    engine = ScriptedEngine()
    async with ThreadedEmbedder(lambda: engine, model="lengths") as embedder:
        with pytest.raises(EmbeddingError) as refused:
            await embedder.embed(["x"] * (MAX_WAITING + 1))
        assert refused.value.retryable
        assert await embedder.embed(["ask"], urgent=True) == [[3.0]]


@pytest.mark.asyncio
async def test_after_the_end_nothing_is_embedded() -> None:
    """A closed embedder says so instead of waiting for ever."""
    embedder = ThreadedEmbedder(ScriptedEngine, model="lengths")
    with pytest.raises(EmbeddingError, match="never started"):
        await embedder.embed(["early"])
    async with embedder:
        pass
    with pytest.raises(EmbeddingError, match="closed"):
        await embedder.embed(["late"])


@pytest.mark.asyncio
async def test_a_model_that_is_not_there_is_a_sentence(tmp_path: object) -> None:
    """Whoever starts it reads what to do; the thread ends."""
    from pathlib import Path

    with pytest.raises(ModelError, match="roomtone models pull embed"):
        async with minilm_embedder(Path(str(tmp_path)) / "absent"):
            pass


@pytest.mark.asyncio
async def test_a_model_that_breaks_while_loading_is_told() -> None:
    """Whatever it raises, by its name."""

    def load() -> ScriptedEngine:
        raise ValueError("secret words")

    with pytest.raises(ModelError, match="ValueError"):
        async with ThreadedEmbedder(load, model="lengths"):
            pass
