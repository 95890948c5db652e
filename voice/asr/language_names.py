"""Maps language names to codes: OpenAI's endpoint reports `english`, others report `en`.

Source: the languages that OpenAI's transcription API supports, by the names in Whisper's tokeniser.
"""

from __future__ import annotations

import re

_CODE = re.compile(r"[a-z]{2,3}")

LANGUAGE_CODES = {
    "afrikaans": "af",
    "arabic": "ar",
    "armenian": "hy",
    "azerbaijani": "az",
    "belarusian": "be",
    "bosnian": "bs",
    "bulgarian": "bg",
    "cantonese": "yue",
    "catalan": "ca",
    "chinese": "zh",
    "croatian": "hr",
    "czech": "cs",
    "danish": "da",
    "dutch": "nl",
    "english": "en",
    "estonian": "et",
    "finnish": "fi",
    "french": "fr",
    "galician": "gl",
    "german": "de",
    "greek": "el",
    "hebrew": "he",
    "hindi": "hi",
    "hungarian": "hu",
    "icelandic": "is",
    "indonesian": "id",
    "italian": "it",
    "japanese": "ja",
    "kannada": "kn",
    "kazakh": "kk",
    "korean": "ko",
    # Whisper's name for it has three letters, and would be taken for a code.
    "lao": "lo",
    "latvian": "lv",
    "lithuanian": "lt",
    "macedonian": "mk",
    "malay": "ms",
    "maori": "mi",
    "marathi": "mr",
    "nepali": "ne",
    "norwegian": "no",
    "persian": "fa",
    "polish": "pl",
    "portuguese": "pt",
    "romanian": "ro",
    "russian": "ru",
    "serbian": "sr",
    "slovak": "sk",
    "slovenian": "sl",
    "spanish": "es",
    "swahili": "sw",
    "swedish": "sv",
    "tagalog": "tl",
    "tamil": "ta",
    "thai": "th",
    "turkish": "tr",
    "ukrainian": "uk",
    "urdu": "ur",
    "vietnamese": "vi",
    "welsh": "cy",
}


_NAMES = {code: name.capitalize() for name, code in LANGUAGE_CODES.items()}


def language_name(code: str) -> str:
    """Return the English name of a language, such as `German` for `de`; empty if unknown."""
    return _NAMES.get(code, "")


def language_code(given: str) -> str:
    """Return the code for a language given as name (`english`), code (`en`) or locale (`en-GB`); empty if unknown."""
    name = given.strip().casefold()
    if name in LANGUAGE_CODES:
        return LANGUAGE_CODES[name]
    code = name.replace("_", "-").partition("-")[0]
    return code if _CODE.fullmatch(code) else ""
