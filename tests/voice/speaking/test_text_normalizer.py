"""Which parts of a reply are read aloud."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from voice.speaking.sentences import SentenceSplitter
from voice.speaking.text_normalizer import SpeakableText, TextNormalizer, strip_markup


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("Bo brings the lantern.", "Bo brings the lantern."),
        ("**Bo** brings *the* __lantern__, ~~not~~ _really_.", "Bo brings the lantern, not really."),
        ("## The plan", "The plan"),
        ("- Bring a lantern", "Bring a lantern"),
        ("2) Bring a rope", "2. Bring a rope"),
        ("> quoted words", "quoted words"),
        ("-# small print", "small print"),
        ("See [the map](https://example.org/map?x=1) first.", "See the map first."),
        ("(see [the map](https://example.org/a_(b)) now)", "(see the map now)"),
        ("\\*no emphasis\\*", "no emphasis"),
        ("2*3*4 and **four**", "2*3*4 and four"),
        ('_whispers_ "Come here."', '"Come here."'),
        ("Look at https://example.org/a_b?c=d.", "Look at the link."),
        ("Look at <https://example.org>, then go.", "Look at the link, then go."),
        ("It is on github.com/ada/thing too", "It is on the link too"),
        ("Learn Node.js/React or ASP.NET/C#.", "Learn Node.js/React or ASP.NET/C#."),
        ("https://example.org", ""),
        ("![a picture](cat.png)", ""),
        ("Great 😀👍🏽 job ❤️!", "Great job!"),
        ("Fine :smile: <:blob:1234> :)", "Fine"),
        ("Hi <@1234>, look in <#99>", "Hi, look in"),
        ("Hi @Ada, it is #fun", "Hi Ada, it is fun"),
        ("Use `main` and `x->y();`.", "Use main and."),
        ("| Name | Age |", ""),
        ("|---|---|", ""),
        ("Ada | 5 | blue", ""),
        ("Ada | | blue", ""),
        ("Use |x| and |y|.", "Use |x| and |y|."),
        ("---", ""),
        ("***", ""),
        ("It is ||Bo||.", "It is Bo."),
        ("*laughs softly* Well, yes.", "Well, yes."),
        ("(sighs) Fine.", "Fine."),
        ("Well [pause] yes.", "Well yes."),
        ("[SKIP]", ""),
        ("SKIP", ""),
        ("<SKIP/>", ""),
        ("We may skip it.", "We may skip it."),
        ("<b>Bold</b> words<br/>", "Bold words"),
        ("…", ""),
        ("2 * 3 is six", "2 * 3 is six"),
        ("*adjusts glasses* As I was saying, yes.", "As I was saying, yes."),
        ("*a long pause follows, while all look at the sea* Anyway.", "Anyway."),
        ("_smiles, then sighs deeply_ Sure.", "Sure."),
        ("*nods*", ""),
        ("Well, *adjusts glasses* I think so.", "Well, I think so."),
        ("(chuckles nervously) Right.", "Right."),
        ("(pause) Right (smile warmly).", "Right."),
        ("Go there (take bus 12).", "Go there (take bus 12)."),
        ("(Turn left at the church)", "(Turn left at the church)"),
        ("Hm (thinks about it) yes.", "Hm yes."),
        ("(takes a deep breath) Right.", "Right."),
        ("Well (clears his throat) yes.", "Well yes."),
        ("The bus is cheaper (takes about an hour).", "The bus is cheaper (takes about an hour)."),
        ("(Takes 20 minutes.)", "(Takes 20 minutes.)"),
        ("Flu (cough, fever), or a cold (coughing a bit)?", "Flu (cough, fever), or a cold (coughing a bit)?"),
        ("I *think* so, and I *really* mean the *wave* function.", "I think so, and I really mean the wave function."),
        ("*Really*? *Never* again.", "Really? Never again."),
        ("*no*", "no"),
        ("**Turn off the router.**", "Turn off the router."),
        ("1. **Take the first left.** Then go on.", "1. Take the first left. Then go on."),
        ("**laughs** Well, yes.", "Well, yes."),
        ("*Take the first left.* Then go on.", "Take the first left. Then go on."),
        ("1. *Turn off the router.*", "1. Turn off the router."),
        ("You should *think*", "You should think"),
        ("*hug*", ""),
        ("*Sigh.* Right.", "Right."),
        ("That *laughs* is funny.", "That is funny."),
        ("**Waves** carry energy.", "Waves carry energy."),
        ("Are you *laughing* at me?", "Are you laughing at me?"),
        ("*Laughing* Well, yes.", "Well, yes."),
        ("I'd pick *the red one*", "I'd pick the red one"),
        ("Read *the two towers* Bo.", "Read the two towers Bo."),
        ("(interrupted)", ""),
        ("I was (interrupted) saying", "I was saying"),
        ("(forgotten at somebody's wish)", ""),
        ("((ooc: back soon))", ""),
        ("<|im_start|>assistant Hello.<|im_end|>", "Hello."),
        ("Hello.</s>", "Hello."),
        ("Assistant: Hello Ada.", "Hello Ada."),
        ("**Assistant:** Hello Ada.", "Hello Ada."),
        ("Final Answer: 42 boats", "42 boats"),
        ("Shanghai: 25 million. I, Robot: a film.", "Shanghai: 25 million. I, Robot: a film."),
        ("My response: no.", "My response: no."),
        ("As stated【4†source】, yes.[2]", "As stated, yes."),
        ("【重要】 words", "【重要】 words"),
        ("¯\\_(ツ)_/¯ who knows", "who knows"),
        ("Fish &amp; chips, it&#39;s good", "Fish & chips, it's good"),
        ("$E = mc^2$ is famous", "E = mc^2 is famous"),
        ("It is \\(a+b\\), or $$\\frac{1}{2}$$", "It is a+b, or 1 over 2"),
        ("It costs $5, not $6 a day", "It costs $5, not $6 a day"),
        ("Sure: 1) eggs 2) milk", "Sure: 1) eggs 2) milk"),
        ("1) eggs 2) milk", "1. eggs 2) milk"),
        ("<speak>Hi <break time='1s'/> there</speak>", "Hi there"),
        ("<voice emotion='happy'>Hi</voice>", "Hi"),
        ("I like C and .NET", "I like C and .NET"),
        ("snake_case stays", "snake_case stays"),
        ("It was 20° and © Ada", "It was 20° and © Ada"),
        ("The key is " + 12 * "aB3/xY7+" + " for you.", "The key is for you."),
        ("It is data:image/png;base64," + 12 * "aB3/xY7+" + " there.", "It is there."),
        ("No" + 120 * "o" + "!!!", "No" + 120 * "o" + "!!!"),
        (40 * "1,2," + "3", 40 * "1,2," + "3"),
    ],
)
def test_markup_is_left_out_and_words_are_kept(written: str, said: str) -> None:
    """Directives, markdown, links, pictures, code and tables are not spoken, and the words are kept."""
    assert strip_markup(written) == said


def spoken(reply: str, **pronunciations: str) -> list[SpeakableText]:
    """Return what is spoken of a whole reply that is split as the brain splits it."""
    splitter, normalizer = SentenceSplitter(), TextNormalizer(pronunciations)
    pieces = [*splitter.feed(reply), *splitter.flush()]
    return [said for piece in pieces if (said := normalizer.normalize(piece)) is not None]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        pytest.param(
            "Here you go.\n```python\nprint('Hello. World.')\n# done. really.\n```\nThat prints it. ```x``` Ready.",
            ["Here you go.", "That prints it.", "Ready."],
            id="a block of code, also if it contains sentences",
        ),
        pytest.param("~~~\n```\ncode\n~~~\nWords.", ["Words."], id="a block of tildes ends with tildes alone"),
        pytest.param(
            "Of all houses in the street at the harbour, *the old* Dutch one is mine. *looks there* I was there.",
            ["Of all houses in the street at the harbour,", "the old Dutch one is mine.", "I was there."],
            id="emphasis after the first clause, which is a piece of its own, is not at the beginning",
        ),
        pytest.param(
            "<think>They want the time. I should look.\nYes.</think>It is nine. <thinking>Good.</thinking> Bye.",
            ["It is nine.", "Bye."],
            id="some models think aloud between tags",
        ),
        pytest.param(
            f"""<tool_call>{{"data":"{200 * "a3/"}"}}</tool_call> Yes, I see.""",
            ["Yes, I see."],
            id="the end of a hidden passage in the piece in which a long run ends",
        ),
        pytest.param(
            "The ages:\n| Ada | 5 |\n|---|:-:|\n| Bo. | 6 |\nThat is all.",
            ["The ages:", "That is all."],
            id="the rows and rules of a table",
        ),
    ],
)
def test_what_is_left_out_of_many_pieces(reply: str, said: list[str]) -> None:
    assert [piece.text for piece in spoken(reply)] == said


@pytest.mark.parametrize("signs", range(241, 900, 30))
def test_a_link_longer_than_a_piece_is_left_out_to_its_end(signs: int) -> None:
    """Nothing of a long link is spoken, however many pieces it takes, and the words around it are spoken."""
    data = ("q3%2Fz" * signs)[:signs]
    for link in (f"https://example.org/?v={data}", f"[the map](https://example.org/?v={data})"):
        words = " ".join(said.text for said in spoken(f"Look here: {link} for more. Then go."))
        assert "q3" not in words
        assert words.startswith("Look here:")
        assert words.endswith("for more. Then go.")


def test_the_written_word_is_kept_beside_the_said_one() -> None:
    """The written text is kept for the room's memory, and the voice gets the text as it is pronounced."""
    (said,) = spoken("Xiomara owes 5% to xiomara, not to Xiomaras.", Xiomara="see oh mara")
    assert said.text == "Xiomara owes 5% to xiomara, not to Xiomaras."
    assert said.aloud == "see oh mara owes 5 percent to see oh mara, not to Xiomaras."


def test_pronunciations_may_have_signs_and_the_longest_wins() -> None:
    """A pronunciation may contain symbols, and the longest one wins: 'C++' and 'C' are different words."""
    normalizer = TextNormalizer({"C++": "see plus plus", "C": "see", "": "nothing"})
    said = normalizer.normalize("C++ is not C.")
    assert said is not None
    assert said.aloud == "see plus plus is not see."


def test_a_german_voice_gets_german_words() -> None:
    """The words that stand for signs and links are those of the language in which the reply is read."""
    said = TextNormalizer(language="de").normalize("Nimm https://a.b/c um 9:30, es kostet 5 €.")
    assert said is not None
    assert said.text == "Nimm der Link um 9:30, es kostet 5 €."
    assert said.aloud == "Nimm der Link um 9 Uhr 30, es kostet 5 Euro."


MARKUP = st.lists(
    st.sampled_from(
        ["Bo", " ", ". ", "\n", "**", "*", "_", "`", "```", "~~", "|", "[", "]", "(", ")", "<think>", "</think>", "🙂",
         "https://a.b/c", "#", "> ", "- ", "1) ", ":smile:", "[SKIP]", "<@1>", "5%", "ß", "日本", "<", ">", "!",
         "laughs"]
    ),
    max_size=40,
).map("".join)  # fmt: skip


@pytest.mark.slow
@given(st.one_of(MARKUP, st.text(max_size=120)))
@example("Somebody forgets aspacehttps://a.b/c here.")
@example("Whatevertheyforgethttps://a.b/c")
def test_nothing_unspeakable_is_ever_said(reply: str) -> None:
    """Whatever a model writes, the voice gets only words: no markup, address, tag or picture."""
    for said in spoken(reply):
        assert not re.search(r"https?:|www\.|[*_`~|<>{}\[\]#=\\]", said.aloud)
        assert not re.search("[\U0001f300-\U0001faff\u2600-\u27bf\ufe0f]", said.aloud)
        assert any(letter.isalnum() for letter in said.text)
        assert said.text == " ".join(said.text.split())


@given(st.text(alphabet="abc ,.'ÄéБ日", max_size=80))
def test_plain_words_pass_unchanged(words: str) -> None:
    """Text without markup loses nothing but doubled spaces."""
    kept = strip_markup(words)
    assert kept.replace(" ", "") in ("", words.replace(" ", ""))


def test_a_reply_that_begins_with_the_speakers_name_begins_behind_it() -> None:
    """The bot's own name is removed from the start of a reply. Small models copy the names that they see before each
    turn.
    """
    normalizer = TextNormalizer(own_names=("Roomtone", "Room Tone"))
    for written in ("Roomtone: Hello Ada.", "**room tone:** Hello Ada.", "Roomtone (bot): Hello Ada."):
        said = normalizer.normalize(written)
        assert said is not None
        assert said.text == "Hello Ada."
    kept = normalizer.normalize("Roomtone is here: hello.")
    assert kept is not None
    assert kept.text == "Roomtone is here: hello."
