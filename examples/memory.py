"""Remember a conversation of any length: turns in, context for a model out. Run it as `python memory.py evening.jsonl`.

Each line of the file is a turn: {"speaker": "Ada", "text": "Hello!", "at": 0.0}
"""

import asyncio
import json
import logging
import sys
from pathlib import Path

from compaction import ConversationMemory


async def summarise(previous, turns):
    """Return the new summary. Ask your model here; this one keeps the sentences with a figure."""
    parts = [part for turn in turns for part in turn.parts]
    figures = [f"{part.speaker}: {part.text}" for part in parts if any(map(str.isdigit, part.text))]
    return f"{previous} {' '.join(figures)}".strip() or "Nothing with a figure."


async def main(lines):
    logging.basicConfig(level=logging.INFO, stream=sys.stdout)
    store = {}
    async with ConversationMemory.open("evening", store=store, summarise=summarise) as memory:
        for line in lines:
            said = json.loads(line)
            await memory.add(said["speaker"], said["text"], at=said["at"])
            await memory.fold()
    # The store has all of it: another process goes on here.
    async with ConversationMemory.open("evening", store=store, summarise=summarise) as memory:
        for message in memory.context(max_tokens=4_000, system="You are a friend of these people."):
            print(message["role"], message["content"])


asyncio.run(main(Path(sys.argv[1]).read_text("utf-8").splitlines()))
