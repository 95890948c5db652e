"""The sources of a model's text: other forms of names and numbers that were said."""

from __future__ import annotations

import pytest

from compaction.summary.sources import sources_of, unfounded


def test_forms_of_names_count() -> None:
    """Plural and possessive, a form of the same name, and a name in another letter case have a source."""
    sources = sources_of(["We fly to Germany with the smiths."], ["MATT"])
    assert not unfounded("Matt and the Smiths like German trains, says Smith's friend.", sources)
    assert unfounded("The Duke of Zebulon pays.", sources) == {"duke", "zebulon"}


@pytest.mark.parametrize("spelled", ["N_T_S_C", "N-T-S-C", "N T S C"])
def test_a_word_that_was_spelled_out_has_a_source(spelled: str) -> None:
    """Transcripts write the letters of an abbreviation with spaces, hyphens or underscores between them."""
    assert not unfounded("It plays PAL and NTSC.", sources_of([f"It is PAL and {spelled} compatible."], ()))


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("It is for levels 1 to 7.", True),
        ("May gave it 7.5.", True),
        ("May gave it 7,5.", True),
        ("May gave it 4/10.", True),
        ("May gave it 8.5.", False),
        ("May gave it 4/12.", False),
    ],
)
def test_fractions_are_known_by_their_parts(text: str, *, known: bool) -> None:
    """'Seven and a half' may be written 7.5, and 'four out of ten' 4/10."""
    said = sources_of(["Seven. Seven and a half for the music.", "Four out of ten!", "from one to five"], ["May"])
    assert (not unfounded(text, said)) is known


@pytest.mark.parametrize("said", ["01:00:00:00", "1.5:00:00", "2/3:00:00", "00:00:00:00:00:00", "1:00:00"])
def test_a_figure_of_many_zeros_is_no_hour(said: str) -> None:
    """A time code or a hardware address is a value like any other, and is no reason to give up the summary."""
    sources = sources_of([f"It is at {said} there."], ["Ada"])
    assert not unfounded(f"Ada names {said}.", sources)
    assert unfounded("Ada comes at 9 pm.", sources) == {"9"}


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("All five of them pay 90.", True),
        ("The four of them pay 90.", True),
        ("Four of them pay 90 for room 140.", True),
        ("All six of them pay 90.", False),
        ("The 5 of them pay 90.", False),
        ("Five of them pay 50.", False),
    ],
)
def test_people_may_be_counted_in_words(text: str, *, known: bool) -> None:
    """Nobody needs to have said how many people there are, but a number in figures is a value."""
    said = sources_of(["Ninety each, in room 140."], ["Ada", "Bob", "Cy", "Dora", "Emil"])
    assert (not unfounded(text, said)) is known


@pytest.mark.parametrize(
    ("said", "text"),
    [
        # Letters beyond ASCII change nothing about the figures of a code.
        ("The lobby code is DRF99.", "Zoë says that DRF99 is the lobby code."),
        ("The lobby code is DRF99.", "It is DRF99, Ada’s lobby code."),
        # A full hour, as any other time, of the morning or the evening.
        ("Let's meet at seven in the evening.", "They meet at 19:00."),
        ("Treffen wir uns um sieben?", "Sie treffen sich um 19:00 Uhr."),
        # Minutes before or after the half.
        ("Wir treffen uns um fünf nach halb acht.", "Sie treffen sich um 7:35 Uhr."),
        ("Wir treffen uns um fünf vor halb acht.", "Sie treffen sich um 19:25 Uhr."),
        # Thousands with a full stop.
        ("Das kostet 2500 Euro.", "Es kostet 2.500 Euro."),
        ("Das kostet 2.500 Euro.", "Es kostet 2500 Euro."),
        ("It has 1,200,000 views.", "Es hat 1.200.000 Aufrufe."),
        # Read out figure by figure, or as a year.
        ("The code is seven, seven, four, one.", "The code is 7741."),
        ("Four four four four is the code.", "The code is 4444."),
        ("It was in nineteen eighty-four.", "It was in 1984."),
        ("We want fifty million in sales.", "They want 50 million in sales."),
        # In words, with a half, and as one word.
        ("Three thousand five hundred, and an hour and a half to get there.", "It costs 3,500, and is 1.5 hours away."),
        ("Zweihundertfünfzig Euro, und anderthalb Stunden.", "Es kostet 250 Euro und dauert 1,5 Stunden."),
        # An hour that was said as one.
        ("Let's eat at twelve.", "They eat at noon."),
        ("The shop closes at midnight.", "The shop closes at 24:00."),
        ("It starts at 18:00.", "It starts at 6 pm."),
        # Noon and midnight are twelve.
        ("The plumber comes at noon.", "The plumber comes at 12."),
        ("We eat at midday.", "They eat at 12 noon."),
        ("I'm here until 12.", "Ada is here until noon."),
        ("The shop closes at 12 am.", "The shop closes at midnight."),
        ("The shop closes at midnight.", "The shop closes at 12 midnight."),
        # A duration is no time of day, and a clock with seconds is.
        ("The film is 1:00:00 long.", "The film takes 1 hour."),
        ("The clock says 19:00:00.", "It is 7 pm."),
    ],
)
def test_a_number_written_in_another_way_has_a_source(said: str, text: str) -> None:
    """A number may be written in any way that people write it in."""
    assert unfounded(text, sources_of([said], ("Ada", "Zoë"))) == frozenset()


@pytest.mark.parametrize(
    ("said", "text", "value"),
    [
        ("The lobby code is DRF99.", "Zoë says that the lobby code is DRF98.", "drf98"),
        ("Let's meet at seven.", "They meet at 20:00.", "20"),
        ("We have 7 apples.", "They have 19 apples.", "19"),
        ("Wir treffen uns um halb acht.", "Sie treffen sich um 7:35 Uhr.", "7:35"),
        ("Das kostet 2500 Euro.", "Es kostet 2.600 Euro.", "2.600"),
        ("The code is seven, seven, four, one.", "The code is 7742.", "7742"),
        ("It was in nineteen eighty-four.", "It was in 1985.", "1985"),
        ("Seven for the music.", "May gave it 7.5.", "7.5"),
        ("Three thousand five hundred.", "It costs 3,600.", "3600"),
        ("We have twelve eggs.", "They eat at noon.", "12:00"),
        ("The shop closes at midnight.", "The shop closes at noon.", "12:00"),
        ("It starts at 18:00.", "There are 6 chairs.", "6"),
        ("The shop closes at 12 am.", "The shop closes at noon.", "12:00"),
        ("The shop closes at noon.", "The shop closes at 12 am.", "12"),
        ("The shop closes at noon.", "The shop has 12 clerks.", "12"),
        ("The film is 1:00:00 long.", "The film begins at 1 pm.", "1"),
        ("The film is 1:00:00 long.", "The film begins at 13:00.", "13"),
        ("It costs seven hundred.", "It begins at 7 pm.", "7"),
    ],
)
def test_another_number_has_no_source(said: str, text: str, value: str) -> None:
    """Other ways to write a number let no other number through."""
    assert unfounded(text, sources_of([said], ("Ada", "Zoë"))) == {value}
