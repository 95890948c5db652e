"""Record a strong model's answers: `python -m benchmarks.memory.record CONVERSATION SYSTEM FOLDER`.

CONVERSATION is cabin, salt_gate, long, opposites, people_alike (each case has a folder of its own), or the path of a
transcript; SYSTEM is roomtone, recursive, langchain or pipecat. Each request appears as FOLDER/NNN.req.txt. Write the
answer from its text alone, under another name, and move it to FOLDER/NNN.resp.txt within ten minutes. Run it again with
the same FOLDER to go on: answers that are there are used at once. The answers are kept in `recorded/answers`, or under
--answers for transcripts that are not the project's.

With --base-url and --model a model writes the answers, for example a small one on this machine. --answers names its
folder then, which gets the model's name for the tables.
"""

from __future__ import annotations

import argparse
import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.disabled_logging import logging_disabled
from benchmarks.errors import EndpointError
from benchmarks.local_model import ChatEndpoint
from benchmarks.memory.conversations.folds import folds_possible, turns_needed
from benchmarks.memory.conversations.transcripts import read_conversation_file
from benchmarks.memory.conversations.written import LONG, NAMES, read_written
from benchmarks.memory.folders import ANSWERS
from benchmarks.memory.measurements.cases import TABLES, read_cases
from benchmarks.memory.options import MemoryBenchOptions
from benchmarks.memory.systems.catalogue import RECORDED_SYSTEMS, answered_system
from benchmarks.memory.systems.dependencies import find_pythons
from benchmarks.memory.systems.recorded_answers import MODEL_NAME, recording_endpoint
from benchmarks.progress import NoProgress

if TYPE_CHECKING:
    from benchmarks.memory.conversations.conversation import RecordedConversation


def conversations_of(name: str) -> list[RecordedConversation]:
    """Return the conversation of this name or transcript, or the cases of a table. Raises TranscriptFormatError."""
    if name in TABLES:
        return [case.conversation for case in read_cases(name)]
    return [read_written(name)] if name in {*NAMES, LONG} else read_conversation_file(Path(name))


async def record(
    conversation: RecordedConversation,
    system: str,
    work: Path,
    *,
    answers: Path,
    peers_dir: Path | None,
    folds: int,
    model: ChatEndpoint | None = None,
) -> None:
    """Play the conversation to the system while its requests are answered by hand, or by `model`."""
    lines = conversation.lines[: turns_needed(min(folds, folds_possible(conversation)))]
    async with AsyncExitStack() as stack:
        stack.enter_context(logging_disabled())
        endpoint = await stack.enter_async_context(
            recording_endpoint(answers / conversation.name / system, work, conversation.lines, model)
        )
        options = MemoryBenchOptions(peers_dir=peers_dir)
        ours = system in {"roomtone", "recursive"}
        pythons = {} if ours else await find_pythons(options, stack, print, NoProgress())
        spec = answered_system(system, endpoint, pythons)
        memory = await stack.enter_async_context(spec.enter(conversation))
        for line in lines:
            await memory.hear(line)
        snapshot = await memory.snapshot()
        counts = f"{snapshot.folds} folds, {memory.cost.failures} failures."
        print(f"{counts} The text at the end:\n{snapshot.injected}")  # noqa: T201 - a command


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("conversation")
    parser.add_argument("system", choices=RECORDED_SYSTEMS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--answers", type=Path, default=ANSWERS, help="where answers are kept")
    parser.add_argument("--peers-dir", type=Path, help="where other libraries are installed and kept")
    parser.add_argument("--folds", type=int, default=100, help="stop after so many folds")
    parser.add_argument("--base-url", default="", help="the OpenAI-compatible endpoint of a model that answers")
    parser.add_argument("--model", default="", help="its name there")
    given = parser.parse_args()
    model = ChatEndpoint(given.base_url, given.model) if given.base_url else None
    if model is not None:
        if given.answers == ANSWERS:
            parser.error("--base-url needs --answers, a folder for this model's answers alone.")
        given.answers.mkdir(parents=True, exist_ok=True)
        (given.answers / MODEL_NAME).write_text(f"{given.model}\n", "utf-8")
    conversations = conversations_of(given.conversation)
    for each in conversations:
        work = given.folder / Path(each.name).name if len(conversations) > 1 else given.folder
        options = {"answers": given.answers, "peers_dir": given.peers_dir, "folds": given.folds, "model": model}
        try:
            asyncio.run(record(each, given.system, work, **options))
        except EndpointError as error:
            parser.exit(1, f"{error}\n")


if __name__ == "__main__":
    main()
