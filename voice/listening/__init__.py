"""Finds where people's speech begins and ends. Start at `listener.RoomListener`, which has a `speaker` for each person.

`vad` finds speech in sound. `endpointing` is the state machine of begin, pause and end; it asks `end_policy` how much
silence ends an utterance, for which `turn_detection` estimates whether the person has finished. `coalesce`
groups utterances of people who speak at the same time. `utterance` has the events of all this.
"""
