"""The scripts that are written without spaces between words."""

from __future__ import annotations

# Thai, Lao, Burmese, Khmer, Japanese and Chinese, for a character class of a regular expression. About two signs make
# a word.
UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
