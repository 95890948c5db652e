"""Recorded answers, served as an endpoint: replayed, or recorded for the first time.

A strong model's are written by hand; a small one's come from its endpoint, an hour or more for a conversation.
`FOLDER/NNN.txt` is the answer to the Nth request of one system in one conversation; `FOLDER/turns.json` says which
turns each of these requests showed, as `first-last`. An answer is chosen by the last turn shown, so that prompts may
change without new answers. Requests for which there is no answer get an empty one and are counted.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict, deque
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx2

from benchmarks.errors import EndpointError
from benchmarks.memory.folders import ANSWERS
from benchmarks.memory.judges.text_matching import letters
from benchmarks.stub_model import chat_endpoint
from compaction.folding.window import BATCH_SIZE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from benchmarks.local_model import ChatEndpoint
    from benchmarks.memory.conversations.conversation import ConversationLine
    from benchmarks.report import Json

MODEL = "recorded answers"
TURNS = "turns.json"
# In a folder of answers: one line with the name of the model that gave them. A strong model's have none.
MODEL_NAME = "MODEL"
# Just below the time that all systems give a model for one answer.
_WAIT_S = 590.0
_POLL_S = 0.2
# Shorter lines ('Ada: yes') are in many places.
_LEAST_CHARS = 14
# Fewer neighbouring lines are quotes, not a batch.
_LEAST_LINES = 3


class ShownTurns:
    """Finds which turns of a conversation a request shows, by their words."""

    def __init__(self, lines: Sequence[ConversationLine]) -> None:
        texts = [letters(f"{line.speaker}{line.text}") for line in lines]
        self._texts = [text if len(text) >= _LEAST_CHARS and texts.count(text) == 1 else "" for text in texts]

    def span(self, prompt: str) -> str:
        """Return the longest run of turns as `first-last`; empty if the request shows none."""
        said = letters(prompt)
        best: list[int] = []
        run: list[int] = []
        for number, text in enumerate(self._texts):
            if not text:
                continue  # too short to be found, so it neither adds to a run nor ends it
            run = [*run, number] if text in said else []
            # The newest of equally long runs is the batch.
            best = max(run, best, key=len)
        return f"{best[0]}-{best[-1]}" if len(best) >= _LEAST_LINES else ""


@dataclass(slots=True)
class ReplayCounts:
    """How well recorded answers still fit: `unanswered` requests had none, `unused` answers were not asked for.

    `given`: the answers in order, each with the turns that the request showed.
    """

    requests: int = 0
    unanswered: int = 0
    unused: int = 0
    given: list[tuple[str, str]] = field(default_factory=list)

    def remark(self, system: str, conversation: str) -> str:
        """Return a sentence for the report; empty if everything fits."""
        if not self.unanswered and not self.unused:
            return ""
        return (
            f"The requests of {system} in {conversation} have changed since they were answered: {self.unanswered} of "
            f"{self.requests} had no answer, {self.unused} answers were not asked for."
        )


@dataclass(slots=True)
class _Replay:
    folder: Path
    shown: ShownTurns
    counts: ReplayCounts
    answers: dict[str, deque[Path]] = field(default_factory=lambda: defaultdict(deque))

    def __post_init__(self) -> None:
        for number, span in json.loads((self.folder / TURNS).read_text("utf-8")).items():
            self.answers[_last(span)].append(self.folder / f"{number}.txt")
        self.counts.unused = sum(map(len, self.answers.values()))

    async def answer(self, body: dict[str, Json]) -> str:
        self.counts.requests += 1
        span = self.shown.span(_prompt(body))
        left = self.answers[_last(span)]
        if not left:
            self.counts.unanswered += 1
            return ""
        self.counts.unused -= 1
        text = left.popleft().read_text("utf-8")
        self.counts.given.append((span, text))
        return text


@dataclass(slots=True)
class _Recording:
    """Writes requests as `work/NNN.req.txt`, waits for `work/NNN.resp.txt`, and keeps the answer in `folder`.

    `model` writes the answers, if given; if not, somebody else does. `broken`: the model went away, and whatever was
    folded since then is worthless.
    """

    folder: Path
    shown: ShownTurns
    work: Path
    model: ChatEndpoint | None = None
    spans: dict[str, str] = field(default_factory=dict)
    broken: EndpointError | None = None

    async def answer(self, body: dict[str, Json]) -> str:
        if self.broken is not None:
            return ""
        number = f"{len(self.spans) + 1:03d}"
        prompt = _prompt(body)
        self.spans[number] = self.shown.span(prompt)
        request, written = self.work / f"{number}.req.txt", self.work / f"{number}.resp.txt"
        known = written.exists() and request.exists() and request.read_text("utf-8") == prompt
        _write_whole(request, prompt)
        if self.model is not None and not known:
            try:
                _write_whole(written, await _ask(self.model, body))
            except EndpointError as error:
                self.broken = error
                return ""
        async with asyncio.timeout(_WAIT_S):
            while not written.exists():  # noqa: ASYNC110 - a person or another process writes it
                await asyncio.sleep(_POLL_S)
        text = written.read_text("utf-8").strip() + "\n"
        (self.folder / f"{number}.txt").write_text(text, "utf-8")
        (self.folder / TURNS).write_text(json.dumps(self.spans, indent=1) + "\n", "utf-8")
        return text


def answering_model(answers: Path) -> str:
    """Return the name of the model whose answers these are; empty for a strong model's that were written by hand."""
    path = answers / MODEL_NAME
    return path.read_text("utf-8").strip() if path.is_file() else ""


def is_recorded(conversation: str, system: str, answers: Path = ANSWERS) -> bool:
    """Return whether there are answers for this system in this conversation."""
    return (answers / conversation / system / TURNS).is_file()


def recorded_folds(conversation: str, system: str, answers: Path = ANSWERS) -> int:
    """Return for how many folds there are answers for this system in this conversation."""
    path = answers / conversation / system / TURNS
    spans = json.loads(path.read_text("utf-8")).values() if path.is_file() else ()
    return round(max((int(_last(span)) + 1 for span in spans if span), default=0) / BATCH_SIZE)


@asynccontextmanager
async def replayed_endpoint(
    folder: Path, lines: Sequence[ConversationLine], counts: ReplayCounts
) -> AsyncIterator[ChatEndpoint]:
    """Serve the answers in `folder` and count in `counts` how well they fit."""
    async with chat_endpoint(_Replay(folder, ShownTurns(lines), counts).answer, model=MODEL) as endpoint:
        yield endpoint


@asynccontextmanager
async def recording_endpoint(
    folder: Path, work: Path, lines: Sequence[ConversationLine], model: ChatEndpoint | None = None
) -> AsyncIterator[ChatEndpoint]:
    """Serve answers as they are written in `work`, by `model` if one is given, and keep them in `folder`.

    Raises EndpointError at the end if the model went away.
    """
    for each in (folder, work):
        each.mkdir(parents=True, exist_ok=True)
    recording = _Recording(folder, ShownTurns(lines), work, model)
    async with chat_endpoint(recording.answer, model=MODEL) as endpoint:
        yield endpoint
    if recording.broken is not None:
        raise recording.broken


async def _ask(model: ChatEndpoint, body: dict[str, Json]) -> str:
    """Return the model's answer to a request; empty where it refuses it, for example as too long for its context.

    Raises EndpointError where nothing answers.
    """
    try:
        async with httpx2.AsyncClient(timeout=_WAIT_S, headers=model.headers) as client:
            answer = await client.post(f"{model.base_url}/chat/completions", json={**body, "model": model.model})
    except httpx2.TransportError as error:
        raise EndpointError(
            f"The model at {model.base_url} no longer answers ({type(error).__name__}). Start it, and run this again "
            "with the same folder to go on."
        ) from error
    if answer.is_error:
        return ""
    content = answer.json()["choices"][0]["message"]["content"]
    return content if isinstance(content, str) else ""


def _last(span: str) -> str:
    return span.rpartition("-")[2]


def _prompt(body: dict[str, Json]) -> str:
    """Return a request as its reader is shown it: messages, then the form of the answer if one is asked for."""
    messages = body.get("messages")
    assert isinstance(messages, list)
    parts = [f"### {each['role']}\n{_content(each['content'])}" for each in messages if isinstance(each, dict)]
    if body.get("response_format"):
        parts.append(f"### response_format\n{json.dumps(body['response_format'], ensure_ascii=False)}")
    return "\n\n".join(parts) + "\n"


def _content(content: Json) -> str:
    """Return the text of a message, which is a string or a list of parts."""
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content)


def _write_whole(path: Path, text: str) -> None:
    part = path.with_suffix(".part")
    part.write_text(text, "utf-8")
    part.replace(path)
