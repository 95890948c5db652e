"""The embedded voices that a server can choose: who they are, what they speak, and which model has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bot.models.catalogue import VOICE_JOE, VOICE_KOKORO, VOICE_KRISTIN, VOICE_THORSTEN
from bot.texts.text import Text
from voice.speaking.kokoro import KokoroStyle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.models.entry import ModelEntry

# What a person hears of a voice before they choose it.
SAMPLES: Final[Mapping[str, str]] = {
    "en": "Hello, this is how I sound. On Friday the blue canoe leaves at a quarter past nine.",
    "de": "Hallo, so klinge ich. Am Freitag legt das blaue Kanu um Viertel nach neun ab.",
    "fr": "Bonjour, voici ma voix. Vendredi, le bateau bleu part à neuf heures et quart.",
    "es": "Hola, esta es mi voz. El viernes la canoa azul sale a las nueve y cuarto.",
    "it": "Ciao, questa è la mia voce. Venerdì la barca blu parte alle nove e un quarto.",
}

_AMERICAN, _BRITISH = Text("American English"), Text("British English")


@dataclass(frozen=True, slots=True)
class EmbeddedVoice:
    """One voice. `code`: its language, of two letters. `style`: which of the model's voices it is; None: its only one.

    A change of `name` changes what servers have chosen.
    """

    name: str
    language: Text
    code: str
    model: ModelEntry
    style: KokoroStyle | None = None

    @property
    def title(self) -> str:
        """Return its name as people read it."""
        return self.name.capitalize()

    @property
    def engine(self) -> str:
        return "Piper" if self.style is None else "Kokoro"

    @property
    def licence(self) -> str:
        return self.model.licence

    @property
    def sample(self) -> str:
        return SAMPLES[self.code]


VOICES: Final[tuple[EmbeddedVoice, ...]] = (
    EmbeddedVoice("joe", _AMERICAN, "en", VOICE_JOE),
    EmbeddedVoice("kristin", _AMERICAN, "en", VOICE_KRISTIN),
    EmbeddedVoice("thorsten", Text("German"), "de", VOICE_THORSTEN),
    EmbeddedVoice("heart", _AMERICAN, "en", VOICE_KOKORO, KokoroStyle("af_heart.bin", "en-us")),
    EmbeddedVoice("bella", _AMERICAN, "en", VOICE_KOKORO, KokoroStyle("af_bella.bin", "en-us")),
    EmbeddedVoice("michael", _AMERICAN, "en", VOICE_KOKORO, KokoroStyle("am_michael.bin", "en-us")),
    EmbeddedVoice("fenrir", _AMERICAN, "en", VOICE_KOKORO, KokoroStyle("am_fenrir.bin", "en-us")),
    EmbeddedVoice("emma", _BRITISH, "en", VOICE_KOKORO, KokoroStyle("bf_emma.bin", "en-gb-x-rp")),
    EmbeddedVoice("george", _BRITISH, "en", VOICE_KOKORO, KokoroStyle("bm_george.bin", "en-gb-x-rp")),
    EmbeddedVoice("siwis", Text("French"), "fr", VOICE_KOKORO, KokoroStyle("ff_siwis.bin", "fr")),
    EmbeddedVoice("dora", Text("Spanish"), "es", VOICE_KOKORO, KokoroStyle("ef_dora.bin", "es")),
    EmbeddedVoice("sara", Text("Italian"), "it", VOICE_KOKORO, KokoroStyle("if_sara.bin", "it")),
)
DEFAULT_VOICE: Final = VOICES[0]
NO_SUCH_VOICE: Final = Text("I no longer have a voice of that name.")


def find_voice(name: str) -> EmbeddedVoice | None:
    """Return the voice of that name, in upper or lower case; None if there is none."""
    wanted = name.strip().casefold()
    return next((voice for voice in VOICES if voice.name == wanted), None)


def replaced_sentence(name: str, why: Text) -> Text:
    """Return what people read while the usual voice speaks instead of the chosen one."""
    return Text(
        "I cannot speak with the voice {voice} now and use my usual one. {why} /settings chooses another.",
        voice=name.capitalize(),
        why=why,
    )
