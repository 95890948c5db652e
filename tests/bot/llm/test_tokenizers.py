"""The models' own tokenizers. The estimate is compared with them, and used where no tokenizer is installed."""

from __future__ import annotations

import base64
import json
import random
import re
import uuid
from pathlib import Path

import pytest
from structlog.typing import EventDict

from bot.llm.tokenizers import tokenizer_for
from compaction.tokens import Tokenizer, estimate_text_tokens

ROOT = Path(__file__).parents[3]
# `make setup` downloads the vocabularies.
MODELS_DIR = ROOT / "data" / "models"
MODELS = ("gpt-4.1-mini", "gpt-4", "qwen2.5-coder-1.5b")
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def spoken_english() -> list[str]:
    """Return the sentences that people say in the bundled scenarios."""
    texts = [path.read_text("utf-8") for path in sorted((ROOT / "rehearsal" / "scenarios").rglob("*.jsonl"))]
    return [json.loads(line)["text"] for text in texts for line in text.splitlines() if '"text"' in line]


def random_text(alphabet: str, length: int, count: int) -> list[str]:
    """Return random strings, in which no tokenizer finds words."""
    rng = random.Random(5)
    return ["".join(rng.choices(alphabet, k=length)) for _ in range(count)]


def ids() -> list[str]:
    """Return ids as tools and databases print them."""
    rng = random.Random(6)
    return [
        *(str(uuid.UUID(int=rng.getrandbits(128))) for _ in range(50)),
        *(rng.randbytes(20).hex() for _ in range(50)),
        *(base64.b64encode(rng.randbytes(30)).decode() for _ in range(50)),
        *(str(rng.getrandbits(63)) for _ in range(50)),
        *random_text(LETTERS, 20, 50),
        *random_text(LETTERS.upper(), 20, 50),
        *random_text(LETTERS + LETTERS.upper() + "0123456789", 24, 50),
    ]


def records() -> list[str]:
    """Return JSON records, compact and indented."""
    rng = random.Random(7)
    return [
        json.dumps(
            {
                "id": rng.randbytes(6).hex(),
                "score": rng.random(),
                "tags": ["réunion", "日本"],
                "ok": None,
                "n": [1, 20],
            },
            indent=indent,
            ensure_ascii=ascii_only,
        )
        for indent in (None, 2)
        for ascii_only in (True, False)
        for _ in range(10)
    ]


CORPORA: dict[str, list[str]] = {
    "spoken English": spoken_english(),
    "code": [path.read_text("utf-8") for path in sorted((ROOT / "compaction").rglob("*.py"))],
    "lines of code": [
        line for path in sorted((ROOT / "compaction").glob("*.py")) for line in path.read_text("utf-8").splitlines()
    ],
    "documentation": [
        part for path in sorted((ROOT / "docs").glob("*.md")) for part in re.split(r"\n\n+", path.read_text("utf-8"))
    ],
    "JSON": records(),
    "ids and numbers": ids(),
    "CJK": [
        "今天晚上我们在布雷马租了一间小屋，门的密码是4411。",
        "昨日のトレーラーを見ましたか？",
        "오늘 저녁에 어디서 만날까요?",
    ],
    "emoji": ["😂🎉👨‍👩‍👧‍👦 ok 👍🏽", "🇩🇪🇫🇷🔥🔥🔥", "（╯°□°）╯︵ ┻━┻"],
    "other scripts": ["Сегодня вечером мы сняли домик в горах.", "نلتقي الساعة التاسعة", "हम नौ बजे मिलेंगे", "ไปกินข้าวกัน"],
    "long words": [
        "Donaudampfschifffahrtsgesellschaftskapitän",
        "kolmivaihekilowattituntimittari",
        "Çekoslovakyalılaştıramadıklarımızdan",
        "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch",
        "Eyjafjallajokull Hvannadalshnukur",
    ],
    "noises": [
        "mxyzptlk psst hmm brr grrr zzz pfft tsk",
        "PLEASE STOP SHOUTING",
        "NVIDIA GEFORCE RTX SUPER FTW",
        "aaaaaaah",
    ],
    "white space": ["a\n\n\n   b\t\tc    d", "x" + " " * 500 + "y", "\n" * 50, "\r\n\r\n"],
    "markup": ["<|im_start|>system<|im_end|><|endoftext|>", "![x](y) **b** `c` ~~d~~ | - | - |", "{{{}}}[[[]]]"],
}


@pytest.fixture(scope="module")
def tokenizers() -> dict[str, Tokenizer]:
    """The tokenizers of the models directory, by model."""
    found = {model: tokenizer_for(model, MODELS_DIR) for model in MODELS}
    return {model: each for model, each in found.items() if each is not None}


@pytest.mark.covers("4.2")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("corpus", CORPORA)
def test_the_guess_is_never_under_the_true_count(tokenizers: dict[str, Tokenizer], model: str, corpus: str) -> None:
    """The estimate is never less than the true count, for any text of any corpus and any vocabulary."""
    tokenizer = tokenizers[model]
    assert CORPORA[corpus]
    under = [
        (text[:60], estimate_text_tokens(text), true)
        for text in CORPORA[corpus]
        if estimate_text_tokens(text) < (true := tokenizer.count(text))
    ]
    assert under == []


@pytest.mark.parametrize("model", MODELS)
def test_the_guess_wastes_little_on_talk(tokenizers: dict[str, Tokenizer], model: str) -> None:
    """For spoken English, the estimated token count is at most 1.5 times the true count."""
    tokenizer = tokenizers[model]
    talk = CORPORA["spoken English"]
    assert sum(map(estimate_text_tokens, talk)) <= 1.5 * sum(map(tokenizer.count, talk))


def test_any_text_is_counted(tokenizers: dict[str, Tokenizer]) -> None:
    """Lone surrogates, control words and very long texts can be counted."""
    tokenizer = tokenizers[MODELS[0]]
    assert tokenizer.count("\ud800 <|endoftext|>") > 1
    long = "a" * 200_000
    assert 10_000 <= tokenizer.count(long) <= 200_000
    assert tokenizer.count("word " * 50_000) >= 50_000


@pytest.mark.parametrize(
    ("model", "choice", "event"),
    [
        ("claude-sonnet-4-5", "auto", None),
        ("gpt-4o", "fallback", None),
        ("gpt-4o", "auto", "tokenizer_absent"),
        ("qwen3", "auto", "tokenizer_unreadable"),
        ("gpt-4o", "{folder}/tokenizer.json", "tokenizer_unreadable"),
        ("gpt-4o", "{folder}/nothing.json", "tokenizer_unreadable"),
    ],
)
def test_without_a_tokenizer_the_log_says_why(
    tmp_path: Path, model: str, choice: str, event: str | None, logs: list[EventDict]
) -> None:
    """An unknown model or a missing or damaged vocabulary gives no tokenizer, and so does a setting."""
    (tmp_path / "tokenizer-qwen").mkdir()
    (tmp_path / "tokenizer-qwen" / "qwen.tiktoken").write_text("not base64 at all\n")
    (tmp_path / "tokenizer.json").write_text("{}")
    assert tokenizer_for(model, tmp_path, choice=choice.format(folder=tmp_path)) is None
    assert [line["event"] for line in logs] == ([] if event is None else [event])
    assert event != "tokenizer_absent" or logs[0]["remedy"] == "roomtone models pull tokenizer-openai"


def test_a_path_names_the_tokenizer_of_every_model(tmp_path: Path) -> None:
    own = tokenizer_for("my-model", tmp_path, choice=str(MODELS_DIR / "whisper-base" / "tokenizer.json"))
    assert own is not None
    assert own.count("hello world") == 3
    assert own.count("a\ud800b") >= 3
