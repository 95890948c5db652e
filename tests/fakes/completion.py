"""A text model with a `Mood` that decides how it answers: well, or with one of the failures of real models."""

from __future__ import annotations

import asyncio
import json
import re
from enum import Enum

from compaction.errors import CompletionError
from compaction.ports import CompletionAnswer, CompletionRequest

# A name and a number that nobody says in any test.
INVENTED_NAME = "Zebulon"
INVENTED_NUMBER = "987654"
_PREVIOUS = re.compile(r'<data from="previous summary">\n(.*?)\n</data>', re.DOTALL)
_LONG = "Ada spoke of many things at length. " * 90
_TURN = re.compile(r"^\[(\d+)\] \d\d:\d\d (.+?): (.*)$", re.MULTILINE)


class Mood(Enum):
    """How the model answers."""

    GOOD = "good"
    LINES = "prose instead of JSON"
    FENCED = "JSON in a fence with talk around it"
    SLOW = "good, after 40 seconds"
    HANGS = "never"
    OUTAGE = "an error that passes"
    WRONG_KEY = "an error that doesn't pass"
    BROKEN = "an exception nobody planned"
    CANCELLED = "cancelled inside"
    BLANK = "white space"
    ERROR_TEXT = "an error message as text"
    REFUSAL = "a refusal"
    CUT_OFF = "half a JSON object"
    OVERLONG = "a gist and a paragraph of three thousand characters"
    ANSWER = "an answer to the room"
    COPY = "the prompt"
    INVENTS = "names and numbers from nowhere"
    GARBAGE = "bytes"
    OTHER_SCRIPT = "in Hindi, whatever was said"


class MoodyModel:
    """Implements `Completion`. `mood` decides how the model answers and can be changed between calls. `calls` keeps the
    requests.
    """

    def __init__(self, mood: Mood = Mood.GOOD) -> None:
        self.mood = mood
        # If a prompt contains this text, the model refuses to answer, in any mood.
        self.refuses: str | None = None
        self.calls: list[CompletionRequest] = []
        self.at_once = 0
        self.most_at_once = 0

    @property
    def model(self) -> str:
        """Return the model's name."""
        return "moody-1"

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Answer according to the mood."""
        self.calls.append(request)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self._answer(request)
        finally:
            self.at_once -= 1

    async def _answer(self, request: CompletionRequest) -> CompletionAnswer:
        await asyncio.sleep(0)
        if self.refuses is not None and self.refuses in request.prompt:
            return CompletionAnswer("I'm sorry, but I can't summarise this conversation.", "stop", 500, 12)
        if request.schema is None:
            return await self._paragraph(request)
        good = _good(request)
        await self._delay_or_fail()
        finish = "length" if self.mood is Mood.CUT_OFF else "stop"
        text = {
            Mood.LINES: str(good["paragraph"]),
            Mood.FENCED: f"Here you are:\n```json\n{json.dumps(good)}\n```\nAnything else?",
            Mood.BLANK: " \n ",
            Mood.ERROR_TEXT: "Error: the conversation is too long to summarize.",
            Mood.REFUSAL: "I'm sorry, but I can't summarise this conversation.",
            Mood.CUT_OFF: json.dumps(good)[: len(json.dumps(good)) // 2],
            Mood.OVERLONG: json.dumps({**good, "gist": _LONG, "paragraph": _LONG}),
            Mood.ANSWER: "Sure, I would take the left door. Let me know if you need anything else!",
            Mood.COPY: request.prompt,
            Mood.INVENTS: json.dumps(_inventing(good)),
            Mood.OTHER_SCRIPT: json.dumps({**good, "paragraph": "वे लोग खेल की बात करते हैं।"}),
            Mood.GARBAGE: "\x00\ufffd}{ ]]] \x1b[31m ???",
        }.get(self.mood, json.dumps(good))
        return CompletionAnswer(text, finish, prompt_tokens=500, completion_tokens=80)

    async def _delay_or_fail(self) -> None:
        """Do what a mood does before there is any answer."""
        match self.mood:
            case Mood.SLOW:
                await asyncio.sleep(40.0)
            case Mood.HANGS:
                await asyncio.sleep(1e6)
            case Mood.OUTAGE:
                raise CompletionError("The model is overloaded.", retryable=True)
            case Mood.WRONG_KEY:
                raise CompletionError("The key is not valid.", retryable=False)
            case Mood.BROKEN:
                raise KeyError("choices")
            case Mood.CANCELLED:
                raise asyncio.CancelledError

    async def _paragraph(self, request: CompletionRequest) -> CompletionAnswer:
        """Answer a request to shorten a paragraph."""
        good = _retold(request)
        await self._delay_or_fail()
        text = {
            Mood.LINES: f"Here is the summary of the conversation:\n\n{good}",
            Mood.FENCED: f"**Summary:**\n```\n{good}\n```",
            Mood.BLANK: " \n ",
            Mood.ERROR_TEXT: "Error: the conversation is too long to summarize.",
            Mood.REFUSAL: "I'm sorry, but I can't summarise this conversation.",
            Mood.CUT_OFF: good[: len(good) * 2 // 3],
            Mood.OVERLONG: _LONG,
            Mood.ANSWER: "Sure, I would take the left door. Let me know if you need anything else!",
            Mood.COPY: request.prompt,
            Mood.INVENTS: f"{good} {INVENTED_NAME} promised the group {INVENTED_NUMBER} pounds.",
            Mood.GARBAGE: "\x00\ufffd}{ ]]] \x1b[31m ???",
        }.get(self.mood, good)
        finish = "length" if self.mood is Mood.CUT_OFF else "stop"
        return CompletionAnswer(text, finish, prompt_tokens=400, completion_tokens=60)


def _retold(request: CompletionRequest) -> str:
    """Return a paragraph of the last sentences of the summary so far and the beginnings of some new turns."""
    found = _PREVIOUS.search(request.prompt)
    previous = "" if found is None else found[1]
    new = request.prompt.split("New turns", 1)[-1]
    old = [each for each in re.split(r"(?<=[.!?])\s+", previous) if each and not each.startswith("Nothing;")]
    said = [f"{speaker}: {' '.join(text.split()[:12])}" for _, speaker, text in _TURN.findall(new)]
    told = [text if text.endswith((".", "!", "?")) else f"{text}." for text in said[:4]]
    return " ".join([*old[-6:], *told]) or "They talked about what comes next."


def _good(request: CompletionRequest) -> dict[str, object]:
    new = request.prompt.split("New turns", 1)[-1]
    told = [(int(seq), speaker, text) for seq, speaker, text in _TURN.findall(new)]
    speakers = list(dict.fromkeys(speaker for _, speaker, _ in told)) or ["Nobody"]
    facts = [
        {
            "turns": [seq],
            "text": f"{speaker}: {' '.join(text.split()[:12])}",
            "kind": "decision",
            "importance": 2,
            "closes": [],
            "owner": speaker,
            "until": "",
        }
        for seq, speaker, text in told[:4]
    ]
    gist = f"{' and '.join(speakers)} talked about what comes next."
    return {"gist": gist, "facts": facts, "paragraph": _retold(request)}


def _facts(good: dict[str, object]) -> list[dict[str, object]]:
    facts = good["facts"]
    assert isinstance(facts, list)
    return [each for each in facts if isinstance(each, dict)]


def _inventing(good: dict[str, object]) -> dict[str, object]:
    said = f"{INVENTED_NAME} promised the group {INVENTED_NUMBER} pounds."
    facts = [{**each, "text": said, "turns": [99_999], "closes": ["F1", "F99"]} for each in _facts(good)]
    return {"gist": said, "facts": facts, "paragraph": f"{good['paragraph']} {said}"}
