"""The embedded voices: what they say, what they refuse, and what a missing or damaged model means."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bot.models.directory import ModelDirectory
from bot.models.voices import VOICES, EmbeddedVoice, find_voice, open_voice
from bot.texts.text import in_language, sentence_of
from tests.fakes.loop_time import wait_out
from tests.patience import PATIENCE_S
from voice.daemon_thread import LOAD_TIMEOUT_S
from voice.errors import SynthesisError, UnreadableTextError
from voice.speaking import embedded
from voice.speaking.embedded import EmbeddedModel, EmbeddedSynthesizer, VoiceEngine, VoiceManner, trim_leading_silence
from voice.speaking.kokoro import token_pieces
from voice.speaking.piper import EspeakVoice, espeak_text, phonemizer
from voice.speaking.port import AudioChunk, synthesize_all

MODELS = Path(__file__).parents[3] / "data" / "models"
SILENCE = AudioChunk(np.zeros(240, np.int16), 24_000)
SENTENCE = "The blue canoe leaves on Friday."


REPEATABLE = VoiceManner(variety=0.0)


def known(name: str) -> EmbeddedVoice:
    found = find_voice(name)
    assert found is not None
    return found


@pytest.fixture(scope="module", params=["hibari", "joe", pytest.param("heart", marks=pytest.mark.slow)])
def voice(request: pytest.FixtureRequest) -> Iterator[EmbeddedSynthesizer]:
    """Yield a real voice of each engine. It is loaded once, which takes seconds, and belongs to no event loop."""
    chosen = known(request.param)
    if chosen.model is not None and not ModelDirectory(MODELS).holds(chosen.model):
        pytest.skip(f"not here: roomtone models pull {chosen.model_name}")
    # This is about what is said; a machine that runs other tests too may take long.
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        patch.setattr(embedded, "SENTENCE_TIMEOUT_S", PATIENCE_S)
        stack = AsyncExitStack()
        yield runner.run(stack.enter_async_context(open_voice(chosen, MODELS, REPEATABLE)))
        runner.run(stack.aclose())


def test_each_engine_keeps_the_contract() -> None:
    """The voices of the tests below are of every engine there is."""
    assert {known(name).engine for name in ("hibari", "joe", "heart")} == {each.engine for each in VOICES}


async def test_a_sentence_is_sound_at_once(voice: EmbeddedSynthesizer) -> None:
    """Of plausible length and level, and without silence before it: people who wait for a reply hear it earlier."""
    speech = await synthesize_all(voice, SENTENCE)
    assert (speech.text, speech.pcm.dtype.name, speech.pcm.ndim) == (SENTENCE, "int16", 1)
    assert 1.0 < len(speech.pcm) / speech.rate_hz < 4.0
    assert int(np.abs(speech.pcm.astype(int)).max()) > 3000
    assert int(np.abs(speech.pcm[: speech.rate_hz // 50].astype(int)).max()) > 100


async def test_many_callers_get_each_their_own(voice: EmbeddedSynthesizer) -> None:
    """Longer texts sound longer. Foreign letters, a text without letters and a very long word are answered too."""
    texts = ["…", "Yes.", "Straße, naïve, 日本", f"{SENTENCE} {SENTENCE}", "a" * 60]
    spoken = await asyncio.gather(*(voice.synthesize(text) for text in texts))
    assert [speech.text for speech in spoken] == texts
    assert len(spoken[0].pcm) <= len(spoken[1].pcm) < len(spoken[3].pcm) / 2


async def test_what_a_voice_could_only_spell_it_refuses(voice: EmbeddedSynthesizer) -> None:
    with pytest.raises(UnreadableTextError):
        await voice.synthesize("Доброе утро, друзья.")
    assert len((await voice.synthesize("Yes.")).pcm)


@pytest.mark.parametrize("voice", ["hibari", "joe"], indirect=True)
async def test_without_variety_the_same_words_sound_the_same(voice: EmbeddedSynthesizer) -> None:
    """So that a rehearsal is repeatable."""
    first, second = [(await voice.synthesize("Friday.")).pcm for _ in range(2)]
    assert np.array_equal(first, second)


def test_only_the_silence_before_the_first_sound_goes() -> None:
    """Except for 10 ms. Silence inside and entirely silent sound stay."""
    sound = np.concatenate([np.zeros(2_205), np.full(2_205, 3_000), np.zeros(2_205)]).astype(np.int16)
    assert len(trim_leading_silence(sound, 22_050)) == pytest.approx(4_410 + 220, abs=110)
    np.testing.assert_array_equal(trim_leading_silence(sound, 22_050)[-4_410:], sound[-4_410:])
    for quiet in (np.zeros(500, np.int16), np.zeros(0, np.int16), np.zeros(50, np.int16)):
        assert len(trim_leading_silence(quiet, 22_050)) == len(quiet)


@pytest.mark.parametrize("name", ["joe", "heart"])
async def test_a_missing_or_damaged_model_says_what_to_run(tmp_path: Path, name: str) -> None:
    """The error names the command that fetches the model, and fetches it again."""
    folder = known(name).folder(tmp_path)
    with pytest.raises(SynthesisError, match=f"roomtone models pull {folder.name}"):
        async with open_voice(known(name), tmp_path):
            pass
    folder.mkdir()
    for file in ("voice.onnx", "voice.onnx.json", "model.onnx"):
        (folder / file).write_bytes(b"not a model")
    with pytest.raises(SynthesisError, match="--again"):
        async with open_voice(known(name), tmp_path):
            pass


@pytest.mark.parametrize("damage", ["the library", "the model", "the dictionary"])
async def test_a_missing_or_damaged_library_says_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    """The voice that comes in a wheel is whole or says so before it is wanted, whichever of its files is damaged."""
    broken = tmp_path / "broken"
    broken.write_bytes(b"no file of the voice")
    match damage:
        case "the library":
            monkeypatch.setitem(sys.modules, "hibari", None)
        case "the model":
            monkeypatch.setattr("hibari.tts.voice_path", lambda _: str(broken))
        case _:
            monkeypatch.setattr("hibari.g2p.ASSETS", str(tmp_path))
    with pytest.raises(SynthesisError, match="pip install --force-reinstall") as failed:
        async with open_voice(known("hibari"), tmp_path):
            pass
    assert in_language(sentence_of(failed.value), "de").startswith("Meine Stimme")


async def test_a_voice_that_is_never_loaded_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its disk hangs. The bot goes on without it, and says so."""
    gate = threading.Event()
    hanging = VoiceEngine("Hanging", "", lambda _: gate.wait(PATIENCE_S), lambda *_: lambda _: SILENCE)
    opening = asyncio.create_task(EmbeddedModel.open(hanging, tmp_path).__aenter__())
    await wait_out(monkeypatch, LOAD_TIMEOUT_S)
    gate.set()
    with pytest.raises(SynthesisError, match=f"{LOAD_TIMEOUT_S:g} s") as failed:
        await opening
    assert in_language(sentence_of(failed.value), "de").startswith("Die Stimme in")


async def test_what_a_library_cannot_say_is_left_out(tmp_path: Path) -> None:
    """An untyped error of one sentence is a sentence that tells none of its words, and the next one is spoken."""

    def speak(text: str) -> AudioChunk:
        if text.isdigit():
            raise IndexError(text)
        return SILENCE

    async with EmbeddedModel.open(VoiceEngine("Frail", "", str, lambda *_: speak), tmp_path) as model:
        voice = await model.voice()
        with pytest.raises(SynthesisError, match="left this sentence out") as failed:
            await voice.synthesize("9" * 60)
        assert "9" not in str(failed.value)
        assert len((await voice.synthesize("Yes.")).pcm)


@pytest.mark.parametrize("voice", ["hibari"], indirect=True)
async def test_the_bots_voice_answers_bad_input(voice: EmbeddedSynthesizer) -> None:
    """A text without words is silence, one without an end is cut where it pauses, a number without an end left out."""
    assert not len((await voice.synthesize("")).pcm)
    assert not len((await voice.synthesize("🎉 😀")).pcm)
    assert len((await voice.synthesize("so we went on " * 60)).pcm) > 40 * 24_000
    with pytest.raises(SynthesisError, match="left this sentence out"):
        await voice.synthesize("9" * 5_000)
    with pytest.raises(UnreadableTextError):
        await voice.synthesize("ⅷ")
    assert len((await voice.synthesize("Good morning, Zoë and Łukasz.")).pcm)


def test_espeaks_voice_is_set_when_another_one_is_wanted() -> None:
    asked: list[str] = []

    def set_voice(name: str) -> None:
        asked.append(name)
        if name == "nonsense":
            raise RuntimeError("no such voice")

    voice = EspeakVoice(SimpleNamespace(set_voice=set_voice))
    for name in ("en-us", "en-us", "de", "en-us"):
        voice(name)
    with pytest.raises(RuntimeError):
        voice("nonsense")
    # Nobody knows what espeak has now.
    voice("en-us")
    assert asked == ["en-us", "de", "en-us", "nonsense", "en-us"]


AMERICAN = {"tʃ": "ʧ", "oʊ": "O", "aɪ": "I"}


@pytest.mark.parametrize(
    ("phonemes", "tokens"),
    [
        # Two symbols of espeak for one sound are one token, and what the model does not know is left out.
        ("tʃoʊ", [[133, 31]]),
        ("a̰#a", [[43, 43]]),
        # Without a stress the model swallows "I" at the beginning of a sentence; the same sound within words stays.
        ("aɪ, aɪm fɹˈaɪ", [[157, 25, 3, 16, 157, 25, 55, 16, 48, 123, 156, 25]]),
        # Marks alone give no piece: the model would make a noise of them.
        ("", []),
        ("…", []),
        (". , !", []),
    ],
)
def test_sounds_become_the_tokens_of_kokoro(phonemes: str, tokens: list[list[int]]) -> None:
    assert token_pieces(phonemes, AMERICAN) == tokens


@pytest.mark.parametrize(("phonemes", "lengths"), [("a" * 1_200, [510, 510, 180]), ("aaaa " * 200, [509, 489])])
def test_a_long_sentence_is_cut_where_it_pauses(phonemes: str, lengths: list[int]) -> None:
    """No piece is longer than the model takes, nothing is lost, and words stay whole where they can."""
    pieces = token_pieces(phonemes, AMERICAN)
    assert [len(piece) for piece in pieces] == lengths
    assert sum(token == 43 for piece in pieces for token in piece) == phonemes.count("a")


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
    with contextlib.suppress(UnreadableTextError):
        espeak_text(language)(text)
        return True
    return False


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
