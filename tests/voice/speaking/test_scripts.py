"""A voice does not spell out what it cannot read."""

from __future__ import annotations

import pytest

from voice.errors import UnreadableTextError
from voice.speaking.embedded import require_readable
from voice.speaking.piper import phonemizer

LANGUAGES = ("en-us", "en-gb-x-rp", "de", "fr", "es", "it")
# A greeting in each script, and whether the voices of these languages name its letters.
GREETINGS = {
    "доброе утро друзья": LANGUAGES,
    "καλημέρα σας φίλε": ("en-us", "en-gb-x-rp"),
    "בוקר טוב חבר": LANGUAGES,
    "صباح الخير صديقي": LANGUAGES,
    "శుభోదయం నా స్నేహితుడు": LANGUAGES,
    "สวัสดีตอนเช้า": LANGUAGES,
    "ສະບາຍດີເພື່ອນ": LANGUAGES,
    "བཀྲ་ཤིས་བདེ་ལེགས": LANGUAGES,
    "မင်္ဂလာပါ": LANGUAGES,
    "ሰላም እንዴት ነህ": LANGUAGES,
    "អរុណសួស្តីមិត្ត": LANGUAGES,
    "おはようございます": LANGUAGES,
    "コーヒーヲクダサイ": LANGUAGES,
    "早上好朋友": LANGUAGES,
    "ᠮᠣᠩᠭᠣᠯ ᠬᠡᠯᠡ": LANGUAGES,
    "Good morning, Zoë": (),
    "좋은 아침 친구": (),
    "नमस्ते मेरे दोस्त": (),
    "काळे बकरी": (),
    "সুপ্রভাত আমার বন্ধু": (),
    "காலை வணக்கம்": (),
    "ಶುಭೋದಯ ಸ್ನೇಹಿತ": (),
    "സുപ്രഭാതം സുഹൃത്ത്": (),
    "დილა მშვიდობისა": (),
    "բարի լույս ընկեր": (),
}


def is_readable(text: str, language: str) -> bool:
    try:
        require_readable(text, language)
    except UnreadableTextError:
        return False
    return True


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_espeak_would_spell_out_is_refused(language: str) -> None:
    """Where espeak makes more than four sounds of a letter, it names the letter; nothing else is refused."""
    phonemes = phonemizer(language)
    for text, named_by in GREETINGS.items():
        letters = sum(map(str.isalpha, text))
        assert (language in named_by) is (len(phonemes(text)) > 4 * letters), text
        assert is_readable(text, language) is (language not in named_by), text


@pytest.mark.parametrize(
    ("text", "readable"),
    [
        ("", True),
        ("42!", True),
        ("The word for cat is кот.", True),
        ("Кот means cat.", True),
        ("Это кот, по-английски cat.", False),
        ("日本語で OK です、はい。", False),
        ("ᏣᎳᎩ", False),
    ],
)
def test_most_of_the_letters_decide(text: str, readable: bool) -> None:
    """A sentence with some foreign words is spoken; one that is mostly in another script is not."""
    assert is_readable(text, "en-us") is readable


def test_a_voice_of_another_language_may_read_anything() -> None:
    """Somebody may have put a voice of their own language in the place of ours."""
    assert is_readable("доброе утро друзья", "ru")
