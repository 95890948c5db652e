"""Which parts of a reply are read aloud, and how."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from voice.speaking.hidden_passages import HiddenPassages
from voice.speaking.moderation import WordList
from voice.speaking.sentences import SentenceSplitter
from voice.speaking.text_normalizer import SpeakableText, TextNormalizer, expand_symbols, strip_markup


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
@settings(max_examples=60)
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


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("It is 5% more.", "It is 5 percent more."),
        ("About $1,200,000 in all", "About 1200000 dollars in all"),
        ("$1 or €2.50", "1 dollar or 2.50 euros"),
        ("3 € each, $2.5M in sum", "3 euros each, 2.5 million dollars in sum"),
        ("20°C or 68 °F, turn 90°", "20 degrees Celsius or 68 degrees Fahrenheit, turn 90 degrees"),
        ("At 21:04, not 9:30 pm", "At 21:04, not 9:30 pm"),
        ("On 2026-05-01.", "On 2026-05-01."),
        ("5-10 people, 7–3 at the end", "5 to 10 people, 7 to 3 at the end"),
        ("Call 555-123", "Call 555 123"),
        ("It is -5 outside, a so-so day", "It is minus 5 outside, a so-so day"),
        ("3 + 4 = 7", "3 plus 4 equals 7"),
        ("2 * 3, x < y", "2 times 3, x less than y"),
        ("3*4=12, x <= 7, 9>=8, 1 != 2", "3 times 4 equals 12, x at most 7, 9 at least 8, 1 is not 2"),
        ("x<=7, a!=b", "x at most 7, a is not b"),
        ("Tom & Ada, R&D", "Tom and Ada, R and D"),
        ("rated 8/10, half is 1/2, open 24/7", "rated 8 out of 10, half is one half, open 24 7"),
        ("he/she", "he or she"),
        ("#1 of them", "number 1 of them"),
        ("~5 of them, ≥3", "about 5 of them, at least 3"),
        ("120 km/h, 5 km, 16GB", "120 kilometres an hour, 5 kilometres, 16 gigabytes"),
        ("1 km, 1 km/h, 1kHz, 1°C", "1 kilometre, 1 kilometre an hour, 1 kilohertz, 1 degree Celsius"),
        ("1.1 km, 21 km, 1 MB/s", "1.1 kilometres, 21 kilometres, 1 megabyte per second"),
        ("20° C, 5 m/s", "20 degrees Celsius, 5 metres per second"),
        ("20°Celsius, 38°N, 9°30'", "20 degrees Celsius, 38 degrees N, 9 degrees 30'"),
        ("Write to ada@example.org", "Write to ada at example dot org"),
        ("Fruit, e.g. apples etc. vs. bread", "Fruit, for example apples et cetera versus bread"),
        ("We have two TVs. Take both CVs.", "We have two TVs. Take both CVs."),
        ("Don't — it's Ada's, “really”!", "Don't — it's Ada's, “really”!"),
        ("left → right", "left to right"),
        ("and/or, w/ friends and w/ #2, w/o me", "and or, with friends and with number 2, without me"),
        ("See /etc/passwd and ~/notes/today", "See etc passwd and notes today"),
        ("C#, F# and C++ beside .NET", "C sharp, F sharp and C plus plus beside .NET"),
        ("$20/month, $1/day, 3 €/kg", "20 dollars per month, 1 dollar per day, 3 euros per kilogram"),
        ("100 MB/s, $2.5M/yr, red/blue", "100 megabytes per second, 2.5 million dollars per year, red or blue"),
        ("Open 8:00-10:00", "Open 8:00 to 10:00"),
        ("9:30 am – 5:00 pm", "9:30 am to 5:00 pm"),
        ("8:30-10, 3:1", "8:30 to 10, 3:1"),
        ("1 €, 1,200-1,500, the top 1%'s", "1 euro, 1200 to 1500, the top 1 percent's"),
        ("x^2 + y^3 = z^n", "x squared plus y cubed equals z to the power of n"),
    ],
)
def test_signs_become_words(written: str, said: str) -> None:
    """Symbols are replaced by the words that a person would read aloud."""
    assert expand_symbols(written) == said


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("Es sind 5% oder 3,5 % mehr.", "Es sind 5 Prozent oder 3,5 Prozent mehr."),
        ("Um 21:04 Uhr, nicht um 9:00 oder 8.30 Uhr.", "Um 21 Uhr 4, nicht um 9 Uhr oder 8 Uhr 30."),
        ("20 °C, 68°F, eine Drehung um 90°", "20 Grad Celsius, 68 Grad Fahrenheit, eine Drehung um 90 Grad"),
        ("12.000 € oder €5, 3,50 €, 2,5 Mio. €", "12000 Euro oder 5 Euro, 3 Euro 50, 2,5 Millionen Euro"),
        ("9,00 € und $20", "9 Euro und 20 Dollar"),
        ("Am 3. Mai, am 03.10.2026 und 2026-05-01.", "Am dritten Mai, am dritten Oktober 2026 und ersten Mai 2026."),
        (
            "Im 20. Jahrhundert, in der 3. Liga, der 21. Mai",
            "Im zwanzigsten Jahrhundert, in der dritten Liga, der einundzwanzigste Mai",
        ),
        ("Freitag, 10. Oktober. 1. Mai. Es waren 3. Gut.", "Freitag, zehnter Oktober. erster Mai. Es waren 3. Gut."),
        (
            "Nummer 3. Ab der 7. Runde, bis zum 99. Ende, am 0. Tag",
            "Nummer 3. Ab der siebten Runde, bis zum neunundneunzigsten Ende, am nullten Tag",
        ),
        ("Die Antwort ist 4 oder 5. Genau weiß ich es nicht.", "Die Antwort ist 4 oder 5. Genau weiß ich es nicht."),
        ("Von 1 bis 10. Was meinst du? Seit 3. Versuch es.", "Von 1 bis 10. Was meinst du? Seit 3. Versuch es."),
        ("Er hat eine 2. Das ist gut. Nimm die 3. Du auch.", "Er hat eine 2. Das ist gut. Nimm die 3. Du auch."),
        ("Vom 3. bis 5. Mai, ab 1. Juni", "Vom dritten bis fünften Mai, ab ersten Juni"),
        ("Die 1. und 2. Liga, eine 2. Runde", "Die erste und zweite Liga, eine zweite Runde"),
        ("Anfang der 3. Woche, jede 2. Stunde", "Anfang der dritten Woche, jede zweite Stunde"),
        ("Ihr 5. Kind und sein 2. Versuch", "Ihr fünftes Kind und sein zweiter Versuch"),
        ("Ihr 5. Ypsilon, gab der 3. Ypsilon", "Ihr 5. Ypsilon, gab der 3. Ypsilon"),
        (
            "Am 3.5. kommt er, am 3. 5. sie, Kapitel 3.5. Ja",
            "Am dritten Mai kommt er, am dritten Mai sie, Kapitel 3.5. Ja",
        ),
        ("Während der 2. Mann sprach, mein 1. Auto", "Während der zweite Mann sprach, mein erstes Auto"),
        ("Das ist der 3. Gast, in jeder 2. Folge", "Das ist der dritte Gast, in jeder zweiten Folge"),
        ("Version 3.12 von 192.168.0.1", "Version 3.12 von 192.168.0.1"),
        ("5-10 Leute, 7–3, ein 3:1 und 555-123", "5 bis 10 Leute, 7 bis 3, ein 3 zu 1 und 555 123"),
        ("8/10, halb ist 1/2, offen 24/7", "8 von 10, halb ist ein halb, offen 24 7"),
        ("3 + 4 = 7, x^2 & y", "3 plus 4 gleich 7, x hoch 2 und y"),
        ("3*4=12, x <= 7, 9>=8, 1 != 2", "3 mal 4 gleich 12, x höchstens 7, 9 mindestens 8, 1 ungleich 2"),
        ("x<=7, a!=b", "x höchstens 7, a ungleich b"),
        ("120 km/h, 5 km, 16GB", "120 Kilometer pro Stunde, 5 Kilometer, 16 Gigabyte"),
        ("Z. B. Äpfel usw. bzw. ca. 5", "zum Beispiel Äpfel und so weiter beziehungsweise circa 5"),
        ("und/oder, er/sie, #1, ~5, -5, § 3", "und oder, er oder sie, Nummer 1, etwa 5, minus 5, Paragraf 3"),
        ("An ada@example.org", "An ada ät example Punkt org"),
        ("20 €/Monat, 3,50 €/kg, $5/Tag", "20 Euro pro Monat, 3 Euro 50 pro Kilogramm, 5 Dollar pro Tag"),
        ("100 MB/s, 5 m/s, 2 Mio. €/Jahr", "100 Megabyte pro Sekunde, 5 Meter pro Sekunde, 2 Millionen Euro pro Jahr"),
        ("5 GB/h, Euro/Dollar", "5 Gigabyte pro Stunde, Euro oder Dollar"),
        ("8:00-10:00 Uhr, 9:00 - 17:00 Uhr", "8 Uhr bis 10 Uhr, 9 Uhr bis 17 Uhr"),
        ("8.00–10.30 Uhr, 8:30 Uhr-10 Uhr", "8 Uhr bis 10 Uhr 30, 8 Uhr 30 bis 10 Uhr"),
        ("1 km, 1 ms, 20° C, 2 MB/ms", "1 Kilometer, 1 Millisekunde, 20 Grad Celsius, 2 Megabyte pro Millisekunde"),
        ("C# und C++", "C sharp und C plus plus"),
        ("1.200-1.500, 1.200,50 €, eine 50%ige", "1200 bis 1500, 1200 Euro 50, eine 50 Prozentige"),
        ("Gilt nach §§ 3 und 4", "Gilt nach Paragraf 3 und 4"),
    ],
)
def test_signs_become_german_words(written: str, said: str) -> None:
    """What a German voice reads has German words, a comma in decimals and dots between thousands."""
    assert expand_symbols(written, "de") == said


@given(st.text(max_size=200), st.sampled_from(["", "de"]))
def test_no_sign_is_left(text: str, language: str) -> None:
    """The result never contains a symbol that a voice would spell, or doubled spaces."""
    said = expand_symbols(text, language)
    assert not set(said) & set("*_`~|<>{}[]^\\#=+@/&%$€£¥°\n\t")
    assert said == " ".join(said.split())


def visible(reply: str) -> str:
    """Return the visible part of a whole reply that is split as the brain splits it."""
    splitter, hidden = SentenceSplitter(), HiddenPassages()
    return " ".join(" ".join(hidden.visible(piece) for piece in [*splitter.feed(reply), *splitter.flush()]).split())


@pytest.mark.parametrize(
    ("reply", "left"),
    [
        ('<tool>search("boats")</tool> I found it.', "I found it."),
        ('One moment. <tool_call>\n{"name": "search", "arguments": {"words": "boat, or ship"}}\n</tool_call> Yes.',
         "One moment. Yes."),
        ('<function=search>{"q": 1}</function> Here.', "Here."),
        ('<function_calls><invoke name="x"><parameter name="q">a. b. c</parameter></invoke></function_calls>Done.',
         "Done."),
        ('<tool name="x"/> Next.', "Next."),
        ("<think>One. Two.\n\nThree.</think>\n\nIt is four.", "It is four."),
        ("◁think▷hidden words◁/think▷It is four.", "It is four."),
        ("<thinking>a ``` b</thinking>It ```x``` is.", "It is."),
        ('{"tool": "memory_search", "words": "a boat, or perhaps a ship that somebody bought"} I look.', "I look."),
        ('[{"name": "search", "parameters": {"q": ["a", "b"]}}]', ""),
        ("Thought: they want the time\nAction: clock\nAction Input: now\nIt is nine.", "It is nine."),
        ("A set like {a, b} and [c] stays.", "A set like {a, b} and [c] stays."),
        ("I think that a tool may help.", "I think that a tool may help."),
        ("5 < 6 and 7 > 3", "5 < 6 and 7 > 3"),
        ("</think>It is nine.", "It is nine."),
    ],
)  # fmt: skip
def test_what_is_for_no_ears_is_left_out(reply: str, left: str) -> None:
    assert visible(reply) == left


def test_what_is_never_closed_hides_the_rest() -> None:
    """A passage that is never closed hides the rest, because a model that was cut off in a call said
    nothing after it.
    """
    assert visible("Wait. <tool_call> a. b. c") == "Wait."


@given(st.text(alphabet='ab .<>/`{}[]":kinth', max_size=200))
def test_nothing_is_made_up(reply: str) -> None:
    """The visible text contains only characters of the reply, in their order."""
    rest = iter("".join(reply.split()))
    assert all(letter in rest for letter in visible(reply).replace(" ", ""))


@pytest.mark.parametrize(
    ("words", "text", "forbidden"),
    [
        (("rude",), "How Rude!", True),
        (("rude",), "A rudeness", False),
        (("rude*",), "A rudeness", True),
        (("two words",), "These two words.", True),
        (("a.b",), "axb", False),
        ((), "anything", False),
        (("", "*", " "), "anything", False),
    ],
)
def test_whole_words_are_forbidden(words: tuple[str, ...], text: str, forbidden: bool) -> None:
    """Whole words match in any case. A star stands for letters, and an empty entry matches nothing."""
    assert WordList(words).forbids(text) is forbidden
