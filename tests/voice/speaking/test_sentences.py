"""Where a stream of text is cut for speaking."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voice.speaking.hidden_passages import HiddenPassages
from voice.speaking.sentences import MAX_PIECE_CHARS, SentenceSplitter


def pieces_of(text: str, step: int = 1) -> list[str]:
    """Feed `text` in pieces of `step` characters and return everything that came out."""
    splitter = SentenceSplitter()
    out: list[str] = []
    for start in range(0, len(text), step):
        out += splitter.feed(text[start : start + step])
    return out + splitter.flush()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sure. I can do that.", ["Sure.", "I can do that."]),
        ("Dr. Gray met J. Smith at 3.5 p.m. today. Fine!", ["Dr. Gray met J. Smith at 3.5 p.m. today.", "Fine!"]),
        ('He said "no." Then he left.', ['He said "no."', "Then he left."]),
        ("One\nTwo", ["One", "Two"]),
        ("", []),
        ("  \n ", []),
        ("Well… maybe?! Yes", ["Well…", "maybe?!", "Yes"]),
        ("No. It is not. See no. 5 of 9.", ["No.", "It is not.", "See no. 5 of 9."]),
        ("**Done.** _Really._ Next (yes.) Last", ["**Done.**", "_Really._", "Next (yes.)", "Last"]),
        ("We meet at 5 p.m. Bring soup etc. and so on.", ["We meet at 5 p.m.", "Bring soup etc. and so on."]),
        (
            "He lives in the U.S. now. The U.S. Army. She left the U.S. Then he did.",
            ["He lives in the U.S. now.", "The U.S. Army.", "She left the U.S. Then he did."],
        ),
        (
            "1. Bring a lamp.\n2. Go. \n- a. Rest\n(iv.) Sleep",
            ["1. Bring a lamp.", "2. Go.", "- a. Rest", "(iv.) Sleep"],
        ),
        (
            "It is 3.14, or 1.000.000. So do I. Then J. K. R. came.",
            ["It is 3.14, or 1.000.000.", "So do I.", "Then J. K. R. came."],
        ),
        ("Wait... what? See e.g. Mt. Etna.", ["Wait...", "what?", "See e.g. Mt. Etna."]),
        ("Look at example.com and v2.0.1. Good", ["Look at example.com and v2.0.1.", "Good"]),
        (
            "Am 3. Mai, im 20. und 21. Jahrhundert. Freitag, 10. Oktober. Es waren 3. Gut.",
            ["Am 3. Mai, im 20. und 21. Jahrhundert.", "Freitag, 10. Oktober.", "Es waren 3.", "Gut."],
        ),
        (
            "Die Antwort ist 4 oder 5. Genau weiß ich es nicht.",
            ["Die Antwort ist 4 oder 5.", "Genau weiß ich es nicht."],
        ),
        ("Auf einer Skala von 1 bis 10. Was meinst du?", ["Auf einer Skala von 1 bis 10.", "Was meinst du?"]),
        (
            "Zwischen 3 und 5. Das reicht. Seit 3. Versuch es.",
            ["Zwischen 3 und 5.", "Das reicht.", "Seit 3.", "Versuch es."],
        ),
        ("Er hat eine 2. Das ist gut. Es ist am 3. Ja.", ["Er hat eine 2.", "Das ist gut.", "Es ist am 3.", "Ja."]),
        ("Vom 3. bis 5. Mai. Ab 1. Juni. Ihr 5. Kind.", ["Vom 3. bis 5. Mai.", "Ab 1. Juni.", "Ihr 5. Kind."]),
        ("Karl der II. kam. Am 3.\nJa.", ["Karl der II. kam.", "Am 3.", "Ja."]),
        ("Am 3.5. kommt er. Vom 3. 5. bis 5.5. auch.", ["Am 3.5. kommt er.", "Vom 3. 5. bis 5.5. auch."]),
        (
            "I am 25. How old are you? I am 25. April is nice.",
            ["I am 25.", "How old are you?", "I am 25.", "April is nice."],
        ),
        ("Nimm die 4. Viel Spaß! Bis am 3. Tschüss!", ["Nimm die 4.", "Viel Spaß!", "Bis am 3.", "Tschüss!"]),
        ("So am I. What do you want? Am I. Yes.", ["So am I.", "What do you want?", "Am I.", "Yes."]),
        ("Etwa 2,5 Mio. Euro, z. B. am 1. Juni. Ja.", ["Etwa 2,5 Mio. Euro, z. B. am 1. Juni.", "Ja."]),
        ("今天很好。明天呢？「好。」他说。", ["今天很好。", "明天呢？", "「好。」", "他说。"]),
        ("はい。そうです！！ね", ["はい。", "そうです！！", "ね"]),
        ("यह अच्छा है। और यह भी। बस", ["यह अच्छा है।", "और यह भी।", "बस"]),
        ("هل هذا صحيح؟ نعم. حسنا", ["هل هذا صحيح؟", "نعم.", "حسنا"]),
        ("Այո։ Ոչ։ Լավ", ["Այո։", "Ոչ։", "Լավ"]),
    ],
)
def test_text_is_cut_at_sentence_ends(text: str, expected: list[str]) -> None:
    """Text is cut at sentence ends, but not at abbreviations, initials and decimals."""
    assert pieces_of(text) == expected


@pytest.mark.parametrize(
    "before",
    [
        "<think>They want the time, so I should look at the clock first, or not. Yes.</think>",
        "<think>\nOne. Two.\n</think>\n\n",
        "◁think▷hidden words, and more of them, and even more of them◁/think▷ ",
        "Thought: they want to know the time, so I have to look at the clock, at once\n",
        '{"tool": "clock", "arguments": {"now": true, "zone": "here", "and": "there"}} ',
    ],
)
def test_the_first_clause_that_is_heard_is_spoken_before_its_sentence_ends(before: str) -> None:
    """A model's hidden reasoning does not count as the first clause and is not cut at its clauses."""
    splitter = SentenceSplitter()
    hidden = splitter.feed(before)
    assert [splitter.spoke] == [False]
    *_, first = splitter.feed("If I remember it right, and I think that I do, the ")
    assert first.endswith("If I remember it right, and I think that I do,")
    assert splitter.spoke
    assert splitter.feed("boat, which was blue, left at six, ") == []
    assert all(len(piece) > len("Two.") for piece in hidden if "," in piece)


TAG = '<parameter name="one, two, three, four, five, six, seven"> x. </parameter> Yes.'
FIRST_IN_CHINESE = "我记得昨天晚上我们一起坐在河边的那棵大树下面，"


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(
            [
                (
                    "If I remember it right, and I think that I do, the ",
                    ["If I remember it right, and I think that I do,"],
                ),
                ("boat, which was blue, left at six, ", []),
            ],
            id="a first clause of 40 characters, because a listener waits for the first words",
        ),
        pytest.param(
            [
                ("Well, I think, ", []),
                ("as far as anybody can tell; but ", ["Well, I think, as far as anybody can tell;"]),
            ],
            id="a short clause waits for the next",
        ),
        pytest.param(
            [(f"对，{FIRST_IN_CHINESE}", []), ("后来", [f"对，{FIRST_IN_CHINESE}"])],
            id="twenty ideographs take as long to say as forty letters",
        ),
        pytest.param(
            [("No. ", []), ("I", ["No."])],
            id="an abbreviation that may end its sentence waits for the next word, not for the next full stop",
        ),
        pytest.param(
            [(f"{TAG} ", [TAG])],
            id="a tag is not cut in two, because the text that it hides would then be spoken",
        ),
    ],
)
def test_when_a_piece_is_known(steps: list[tuple[str, list[str]]]) -> None:
    splitter = SentenceSplitter()
    for text, pieces in steps:
        assert splitter.feed(text) == pieces


def test_ideographs_without_punctuation_are_cut_at_half_the_length() -> None:
    out = pieces_of("好" * 500, 7)
    assert max(map(len, out)) <= MAX_PIECE_CHARS // 2
    assert "".join(out) == "好" * 500


# Text that decides where to cut: stops, closing marks, abbreviations, list numbers, white space, wide letters.
_PARTS = st.sampled_from(
    ["Mr", "etc", "no", "am", "bis", "Das", "Mai", "U.S", "p.m", "a", "I", "7", "12", "word", "Long", ".", "...",
     "!", "?", ",", ";", ":", "—",
     " ", "  ", "\n", "\"", "”", ")", "**", "-", "。", "，", "「", "」", "好", "।", "😀", "x" * 90]
)  # fmt: skip


@pytest.mark.slow
@given(parts=st.lists(_PARTS, max_size=60), cuts=st.lists(st.integers(0, 400), max_size=30))
@settings(max_examples=200)
def test_the_same_pieces_however_the_stream_is_cut(parts: list[str], cuts: list[int]) -> None:
    """However the stream is split, nothing is lost or doubled, and the cuts are at the same places."""
    text = "".join(parts)
    at_once = pieces_of(text, max(1, len(text)))
    assert pieces_of(text) == at_once
    splitter, anyhow, start = SentenceSplitter(), [], 0
    for cut in [*sorted(cuts), len(text)]:
        anyhow += splitter.feed(text[start:cut])
        start = max(start, cut)
    assert anyhow + splitter.flush() == at_once
    assert "".join("".join(at_once).split()) == "".join(text.split())


def test_an_answer_that_comes_at_once_is_looked_at_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an answer may be a tool call it is held back to its end. A list of numbers on one line of code, which is
    never spoken, is then not read again from its beginning for each of its commas: the event loop would stand still.
    """
    looked_at: list[int] = []
    peek = HiddenPassages.peek

    def counted(self: HiddenPassages, written: str) -> str:
        looked_at.append(len(written))
        return peek(self, written)

    monkeypatch.setattr(HiddenPassages, "peek", counted)
    text = "```json\n[" + "1, " * 200
    assert pieces_of(text, len(text)) == pieces_of(text)
    assert 0 < max(looked_at) <= MAX_PIECE_CHARS


@given(text=st.text(max_size=600), step=st.integers(1, 50))
def test_no_character_is_lost_or_made_up(text: str, step: int) -> None:
    """The pieces contain exactly the visible characters of the text, in order, however the stream is split."""
    assert "".join("".join(pieces_of(text, step)).split()) == "".join(text.split())


@given(text=st.text(alphabet="ab .,!\n", max_size=300), step=st.integers(2, 50))
def test_no_piece_is_blank_or_too_long(text: str, step: int) -> None:
    for piece in pieces_of(text, step):
        assert piece.strip()
        assert len(piece) <= MAX_PIECE_CHARS
