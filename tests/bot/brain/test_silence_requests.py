"""Which texts ask the bot to be silent or to talk again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.brain.silence_requests import asks_for_silence, asks_to_talk


@pytest.mark.parametrize(
    "text",
    [
        "Shut up.", "shut up!", "Be quiet.", "be quiet please", "Please be quiet for a while.", "Stop.",
        "Stop talking!", "Oh, just shut up now.", "Could you be quiet for a moment?", "Quiet, please.", "Stop it.",
        "Hush.", "Shh.",
        "Would you please stop talking for a bit?", "Okay, stop.", "Please stay silent tonight.", "Mute yourself.",
        "Don’t talk.", "Stop, stop, stop!", "Be silent.",
    ],
)  # fmt: skip
def test_these_ask_for_silence(text: str) -> None:
    """These texts ask for silence, politely or not."""
    assert asks_for_silence(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "...", "When does the music stop?", "Stop at the next station.", "The quiet one, please.", "Who told you?",
        "We stop at noon.", "Please stop the music.", "Shut up the shop at nine.", "Be quiet about the party, Ben.",
        "Is it quiet there?", "Don't stop.", "Tell me about silence.", "Wait.", "Hold on.", "How do I mute the TV?",
        "Stop laughing at me.", "I said be quiet to the dog.", "Not now.", "No, not now, thanks.",
    ],
)  # fmt: skip
def test_these_do_not(text: str) -> None:
    """These texts are about something else, only ask the bot to wait, or say no to its question."""
    assert not asks_for_silence(text)


@pytest.mark.parametrize(
    ("text", "lifts"),
    [
        ("You can talk again.", True),
        ("You may speak now.", True),
        ("Please speak up again.", True),
        ("Unmute yourself.", True),
        ("Come back!", True),
        ("You talk too much.", False),
        ("Talk about the weather.", False),
        ("Can we talk later?", False),
        ("", False),
    ],
)
def test_it_may_be_told_to_talk_again(text: str, lifts: bool) -> None:
    """Only words that clearly mean it let the bot talk again."""
    assert asks_to_talk(text) is lifts


@pytest.mark.parametrize(
    ("hush", "speak", "neither"),
    [
        ("Sei bitte still!", "Du darfst wieder reden.", "Wann ist es hier still?"),
        ("Tais-toi, s'il te plaît.", "Tu peux parler maintenant.", "Il se tait toujours."),
        ("¡Cállate un momento, por favor!", "Ya puedes hablar.", "No me gusta el silencio."),
        ("Stai zitto, per favore.", "Puoi parlare di nuovo.", "Perché sei così zitto?"),
        ("Cala a boca, por favor.", "Já pode falar.", "Ele fala muito."),
        ("Hou nu even je mond.", "Je mag weer praten.", "Het is hier zo stil."),
        ("Halt's Maul!", "Sprich bitte wieder.", "Der Hund hat ein großes Maul."),
        ("Stopp.", "Du kannst wieder sprechen.", "An der Ampel ist ein Stopp."),
        ("Hör jetzt auf zu reden.", "Komm zurück!", "Hör mal, wer da redet."),
    ],
)
def test_other_languages_are_understood(hush: str, speak: str, neither: str) -> None:
    """Requests in other languages are recognised without a language setting."""
    assert asks_for_silence(hush)
    assert not asks_to_talk(hush)
    assert asks_to_talk(speak)
    assert not asks_for_silence(speak)
    assert not asks_for_silence(neither)
    assert not asks_to_talk(neither)


@given(st.text())
def test_any_text_can_be_looked_at(text: str) -> None:
    """No text asks for both silence and talking."""
    assert not (asks_for_silence(text) and asks_to_talk(text))
