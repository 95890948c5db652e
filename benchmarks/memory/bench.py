"""`roomtone bench memory`: what is left of an evening after 5, 20 and 100 folds, and what remembering costs.

It only arranges: evenings are made in `evenings`, heard in `race`, judged in `judge`, `finding` and `invention`;
what the reply pays and what barge-in does is measured in modules of their own.
"""

from __future__ import annotations

import tempfile
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from benchmarks.errors import EndpointError, PeerError
from benchmarks.localmodel import Endpoint, check_endpoint, find_model_file, find_python, local_endpoint
from benchmarks.machine import describe_machine
from benchmarks.memory.bargein import SUMMARY_S, TURN_S, interrupt_ours
from benchmarks.memory.evenings import TemplateSet, evening
from benchmarks.memory.field import model_free, peer_entrant, with_model
from benchmarks.memory.finding import look_for
from benchmarks.memory.options import Options, checkpoints
from benchmarks.memory.race import run_course, turns_for
from benchmarks.memory.replypath import measure_reply_path
from benchmarks.memory.retrieval import PlainWindows
from benchmarks.memory.scores import found_scores, kept, scores
from benchmarks.memory.searchspeed import measure_search
from benchmarks.peers.environment import PEERS, peer_python
from benchmarks.peers.process import peer_process
from benchmarks.report import Report, Target, at_least, at_most
from benchmarks.stubmodel import stub_endpoint
from bot.settings import LlmSettings
from compaction.settings import CompactionSettings
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.memory.conversation import Conversation
    from benchmarks.memory.field import Entrant
    from benchmarks.memory.finding import Found
    from benchmarks.memory.race import Course
    from benchmarks.peers.environment import PeerLibrary
    from benchmarks.progress import Progress
    from benchmarks.report import Json

__all__ = ["Options", "run"]

_BARGE_IN_TURNS = 300
_TOLD_AFTER = 20


@dataclass(slots=True)
class _Findings:
    ours: dict[str, Json] = field(default_factory=dict)
    peers: dict[str, Json] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


async def run(options: Options, progress: Progress) -> Report:
    """Measure everything that can be measured here. Raises BenchmarkError when the options can't be followed."""
    machine = describe_machine()
    findings = _Findings()
    with _quiet():
        async with AsyncExitStack() as stack:
            findings.ours["reply_path"] = await measure_reply_path(options.turns, CompactionSettings(), progress)
            findings.ours["search_speed"] = await measure_search(PlainWindows(), options.search_turns, progress)
            for entrant in model_free():
                await _race_told(entrant, options, findings, progress)
            findings.ours["search"] = await _search(options, progress)
            pythons = await _pythons(options, stack, findings, progress)
            await _barge_in(options, pythons, findings, progress)
            endpoint = await _endpoint(options, stack, findings, progress)
            if endpoint is not None:
                rivals = [peer_entrant(library, python, endpoint) for library, python in pythons.items()]
                for entrant in (*with_model(endpoint), *rivals):
                    await _race_told(entrant, options, findings, progress)
    return Report(
        bench="memory",
        machine=machine,
        ours=findings.ours,
        peers=findings.peers,
        targets=_targets(findings),
        remarks=tuple(findings.remarks),
    )


async def _endpoint(
    options: Options, stack: AsyncExitStack, findings: _Findings, progress: Progress
) -> Endpoint | None:
    """Return the model to ask, started if need be; None, with a remark, where there is none."""
    if not options.with_model:
        findings.remarks.append("No language model was asked for, so only what needs none was measured.")
        return None
    if options.base_url:
        endpoint = Endpoint(options.base_url, options.model or LlmSettings().model, options.api_key)
        await check_endpoint(endpoint)
    else:
        try:
            model_file = find_model_file(options.model_file, load().models.directory)
            python = await find_python(options.llama_python)
            endpoint = await stack.enter_async_context(local_endpoint(python, model_file, progress))
        except EndpointError as error:
            findings.remarks.append(f"Without a language model only what needs none was measured. {error}")
            progress.say(findings.remarks[-1])
            return None
    findings.remarks.append(f"The language model was {endpoint.model}, for all who ask one.")
    return endpoint


async def _pythons(
    options: Options, stack: AsyncExitStack, findings: _Findings, progress: Progress
) -> dict[PeerLibrary, Path]:
    """Return the interpreters of the other libraries that could be installed; a remark for each that could not."""
    if not options.peers:
        findings.remarks.append("Other libraries were left out.")
        return {}
    parent = options.peers_dir
    if parent is None:
        parent = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="roomtone-peers-")))
    pythons: dict[PeerLibrary, Path] = {}
    for library in PEERS:
        try:
            pythons[library] = await peer_python(library, parent.absolute(), progress)
        except PeerError as error:
            _tell_of_peer(library, error, findings, progress)
    return pythons


def _tell_of_peer(library: PeerLibrary, error: PeerError, findings: _Findings, progress: Progress) -> None:
    findings.peers.setdefault(library.name, {"failed": str(error)})
    findings.remarks.append(str(error))
    progress.say(str(error))


def _conversations(entrant: Entrant, options: Options, templates: TemplateSet) -> list[Conversation]:
    folds = options.model_folds if entrant.needs_model else options.folds
    count = options.model_evenings if entrant.needs_model else options.evenings
    return [evening(options.seed + each, templates, lines=turns_for(folds)) for each in range(count)]


async def _race_told(entrant: Entrant, options: Options, findings: _Findings, progress: Progress) -> None:
    """Let one contender run; another library's failure is told, and the others go on."""
    side = findings.ours if entrant.ours else findings.peers
    try:
        side[entrant.name] = await _race(entrant, options, progress)
    except PeerError as error:
        side[entrant.name] = {"failed": str(error)}
        findings.remarks.append(str(error))
        progress.say(str(error))


async def _race(entrant: Entrant, options: Options, progress: Progress) -> dict[str, Json]:
    figures: dict[str, Json] = {}
    folds = checkpoints(options.model_folds if entrant.needs_model else options.folds)
    only_held_out = entrant.needs_model and not options.model_tuning
    for templates in (TemplateSet.HELD_OUT,) if only_held_out else TemplateSet:
        conversations = _conversations(entrant, options, templates)
        progress.step(f"{entrant.name}, {templates}", total=sum(len(each.lines) for each in conversations))
        courses = [await _course(entrant, each, folds, progress) for each in conversations]
        figures[templates.value] = scores(courses)
    return figures


async def _course(entrant: Entrant, conversation: Conversation, folds: Sequence[int], progress: Progress) -> Course:
    async with entrant.enter(conversation.lines[0].at) as contender:
        return await run_course(contender, conversation, folds, progress, claims=entrant.claims)


async def _search(options: Options, progress: Progress) -> dict[str, Json]:
    """Look for every fact again, and count it as known when the search finds it or the summary tells it."""
    entrant = model_free()[0]
    figures: dict[str, Json] = {"retriever": PlainWindows().name, "summary_of": entrant.name}
    for templates in TemplateSet:
        found: dict[int, list[Found]] = {}
        conversations = _conversations(entrant, options, templates)
        progress.step(f"search, {templates}", total=len(conversations) * turns_for(options.folds))
        for conversation in conversations:
            course = await _course(entrant, conversation, checkpoints(options.folds), progress)
            retriever = PlainWindows()
            added = 0
            for checkpoint in course.checkpoints:
                end = turns_for(checkpoint.folds_due)
                await retriever.add(conversation.lines[added:end])
                added = end
                found.setdefault(checkpoint.folds_due, []).append(
                    await look_for(conversation, retriever, checkpoint.folds_due, checkpoint.text)
                )
        figures[templates.value] = {str(folds): found_scores(each) for folds, each in found.items()}
    return figures


async def _barge_in(
    options: Options, pythons: Mapping[PeerLibrary, Path], findings: _Findings, progress: Progress
) -> None:
    """Let every reply of an evening be talked over: ours, and each library's, with a model that takes the same time."""
    conversation = evening(options.seed, TemplateSet.TUNING, lines=_BARGE_IN_TURNS)
    progress.step("constant barge-in, ours", total=len(conversation.lines))
    findings.ours["barge_in"] = dict(asdict(await interrupt_ours(conversation, CompactionSettings(), progress)))
    async with stub_endpoint(answer_s=SUMMARY_S) as endpoint:
        for library, python in pythons.items():
            progress.step(f"constant barge-in, {library.name}", total=1)
            try:
                async with peer_process(library, python, endpoint) as peer:
                    figures = await peer.barge_in(conversation.lines, turn_s=TURN_S)
                    figures["turns"] = len(conversation.lines)
                    findings.peers[f"barge_in {library.name}"] = {"version": peer.version, **figures}
            except PeerError as error:
                _tell_of_peer(library, error, findings, progress)
            progress.advance()


# -- the targets ---------------------------------------------------------------------------------------------


def _targets(findings: _Findings) -> tuple[Target, ...]:
    ours = findings.ours
    return (
        _against_recursive(ours),
        at_least(
            "facts told or found after 20 folds, held-out templates",
            ">= 95 %",
            _number(ours, "search", TemplateSet.HELD_OUT, str(_TOLD_AFTER), "told_or_found"),
            0.95,
        ),
        at_most("invented names in our summaries", "0", _count_of(ours, "invented_names"), 0),
        at_most("budget violations", "0", _violations(ours), 0),
        at_most(
            "trigger and payload at 10,000 turns, besides tokenising, P99 ms",
            "<= 1 ms",
            _number(ours, "reply_path", "trigger_and_payload_ms", "p99"),
            1.0,
        ),
        at_most("memory search over 100,000 turns, P95 ms", "<= 50 ms", _number(ours, "search_speed", "p95_ms"), 50.0),
    )


def _against_recursive(ours: dict[str, Json]) -> Target:
    name, goal = "planted facts in the injected text after 20 folds, ledger to recursive", ">= 2 times as many"
    held_out = TemplateSet.HELD_OUT.value
    shares: list[float | None] = []
    for contender in ("ledger", "recursive"):
        figures = ours.get(contender)
        of_set = figures.get(held_out) if isinstance(figures, dict) else None
        shares.append(kept(of_set, _TOLD_AFTER) if isinstance(of_set, dict) else None)
    ledger, recursive = shares
    if ledger is None or recursive is None:
        return Target(name, goal, "not measured", None)
    if recursive == 0:
        return Target(name, goal, f"{ledger:.0%} to none", ledger > 0)
    return at_least(name, goal, ledger / recursive, 2.0)


def _number(figures: Json, *path: str) -> float | None:
    for name in path:
        figures = figures.get(name) if isinstance(figures, dict) else None
    return float(figures) if isinstance(figures, int | float) else None


def _count_of(ours: dict[str, Json], name: str) -> float:
    """Return how many there are over all of our contenders, each once."""
    found: set[str] = set()
    for figures in _of_sets(ours):
        each = figures.get(name)
        if isinstance(each, list):
            found.update(str(item) for item in each)
    return len(found)


def _violations(ours: dict[str, Json]) -> float:
    names = ("summaries_over_1200_chars", "summaries_not_ending_on_a_sentence", "payloads_over_budget")
    return sum(_number(figures, name) or 0 for figures in _of_sets(ours) for name in names)


def _of_sets(ours: dict[str, Json]) -> Iterator[dict[str, Json]]:
    for figures in ours.values():
        if isinstance(figures, dict):
            for templates in TemplateSet:
                of_set = figures.get(templates.value)
                if isinstance(of_set, dict) and "summaries" in of_set:
                    yield of_set


@contextmanager
def _quiet() -> Iterator[None]:
    """Drop the memory's log lines while thousands of folds are measured; writing them would be measured too."""
    before = structlog.get_config()
    structlog.configure(processors=[_drop], cache_logger_on_first_use=False)
    try:
        yield
    finally:
        structlog.configure(**before)


def _drop(logger: object, name: str, event: object) -> str:
    del logger, name, event
    raise structlog.DropEvent
