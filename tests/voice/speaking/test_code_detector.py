"""Unfenced code is left out of speech, and ordinary words are not taken for code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.speaking.code_detector import CodeDetector
from voice.speaking.sentences import SentenceSplitter
from voice.speaking.text_normalizer import TextNormalizer


def said(reply: str) -> list[str]:
    """Return what is spoken of a reply that is split as the brain splits it."""
    splitter, normalizer = SentenceSplitter(), TextNormalizer()
    pieces = [*splitter.feed(reply), *splitter.flush()]
    return [sayable.text for piece in pieces if (sayable := normalizer.normalize(piece)) is not None]


@pytest.mark.parametrize(
    "line",
    [
        "def add(a, b):",
        "async def main() -> None:",
        "class Boat:",
        "class Boat(Thing):",
        "function add(a, b) {",
        "const add = (a, b) => a + b;",
        "let x = 5;",
        "public static void main(String[] args) {",
        "fn main() {",
        "import os",
        "import numpy as np",
        "from math import sqrt",
        "import React from 'react';",
        "#include <stdio.h>",
        "for i in range(10):",
        "for (int i = 0; i < 10; i++) {",
        "if x == 1:",
        "if (x === 1) {",
        "else:",
        "} else {",
        "try:",
        "while (true) {",
        "x = foo(1)",
        'name = "Ada"',
        "items = [1, 2, 3]",
        "print('Hello')",
        'console.log("hi");',
        "self.boats.append(boat)",
        "return add(1, 2)",
        "return a + b;",
        "SELECT name FROM boats WHERE id = 1;",
        "CREATE TABLE boats (id INT);",
        "SELECT b.name, COUNT(*) AS trips",
        "#!/bin/bash",
        "for f in *.txt; do",
        'echo "$f"',
        "body {",
        "$ ls -la",
        "sudo apt-get install ffmpeg",
        "pip install roomtone",
        "npm run build",
        'git commit -m "boats"',
        "docker run -it roomtone",
        "curl https://example.org/x",
        "cd ~/boats",
        "python3 boats.py",
        "@dataclass",
        "@app.route('/boats')",
        "});",
    ],
)
def test_a_line_of_code_is_not_said(line: str) -> None:
    assert CodeDetector().is_code(line)
    assert said(f"{line}\n") == []


@pytest.mark.parametrize(
    "words",
    [
        "If you want, take the bus:",
        "for example:",
        "import duties went up",
        "from there, import what you need",
        "x = 5",
        "E = mc^2 is famous",
        "f(x) = x^2",
        "sin(x) + cos(x)",
        "Call foo() to do it.",
        "Call print() with a name, then it is shown.",
        "I (mostly) agree;",
        "No (really)",
        "Scores: Ada = 5; Ben = 7;",
        "Return to me when you can.",
        "return to sender",
        "git is a tool for versions",
        "Select the best one from the list.",
        "class today was fun",
        "function keys (F1 and F2)",
        "while we wait, tell me more",
        "Let x be five.",
        "let me see",
        "try: it works",
        "with all of that (and more), we go:",
        "print it out and put it on the wall",
        "The variable user_name is a string.",
        "node by node",
        "done",
        "1. Bring a lamp.",
        "Ada, Ben (and Cy)",
        "lol (just kidding)",
        "pass me the salt",
        "@Ada how are you",
        "else we stay at home",
        "A set like {a, b} and [c] stays.",
        "Who (if anybody) has it?",
        "What = why?",
    ],
)
def test_words_are_said(words: str) -> None:
    assert not CodeDetector().is_code(words)
    assert said(words)


@pytest.mark.parametrize(
    ("reply", "left"),
    [
        (
            "Here is one:\ndef add(a, b):\n    # adds. Really.\n    total = a + b\n    return total\nThat adds them.",
            ["Here is one:", "That adds them."],
        ),
        (
            "Sure.\nfunction add(a, b) {\n  const sum = a + b;\n  return sum;\n}\nYou call it with two numbers.",
            ["Sure.", "You call it with two numbers."],
        ),
        (
            'print("Hello. World. How are you")\nIt prints a greeting to the screen.',
            ["It prints a greeting to the screen."],
        ),
        (
            "boats = {\n  'red': 5,\n  'blue': 7,\n}\nfor name in boats:\n    print(name)\nIt prints the names.",
            ["It prints the names."],
        ),
        (
            "Run this:\npip install roomtone\nroomtone doctor\nThen tell me what it says.",
            ["Run this:", "roomtone doctor", "Then tell me what it says."],
        ),
        ("In CSS:\nbody {\n  color: red;\n}\nThat makes it red.", ["In CSS:", "That makes it red."]),
        ('for f in *.txt; do\n  mv "$f" old/\ndone\nIt moves all of them.', ["It moves all of them."]),
        ("SELECT name\nFROM boats\nWHERE id = 1;\nThat gives you the name.", ["That gives you the name."]),
    ],
)
def test_a_program_is_left_out_and_the_words_around_it_are_said(reply: str, left: list[str]) -> None:
    """A program is left out, also its lines that alone could be words, and the words around it are spoken."""
    assert said(reply) == left


def test_a_bracket_that_is_never_closed_hides_no_words_for_long() -> None:
    """A bracket that is never closed hides nothing after the next sentence begins."""
    assert said("print('Hello\nThen we went to the sea. It was cold.") == ["Then we went to the sea.", "It was cold."]


WORDS = ("the", "boat", "leaves", "at", "nine", "and", "we", "walk", "home", "with", "Ada")


@given(st.lists(st.sampled_from(WORDS), min_size=3, max_size=20))
def test_plain_words_are_never_code(words: list[str]) -> None:
    """Plain words are never taken for code, with or without a full stop."""
    sentence = " ".join(words)
    assert not CodeDetector().is_code(sentence)
    assert not CodeDetector().is_code(f"{sentence.capitalize()}.")
