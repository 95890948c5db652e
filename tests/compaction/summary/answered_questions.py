"""Talks that begin with a question. Written from the requirement alone, before the code that judges them; half apart.

A question is answered if somebody else says what was asked for, or that it is not so. It stays open if what follows
only speaks of the same thing, asks, supposes or reports, or is said by whoever asked.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QuestionCase:
    """One talk. `said`: `Name: …`, the question first. `answered`: whether it is. `apart`: nothing is tuned on it."""

    said: tuple[str, ...]
    answered: bool
    apart: bool = False


def _open(*said: str, apart: bool = False) -> QuestionCase:
    return QuestionCase(said, answered=False, apart=apart)


def _answered(*said: str, apart: bool = False) -> QuestionCase:
    return QuestionCase(said, answered=True, apart=apart)


QUESTIONS = (
    _open("Ada: Who brings the tent on Friday?", "Bob: The tent is green and far too heavy."),
    _open("Ada: When does the concert start?", "Bob: The concert hall is next to the station."),
    _open("Ada: Where do we meet on Saturday?", "Bob: My sister turns thirty on Saturday."),
    _open("Ada: Who drives to the lake?", "Bob: I don't know who drives to the lake."),
    _open("Ada: Does the ferry leave from Oban?", "Bob: The ferry to Mull was late again."),
    _open("Ada: Who pays for the cabin?", "Bob: The cabin has two stoves."),
    _open("Ada: Who plays the druid tonight?", "Ada: Without a healer I don't play the druid tonight."),
    _open("Ada: Wer bringt das Zelt mit?", "Bob: Das Zelt ist viel zu schwer."),
    _open("Ada: Which hotel did you book in Porto?", "Bob: If we book a hotel in Porto, my sister comes too."),
    _open("Ada: Who brings the tent on Friday?", "Bob: Yeah, I don't know yet."),
    _answered("Ada: Who brings the tent on Friday?", "Bob: I'll bring the tent on Friday."),
    _answered("Ada: When does the concert start?", "Bob: The concert starts at half past seven."),
    _answered("Ada: Where do we meet on Saturday?", "Bob: We meet at the north gate on Saturday."),
    _answered("Ada: Does the ferry leave from Oban?", "Bob: The ferry doesn't leave from Oban."),
    _answered("Ada: Who pays for the cabin?", "Bob: Cy pays for the cabin."),
    _answered("Ada: How much is the deposit?", "Bob: The deposit is 200 euros."),
    _answered("Ada: Wer bringt das Zelt mit?", "Bob: Ich bringe das Zelt mit."),
    _answered("Ada: What's the code of the shed?", "Bob: It's 4417."),
    _answered("Ada: Who plays the druid tonight?", "Cy: Haha.", "Bob: I play the druid tonight."),
    _open("Mara: Who feeds the cat in August?", "Jon: The cat hates the new food.", apart=True),
    _open("Mara: How long is the drive to Lyon?", "Jon: Lyon has the best bakery.", apart=True),
    _open("Mara: Can somebody lend me a drill?", "Jon: The drill at work is broken.", apart=True),
    _open("Mara: When is the exam in statistics?", "Jon: The statistics book costs ninety euros.", apart=True),
    _open("Mara: Where did you park the van?", "Jon: The van needs new tyres.", apart=True),
    _open("Mara: Who has the key to the cellar?", "Jon: Dora asked who has the key to the cellar.", apart=True),
    _open(
        "Mara: Did the landlord repair the heating?",
        "Jon: I'm not sure whether the landlord repaired the heating.",
        apart=True,
    ),
    _open("Mara: Wann beginnt die Probe am Montag?", "Jon: Am Montag habe ich Geburtstag.", apart=True),
    _open(
        "Mara: Do we invite the neighbours to the party?",
        "Mara: The neighbours were loud at the last party.",
        apart=True,
    ),
    _answered("Mara: Who feeds the cat in August?", "Jon: My brother feeds the cat in August.", apart=True),
    _answered("Mara: How long is the drive to Lyon?", "Dora: Oh no.", "Jon: The drive is six hours.", apart=True),
    _answered("Mara: Can somebody lend me a drill?", "Jon: I can lend you a drill.", apart=True),
    _answered("Mara: When is the exam in statistics?", "Jon: The statistics exam is on the ninth of June.", apart=True),
    _answered("Mara: Where did you park the van?", "Jon: I parked the van behind the church.", apart=True),
    _answered("Mara: Who has the key to the cellar?", "Jon: I have the key to the cellar.", apart=True),
    _answered(
        "Mara: Did the landlord repair the heating?", "Jon: The landlord repaired the heating on Monday.", apart=True
    ),
    _answered("Mara: Wann beginnt die Probe am Montag?", "Jon: Die Probe am Montag beginnt um acht.", apart=True),
    _answered(
        "Mara: Do we invite the neighbours to the party?",
        "Jon: We don't invite the neighbours to the party.",
        apart=True,
    ),
    _answered("Mara: Where is the projector?", "Jon: In the cupboard beside the door.", apart=True),
)
