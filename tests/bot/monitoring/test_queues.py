"""Every queue of the code is in the metrics: the source is searched for queues, and compared with the list."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from bot.monitoring.collectors import QUEUES
from tests.sources import ROOT, module_name, parsed

# What makes a queue.
MAKERS = {"Queue", "LifoQueue", "PriorityQueue", "SimpleQueue", "JoinableQueue", "FairQueue", "NoticeQueue", "deque"}
# What looks like a queue and needs no metric, and why.
NO_METRIC = {
    # Nothing waits there for another task: it is the memory of a decision.
    "bot.brain.tools.toolbox.Toolbox.called_once": "the latest questions that have posted",
    "bot.cli.report.log_extract.LogExtract._last": "the last events of a log that is read once",
    "bot.dashboard.live_room.LiveRoom._charts": "points of the charts",
    "bot.memory.upkeep.MemoryUpkeep._prompts": "the latest prompts, which the database has not taken yet",
    "bot.participation.costs.CostLedger._asked": "the written questions of the last hour",
    "bot.participation.costs.CostLedger._entries": "the costs of the last hour",
    "bot.realtime.items.Inputs._sent": "the latest inputs, to match transcripts",
    "bot.posts.transcript.TranscriptWriter._recent": "the latest lines, which withdrawn words leave",
    "bot.screen.readers.ScreenReaders._looked_at": "when pictures were read",
    "compaction.context.build.build_payload": "screens' notes, until their place among the turns",
    "compaction.budget.estimator.Estimator._bills": "the latest bills",
    "voice.listening.speaker.SpeakerListener._kept": "windows that an utterance may still need",
    "voice.listening.end_policy.OwnPauses._before_s": "the longest pauses of a person's latest utterances",
    "voice.speaking.playback.Playback._begun": "the latest pieces, to know the bot's echo",
    "voice.speaking.playback.QueuedSpeech.frames": "the sound of one piece, which `play` counts",
    "voice.transport.jitter.JitterBuffer._released": "the latest sequence numbers",
    "voice.transport.roster._Unknown.frames": "counted with the packets, as unknown_ssrc",
    "voice.hearing.EventQueue._waiting": "of a program that uses `voice` alone, which is told what was dropped",
    # Held by another attribute, which has the metric.
    "bot.channel.notice_queue.NoticeQueue._waiting": "the attributes that hold a NoticeQueue are in the list",
    "bot.conversation.hearing.Hearing._speakers": "each has utterances in UtteranceBacklog._waiting",
    "voice.asr.fair_queue.FairQueue.add": "part of the recogniser's queue",
    "voice.asr.fair_queue.FairQueue.confirm": "part of the recogniser's queue",
    "voice.transport.handover.Handover.kept": "part of Handover._waiting",
    # Bounded by what it is for.
    "bot.brain.speech_output.ReadAhead._items": "one answer, as long as llm.max_output_tokens",
    "voice.realtime.untranscribed_inputs.UntranscribedInputs._uncommitted": "a number for each utterance of one "
    "connection, which lasts less than an hour",
    "voice.daemon_thread.DaemonThread._calls": "at most four pauses, which nobody waits for after 0.4 s, the sentence "
    "of each room that it says now, or one text of each who asks the embedder",
    "bot.cli.log_view.tail.LogTail.run": "the last lines of a file",
}


def _places(node: ast.AST, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the path of every queue in `node`: module, class, and attribute or function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _places(child, (*path, child.name))
            continue
        made = ""
        if isinstance(child, ast.Call):
            made = ast.unparse(child.func)
        elif isinstance(child, ast.keyword) and child.arg == "default_factory":
            made = ast.unparse(child.value)
        if made.split("[")[0].split(".")[-1] in MAKERS:
            yield path
        yield from _places(child, (*path, *_target(child)))


def _target(node: ast.AST) -> tuple[str, ...]:
    """Return the attribute that a statement sets, in place of the method."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    for target in targets:
        if isinstance(target, ast.Attribute) and isinstance(node, ast.Assign | ast.AnnAssign):
            return ("=", target.attr)
        if isinstance(target, ast.Name) and isinstance(node, ast.AnnAssign):
            return ("=", target.id)
    return ()


def _key(path: tuple[str, ...]) -> str:
    """Return `module.Class.attribute` or `module.Class.function`."""
    if "=" not in path:
        return ".".join(path)
    at = path.index("=")
    module, *scopes = path[:at]
    classes = [scope for scope in scopes if scope.lstrip("_")[:1].isupper()]
    return ".".join((module, *classes, path[at + 1]))


def queues_of(path: Path) -> set[str]:
    """Return every queue that a source file makes."""
    if not any(maker in path.read_text("utf-8") for maker in MAKERS):
        return set()
    return {_key(found) for found in _places(parsed(path), (module_name(path),))}


@cache
def all_queues() -> frozenset[str]:
    """Return every queue of the bot."""
    sources = [path for package in ("bot", "compaction", "voice") for path in (ROOT / package).rglob("*.py")]
    return frozenset(found for path in sources for found in queues_of(path))


def test_every_queue_has_a_metric_or_a_reason_to_have_none() -> None:
    """A new queue fails this test until somebody decides which of the two it gets."""
    listed = set(QUEUES.values()) | set(NO_METRIC)
    assert all_queues() - listed == set()
    # `Handover` keeps its sound in a list, the replier its question in an attribute, playback its slots in a semaphore.
    assert set(NO_METRIC) <= all_queues(), "a queue that is gone needs no reason"


@pytest.mark.parametrize("name", sorted(QUEUES))
def test_a_queue_is_where_the_list_says_and_gives_its_figures(name: str) -> None:
    """The attribute exists, and some module of its package makes figures with that name."""
    module, class_name, attribute = QUEUES[name].rsplit(".", 2)
    source = (ROOT / module.replace(".", "/")).with_suffix(".py").read_text("utf-8")
    assert f"class {class_name}" in source
    assert f"self.{attribute}" in source
    makers = [path for package in ("bot", "voice") for path in (ROOT / package).rglob("*.py")]
    made = re.compile(rf'(QueueFigures\(|NoticeQueue\(\w+, name=)\s*"{name}"')
    assert any(made.search(path.read_text("utf-8")) for path in makers)
