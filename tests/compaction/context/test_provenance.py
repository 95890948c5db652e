"""Restoring a sent payload from its log line, and finding the sources of each sentence of a summary."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from compaction.context.build import SessionContext, build_payload
from compaction.context.provenance import StoredSources, rebuild_payload
from compaction.context.record import read_record
from compaction.model import Mode, Seq, TurnPart
from compaction.payload import PartKind, context_built_fields, keep_as_sent, make_part, text_digest
from tests.compaction.segments import batch, fact
from tests.compaction.turn_store_contract import EVENING, note, turn

SYSTEM = "You take part."
ABOUT_REPLY = "Answer in German."


def context(window: range, *, current: int | None = None, limit: int = 100_000) -> SessionContext:
    """Return a session with these turns in its window, after two folded batches."""
    folded = [batch(0, fact(1, "We rent the cabin in Braemar.")), batch(1, fact(12, "The gate code is 4411."))]
    return SessionContext(
        mode=Mode.SUMMARY,
        total_turns=window.stop,
        cursor=Seq(20),
        summary=" ".join(each.gist for each in folded),
        summary_revision=2,
        summary_started_at=folded[0].started_at,
        summary_ended_at=folded[1].ended_at,
        window=tuple(turn(seq) for seq in window if seq != current),
        live_notes=(note("a"), note("b")),
        current=None if current is None else turn(current),
        max_input_tokens=limit,
    )


def logged(made: SessionContext) -> tuple[dict[str, Any], Any]:
    """Return the log line of a payload, and the payload."""
    payload = build_payload(made, system=[SYSTEM], reply_prompts=[ABOUT_REPLY])
    fields = context_built_fields(
        payload,
        summary_revision=made.summary_revision,
        cursor=made.cursor,
        max_input_tokens=made.max_input_tokens,
        utc_offset_s=0.0,
    )
    line = {"event": "model_context_built", "session_id": EVENING, "timestamp": "2026-11-20T05:00:00Z", **fields}
    return line, payload


def kept(made: SessionContext) -> StoredSources:
    """Return what a store would have."""
    folded = (batch(0, fact(1, "We rent the cabin in Braemar.")), batch(1, fact(12, "The gate code is 4411.")))
    return StoredSources(
        turns={each.seq: each for each in (*made.window, *([made.current] if made.current else []))},
        summary=made.summary,
        segments=folded,
        notes={each.id: each for each in made.live_notes},
        prompts={text_digest(text): text for text in (SYSTEM, ABOUT_REPLY)},
    )


# Below 201 tokens, newer turns than the answered one may not fit, and the line does not tell which were sent.
@given(st.integers(1, 60), st.integers(0, 3), st.integers(220, 4000))
def test_whatever_was_sent_comes_out_again(length: int, after: int, limit: int) -> None:
    """A payload is restored word for word from its log line, including the eviction note, for any window, any current
    turn and any limit.
    """
    current = max(20, 20 + length - 1 - after)
    made = context(range(20, 20 + length), current=current, limit=limit)
    line, payload = logged(made)
    record = read_record(line)
    assert record is not None
    rebuilt = rebuild_payload(record, kept(made))
    assert [(part.role, part.kind, part.content) for part in rebuilt.payload] == [
        (part.role, part.kind, part.content) for part in payload
    ]
    assert rebuilt.exact is True
    assert rebuilt.lost == ()


def test_prompts_about_the_answer_keep_their_place() -> None:
    """What was said about the reply stands before the current turn, also if the first prompt is not stored any more."""
    made = context(range(20, 30), current=29)
    record = read_record(logged(made)[0])
    assert record is not None
    for prompts in ((SYSTEM, ABOUT_REPLY), (ABOUT_REPLY,)):
        store = replace(kept(made), prompts={text_digest(text): text for text in prompts})
        rebuilt = rebuild_payload(record, store)
        assert [part.content for part in rebuilt.payload if part.kind is PartKind.SYSTEM] == list(prompts)
        assert (rebuilt.payload[-2].content, rebuilt.payload[-1].kind) == (ABOUT_REPLY, PartKind.CURRENT)


def test_a_word_that_changed_since_is_noticed() -> None:
    """If a stored word has changed since, the digest does not match any more."""
    made = context(range(20, 30), current=29)
    line, _ = logged(made)
    record = read_record(line)
    assert record is not None
    store = kept(made)
    other = replace(store, turns={**store.turns, 22: turn(22, "Something else.")})
    assert rebuild_payload(record, other).exact is False
    assert rebuild_payload(replace(record, digest=None), store).exact is None
    gone = rebuild_payload(record, StoredSources())
    assert gone.exact is False
    assert "Turn 29, the one that was answered, is not stored any more." in gone.lost
    assert any(sentence.startswith("Turns 20, 21, 22") and "and 1 more" in sentence for sentence in gone.lost)


def test_a_line_that_names_any_range_of_turns_fills_nothing() -> None:
    """What is stored is shown, and the rest counted."""
    made = context(range(20, 30), current=29)
    line, _ = logged(made)
    record = read_record({**line, "seq_from": 0, "seq_to": 5_000_000_000_000})
    assert record is not None
    rebuilt = rebuild_payload(record, kept(made))
    assert [part.seq_from for part in rebuilt.payload if part.kind is PartKind.TURN] == list(range(20, 29))
    (missing,) = (sentence for sentence in rebuilt.lost if "are not stored any more" in sentence)
    assert missing == "Turns 0, 1, 2, 3, 4, 5, 6, 7 and 4999999999983 more are not stored any more."


def test_a_quote_of_words_forgotten_since_is_told_as_lost() -> None:
    """A quote is rebuilt with each speaker's words. If one of them was forgotten since, its sentence may be gone."""
    made = context(range(20, 30), current=29)
    line, _ = logged(made)
    both = replace(
        turn(3),
        parts=(TurnPart("1", "Ada", "We rent the cabin. It has a stove."), TurnPart("2", "Bob", "I pay for it.")),
    )
    ref = f"turn:{EVENING}#3@1,2"
    record = read_record({**line, "recall": [ref], "tokens": {**line["tokens"], PartKind.RECALL.value: 20}})
    assert record is not None
    whole = rebuild_payload(record, replace(kept(made), quoted={ref: both}))
    (quote,) = (part for part in whole.payload if part.kind is PartKind.RECALL)
    assert "Ada: … It has a stove.\nBob: I pay for it." in quote.content
    assert whole.lost == ()
    left = rebuild_payload(record, replace(kept(made), quoted={ref: replace(both, parts=both.parts[1:])}))
    assert all(part.kind is not PartKind.RECALL for part in left.payload)
    assert left.lost == ("Recalled quotes of words that are not stored any more: 1.",)


def test_parts_of_another_kind_are_told_as_lost() -> None:
    """Parts that are not stored, for example tool results, are reported as lost."""
    made = context(range(20, 30), current=29)
    line, _ = logged(made)
    line["tokens"] = {**line["tokens"], PartKind.TOOL.value: 12}
    record = read_record(line)
    assert record is not None
    assert rebuild_payload(record, kept(made)).lost == ("What was sent as tool is not stored.",)


def test_spoken_conversation_comes_out_again() -> None:
    """A payload of a speech-to-speech session is restored: its instructions in parts, its window with the answered
    turn, and the tool results.
    """
    window = tuple(turn(seq) for seq in range(20, 26))
    told = (
        make_part("system", PartKind.SYSTEM, SYSTEM),
        keep_as_sent(make_part("system", PartKind.PARTICIPANTS, "People here:\nAda, who has said: I live in Lisbon.")),
        keep_as_sent(make_part("system", PartKind.SUMMARY, "Session conversation summary:\nThey rent the cabin.")),
        keep_as_sent(make_part("system", PartKind.RECALL, "Recalled from earlier:\n[21:04] Ada: Hello.")),
    )
    made = replace(context(range(20, 26)), summary=None, live_notes=())
    items = build_payload(made)
    tools = (keep_as_sent(make_part("tool", PartKind.TOOL, "clock: 21:04")),)
    payload = (*told, *items, *tools)
    fields = context_built_fields(payload, summary_revision=2, cursor=20, utc_offset_s=0.0, answer_to=25)
    record = read_record({"event": "model_context_built", "session_id": EVENING, **fields})
    assert record is not None
    assert record.spoken
    store = StoredSources(
        turns={each.seq: each for each in window},
        prompts={text_digest(text): text for text in (SYSTEM, ABOUT_REPLY)},
        texts={text_digest(each.content): each.content for each in (*told[1:], *tools)},
    )
    rebuilt = rebuild_payload(record, store)
    assert [(each.role, each.content) for each in rebuilt.payload] == [(each.role, each.content) for each in payload]
    assert (rebuilt.exact, rebuilt.lost) == (True, ())
    less = rebuild_payload(record, replace(store, texts={}))
    assert less.exact is False
    assert less.lost == (
        "What was sent as participants, recall, summary, tool is not stored any more: something was forgotten since.",
    )
