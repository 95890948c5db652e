"""The model behind the local chat server of a rehearsal: a language model if one can be served, else quoted answers.

If the user names a model file or a Python, a language model is required, and it is an error if there is none. Otherwise
the best available backend is used, and the terminal shows which one. The quoting responder answers only from the
messages it is sent, so its answers show what a language model would have known.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from benchmarks.local_model import find_model_file
from bot.brain.embedded.chat import answer
from bot.brain.embedded.evidence import Evidence, EvidenceOrigin
from compaction.language.text import sentences
from compaction.untrusted_text import without_marks
from rehearsal.errors import LanguageModelError
from rehearsal.servers.language_model import find_llama_python

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bot.cli.rehearsal.options import LanguageModelChoice

SUMMARY_HEAD = "Earlier in this session: "
_CLOCK = re.compile(r"\[\d\d:\d\d\] ")
_LINE = re.compile(r"(?P<name>[^:\n]{1,60}): (?P<text>.+)")


@dataclass(frozen=True, slots=True)
class LocalLanguageModel:
    """A model file and the Python that can serve it. `patience`: waits for its answers are multiplied by this."""

    python: str
    model_file: Path
    # On two cores the model reads a prompt for half a minute before its first token.
    patience: float = 4.0

    @property
    def sentence(self) -> str:
        """The sentence about this backend that the terminal shows."""
        return f"The chat server uses the language model {self.model_file.stem}, which llama.cpp loads now."


@dataclass(frozen=True, slots=True)
class QuotingResponder:
    """The embedded responder, which quotes. `missing`: why there is no language model, and how to get one."""

    missing: str
    patience: float = 1.0

    @property
    def sentence(self) -> str:
        """The sentence about this backend that the terminal shows."""
        return f"The chat server has no language model and uses the embedded responder, which quotes: {self.missing}"


ChatBackend: TypeAlias = LocalLanguageModel | QuotingResponder


async def find_chat_backend(wanted: LanguageModelChoice, models_dir: Path) -> ChatBackend:
    """Return the best available backend. Raises `LanguageModelError` if a named one is not available."""
    missing: list[str] = []
    model_file, python = None, ""
    try:
        model_file = find_model_file(wanted.model_file, models_dir)
    except LanguageModelError as error:
        missing.append(str(error))
    try:
        python = await find_llama_python(wanted.llama_python)
    except LanguageModelError as error:
        missing.append(str(error))
    if model_file is not None and python:
        return LocalLanguageModel(python, model_file)
    if wanted.named:
        raise LanguageModelError(" ".join(missing))
    return QuotingResponder(" ".join(missing))


def answer_messages(messages: Sequence[Mapping[str, Any]], *, names: Sequence[str]) -> str:
    """Answer the last user message from all messages. `names`: the bot's names."""
    found: list[Evidence] = []
    spoken: list[tuple[str, str]] = []
    for message in messages:
        text = str(message.get("content") or "")
        data = without_marks(text)
        if data.startswith(SUMMARY_HEAD):
            found += _summary(data.removeprefix(SUMMARY_HEAD), len(found))
        elif message.get("role") == "user" and data == text:
            # If the client formats turns differently, the whole message is treated as what was said.
            lines = [(line["name"], line["text"]) for line in _LINE.finditer(_CLOCK.sub("", text, count=1))]
            spoken += lines or [("friend", text)]
    if not spoken:
        return "Nobody has said anything yet."
    # The question itself is left out of the evidence, so that it is not quoted as its own answer.
    for speaker, text in spoken[:-1]:
        found += [Evidence(each, EvidenceOrigin.TURN, len(found), speaker=speaker) for each in sentences(text)]
    asker, question = spoken[-1]
    return answer(question, found, asker=asker, now=time.time(), names=names)


def _summary(text: str, order: int) -> list[Evidence]:
    """Return the sentences of a summary, without the line about its turns."""
    body = text.partition("\n(turns ")[0]
    return [Evidence(each, EvidenceOrigin.SUMMARY, order) for each in sentences(body)]
