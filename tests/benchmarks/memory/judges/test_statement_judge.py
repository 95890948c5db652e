"""The judge of labelled facts against pairs that were judged by hand, before it judged any system."""

from __future__ import annotations

import pytest

from benchmarks.memory.judges.fact_judge import Attribution
from benchmarks.memory.judges.statement_judge import StatementJudge

JUDGE = StatementJudge({"Tuva", "Sami", "Mara", "Jonas", "Wanda", "Ines", "Bas", "Kofi"})

ON_CALL = "Tuva can't come on the 23rd of October because she is on call"
NUTS = "Tuva is allergic to all nuts and keeps her adrenaline pen in the front pocket of her rucksack"
CABIN = "The cabin costs 360 euros for two nights, 100 of it in advance"
CHILI = "Sami cooks chili on Friday, not lentils"
OWES = "Sami owes Mara 67 euros altogether"
KEY = "The cabin key is in the shed under the blue bucket; the green one has wasps"
CATS = "Sami is allergic to cats, not to dogs"
CHOIR = "Next meeting is on Wednesday at nine because Mara has choir until half past eight"
COELIAC = "Ines has coeliac disease and eats no gluten"
KNEE = "Kofi's meniscus is operated on the 3rd of April in Leuven"
NEXT = "The next evening is Friday the 27th, not the 26th"
CLUTCH = "Jonas's clutch repair costs six or seven hundred euros"
GATE = "The salt gate bears the words 'Three sing, one counts, none sleeps'"

GHENT = "Wanda is in Ghent for a course the whole of March, so there is a break after two more evenings"
MINERS = "They found nine of the eleven miners in a side tunnel, singing in turns"
PIXEL = "Tuva's dog Pixel is nearly fourteen and cannot see well"
MOVE = "Bas moves on the 12th of February"

# Text, fact, and whether a careful reader says that the text states the fact of the right person.
PAIRS = [
    ("Tuva is on call on the twenty-third and stays away.", ON_CALL, True),
    ("On October 23 Tuva is on call, so that weekend is out for her.", ON_CALL, True),
    ("Tuva: twenty-third's out for me, I'm on call that weekend.", ON_CALL, True),
    ("Tuva can come on the 23rd of October.", ON_CALL, False),
    ("Sami is on call on the 23rd of October.", ON_CALL, False),
    ("Tuva is on call on the ninth of October.", ON_CALL, False),
    ("Tuva has a nut allergy (all nuts); her adrenaline pen is in the front pocket of her rucksack.", NUTS, True),
    ("Tuva cannot eat nuts, and her adrenaline pen is in her rucksack's front pocket.", NUTS, True),
    ("Tuva is allergic to nuts.", NUTS, False),
    ("Jonas is allergic to all nuts and keeps his adrenaline pen in the front pocket of his rucksack.", NUTS, False),
    ("They rent it for 360 euros for two nights, with 100 up front for the cabin.", CABIN, True),
    ("The cabin is three hundred and sixty euros for both nights, a hundred in advance.", CABIN, True),
    ("The cabin costs 330 euros for two nights, 100 of it in advance.", CABIN, False),
    ("They booked a cabin for two nights.", CABIN, False),
    ("On Friday Sami makes chili instead of lentils.", CHILI, True),
    ("Sami's Friday dinner is chili.", CHILI, True),
    ("Sami cooks lentils on Friday.", CHILI, False),
    ("Sami cooks chili on Saturday.", CHILI, False),
    ("Jonas cooks chili on Friday, Sami washes up.", CHILI, False),
    ("Sami owes Mara 67 euros for the concert and the cabin.", OWES, True),
    ("Sami will send Mara the sixty-seven euros he owes her.", OWES, True),
    ("Sami owes Mara 42 euros.", OWES, False),
    ("Jonas owes Mara 67 euros.", OWES, False),
    ("The key hangs in the shed, under the blue bucket, not the green one with the wasps.", KEY, True),
    ("The cabin's key is under the blue bucket in the shed.", KEY, True),
    ("Sami is allergic to cats.", CATS, True),
    ("Sami is not allergic to cats.", CATS, False),
    ("Sami is allergic to dogs, not cats.", CATS, False),
    ("They meet next on Wednesday at nine, after Mara's choir.", CHOIR, True),
    ("The next meeting is Wednesday at 9.", CHOIR, True),
    ("The next meeting is Thursday at nine because of Mara's choir.", CHOIR, False),
    ("Ines is coeliac and must not eat gluten.", COELIAC, True),
    ("Ines has coeliac disease. She is looking for a job.", COELIAC, True),
    ("Wanda cooks rice. Ines likes rice.", COELIAC, False),
    ("Kofi's knee is bad. His meniscus operation is on 3 April in Leuven.", KNEE, True),
    ("Kofi has his meniscus operated on the third of April in Leuven.", KNEE, True),
    ("Bas has his meniscus operated on the 3rd of April in Leuven.", KNEE, False),
    ("Kofi goes to Leuven in April.", KNEE, False),
    ("They meet for the next evening on Friday the 27th.", NEXT, True),
    ("The next evening is on the 26th.", NEXT, False),
    ("Jonas expects to pay 600 or 700 euros for the clutch.", CLUTCH, True),
    ("The clutch repair will cost Jonas six or seven hundred euros.", CLUTCH, True),
    ("Jonas's car has a broken clutch.", CLUTCH, False),
    ("On the salt gate stands: Three sing, one counts, none sleeps.", GATE, True),
    ("They stand before the salt gate.", GATE, False),
    ("Bas and Kofi are busy on 12 February: Bas moves, Kofi is at a christening.", MOVE, True),
    ("Kofi brings cider and Ines comes at noon.", "Kofi brings cider", True),
    ("Kofi is late; Ines brings cider.", "Kofi brings cider", False),
    ("Jonas brings the train game and Mara the cards.", "Jonas brings the train game and Mara the cards", True),
    ("Mara brings the train game and Jonas the cards.", "Jonas brings the train game and Mara the cards", False),
    ("Tuva's old dog Pixel, nearly 14 and half blind, comes along.", PIXEL, True),
    ("Tuva has a dog.", PIXEL, False),
    ("The lobby code is D-R-F-99.", "The lobby code is DRF99", True),
    ("Tuva's cake has to be nut-free.", "Tuva's surprise cake must be without nuts", True),
    ("Tuva wants nuts in the surprise cake.", "Tuva's surprise cake must be without nuts", False),
    ("Wanda is away in Ghent all March for a course.", GHENT, True),
    ("Ines is in Ghent for a course in March.", GHENT, False),
    ("Of the eleven missing miners nine were found singing in a side tunnel.", MINERS, True),
    ("Eleven miners are missing.", MINERS, False),
]  # fmt: skip


# Judged after the judge was finished, and not used to change it.
APART = [
    ("The mayor, Ottilie Brandt, pays 300 crowns for finding out why the Harrowmere miners vanish.",
     "The mayor Ottilie Brandt of Harrowmere hired the group for 300 crowns to find out why miners don't return", True),
    ("Somebody cut the mine's lift rope from above.", "The lift rope in the mine was cut from above", True),
    ("The lift rope tore.", "The lift rope in the mine was cut from above", False),
    ("In March, Ines will be game master.", "Ines runs the game in March", True),
    ("Wanda runs the game in March.", "Ines runs the game in March", False),
    ("Bas is playing Mortimer, Ines Sister Calla and Kofi Dunmore.", "Ines plays Sister Calla", True),
    ("Bas is playing Mortimer, Ines Sister Calla and Kofi Dunmore.", "Kofi plays Dunmore", True),
    ("Bas is playing Dunmore, Kofi Mortimer.", "Kofi plays Dunmore", False),
    ("Green wax on the severed rope is that of the mayor's seal.",
     "The green wax on the cut rope matches the seal on the mayor's letter", True),
    ("Pell, the clerk, has hiccups.", "The mayor's clerk is called Jasper Pell and has hiccups", True),
    ("Wanda has a van licence and helps Bas move.", "Wanda helps Bas to move and may drive a van", True),
    ("Ines joins the move at noon.", "Ines comes at noon on moving day", True),
    ("Greta Voss and her son Tam have not been found.",
     "The two miners still missing are Greta Voss and her son Tam", True),
    ("Kofi's mother has the twins while he is in hospital.", "Kofi's mother looks after his twins then", True),
    ("Ines takes the twins one Sunday.", "Ines takes the twins on a Sunday", True),
    ("Kofi takes the twins on a Sunday.", "Ines takes the twins on a Sunday", False),
    ("Monster books are 31 each.", "The books cost 31 each", True),
    ("Ines is secretly job-hunting.", "Ines is looking for another job and wants it kept quiet", True),
    ("Ines has found a job and tells everybody.", "Ines is looking for another job and wants it kept quiet", False),
    ("Mortimer can cast Instant Choir: three voices, one hour.",
     "Mortimer knows the spell Instant Choir, three voices for one hour", True),
    ("Dunmore remained at the gate to count.", "Dunmore stays at the gate and counts", True),
    ("Dunmore's wife Odile deals in eels.", "Odile sells eels", True),
    ("All eleven miners were rescued.", "The group saved all eleven miners", True),
    ("Nine of eleven miners were rescued.", "The group saved all eleven miners", False),
    ("Each gets 400 XP, Mortimer 450.", "Everybody gets 400 experience points, and Mortimer 50 more", False),
    ("They are now level 5.", "The characters are level five now", True),
    ("Bring cushions, because Bas's flat has no chairs.", "They bring cushions because Bas has no chairs", True),
    ("Wanda will cook the rice dish so that Ines can eat.", "Wanda makes the rice dish for Ines", True),
]  # fmt: skip
# Where the judge is wrong, with what it says: too strict once, too lenient once.
MISJUDGED = [
    ("Sami has a cat allergy, but dogs are fine.", CATS, False),
    ("The cabin key is under the green bucket in the shed.", KEY, True),
]


@pytest.mark.parametrize(("text", "fact", "stated"), [*PAIRS, *MISJUDGED])
def test_judge_agrees_with_a_reader(text: str, fact: str, *, stated: bool) -> None:
    """Paraphrases count; another value, person or sign does not, nor does half of the fact."""
    assert JUDGE.verdict(text, fact).stated is stated


@pytest.mark.parametrize(
    ("text", "person"),
    [
        (
            "Jonas keeps an adrenaline pen in the front pocket of his rucksack and is allergic to all nuts.",
            Attribution.WRONG,
        ),
        ("Somebody is allergic to all nuts and keeps an adrenaline pen in the front pocket.", Attribution.UNSAID),
        ("Nothing of that.", None),
    ],
)
def test_wrong_person_is_told_from_nobody(text: str, person: Attribution | None) -> None:
    """What is said of somebody else is an error, what is said of nobody only a loss."""
    assert JUDGE.verdict(text, NUTS).person is person


def test_judge_agrees_on_pairs_that_it_was_not_made_with() -> None:
    """Of 28 it misses three, and accepts none that it should not."""
    wrong = [(text, fact) for text, fact, stated in APART if JUDGE.verdict(text, fact).stated is not stated]
    lenient = [(text, fact) for text, fact in wrong if JUDGE.verdict(text, fact).stated]
    assert (len(wrong), len(lenient)) == (3, 0)
