"""Talks in which somebody says nearly the same twice. Written from the requirements alone, before the code; half apart.

One of two statements of a person goes only if the other says all of it. What differs in a person, a name, a number, the
sign, a question or a condition stays: both are facts.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AlikeCase:
    """One batch. `said`: by Ada, or `Name: …`. `stays`: the places of statements that must be kept; `goes`: of those
    that another one says wholly. The others may stay or go. `apart`: nothing is tuned on it.
    """

    said: tuple[str, ...]
    stays: frozenset[int]
    goes: frozenset[int] = frozenset()
    apart: bool = False


def _case(*said: str, stays: tuple[int, ...], goes: tuple[int, ...] = (), apart: bool = False) -> AlikeCase:
    return AlikeCase(said, frozenset(stays), frozenset(goes), apart)


CASES = (
    _case(
        "I'm allergic to nuts.",
        "I'm allergic to nuts, and my inhaler is in the blue bag.",
        stays=(1,),
        goes=(0,),
    ),
    _case(
        "I'm allergic to nuts and my inhaler is in the blue bag.",
        "I'm allergic to nuts.",
        stays=(0,),
        goes=(1,),
    ),
    _case(
        "The cabin is in Braemar.", "The cabin is in Braemar, behind the church by the river.", stays=(1,), goes=(0,)
    ),
    _case("I'm allergic to nuts.", "My brother is allergic to nuts, too, and afraid of dogs.", stays=(0, 1)),
    _case("Bob owes me twenty euros.", "Bob owes me twenty euros and Cy owes me thirty.", stays=(1,), goes=(0,)),
    _case("I can bring the tent.", "I can bring the tent if my brother lends me his car.", stays=(1,)),
    _case("Does the ferry leave from Oban?", "The ferry leaves from Oban at the old pier.", stays=(1,)),
    _case("The ferry leaves from Oban at the old pier.", "Does the ferry leave from Oban?", stays=(0,)),
    _case("Nico plays the druid.", "Vera plays the druid in the other group.", stays=(0, 1)),
    _case("I don't eat meat.", "I eat meat at my grandmother's on Sundays.", stays=(0, 1)),
    _case(
        "We meet at the station.",
        "We meet at the station, at the north entrance, beside the bakery.",
        stays=(1,),
        goes=(0,),
    ),
    _case(
        "Ich bin allergisch gegen Nüsse.",
        "Ich bin allergisch gegen Nüsse, und mein Inhalator liegt in der blauen Tasche.",
        stays=(1,),
        goes=(0,),
    ),
    _case(
        "My sister studies law.",
        "My sister studies law in Graz and moves to Vienna in March.",
        stays=(1,),
        goes=(0,),
    ),
    _case("I have a blue tent.", "I have a red tent with two rooms.", stays=(0, 1)),
    _case(
        "Ada: I'm allergic to nuts.",
        "Bob: I'm allergic to nuts, and my inhaler is in the blue bag.",
        stays=(0, 1),
    ),
    _case("You owe me ten euros.", "I owe you ten euros.", stays=(0, 1)),
    _case(
        "I work in the hospital in Leeds.",
        "I work in the hospital in Leeds on the children's ward since March.",
        stays=(1,),
        goes=(0,),
        apart=True,
    ),
    _case(
        "My locker has the code 4411.",
        "My locker has the code 4411 and stands beside the sauna.",
        stays=(1,),
        goes=(0,),
        apart=True,
    ),
    _case(
        "I can't come on Friday.",
        "I can't come on Friday because my daughter has her swimming exam.",
        stays=(1,),
        goes=(0,),
        apart=True,
    ),
    _case("My dog is called Bruno.", "My mother's dog is called Bruno and bites postmen.", stays=(0, 1), apart=True),
    _case(
        "The landlord fixes the heating.",
        "The landlord fixes the heating only after the holidays.",
        stays=(1,),
        apart=True,
    ),
    _case("Is the museum in Porto?", "The museum is in Porto, opposite the harbour.", stays=(1,), apart=True),
    _case(
        "I drive to Lisbon.", "I drive to Lisbon with Mara and Jon in the old van.", stays=(1,), goes=(0,), apart=True
    ),
    _case("Mara brings the salad.", "Jon brings the salad and the bread.", stays=(0, 1), apart=True),
    _case("I never drink coffee.", "I drink coffee in the office with my boss.", stays=(0, 1), apart=True),
    _case(
        "I know the password for the wifi.",
        "I know the password for the wifi and the key is under the mat.",
        stays=(1,),
        goes=(0,),
        apart=True,
    ),
    _case(
        "Mein Bruder wohnt in Graz.",
        "Mein Bruder wohnt in Graz und arbeitet im Krankenhaus.",
        stays=(1,),
        goes=(0,),
        apart=True,
    ),
    _case("Ada: I play the bard.", "Bob: I play the bard in the second group.", stays=(0, 1), apart=True),
    _case(
        "I broke my wrist.",
        "I broke my wrist in April.",
        "I broke my wrist in April when I fell from my horse.",
        stays=(2,),
        goes=(0, 1),
        apart=True,
    ),
    _case("We booked the cabin.", "We booked the cabin and cancelled the flights.", stays=(1,), goes=(0,), apart=True),
    _case("Mara gave me the key.", "I gave Mara the key.", stays=(0, 1), apart=True),
    _case("I take the night train.", "My daughter takes the night train with her class.", stays=(0, 1), apart=True),
)
