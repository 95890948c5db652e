"""Tells program code from prose if a model wrote code without a fence. Markdown treats such code as prose. Pure.

Leaving out prose is worse than reading code aloud. A line therefore counts as code only if it contains something that
prose never contains. A line that could be either counts as code if it follows code.
"""

from __future__ import annotations

import re

_OPENERS, _CLOSERS = "([{", ")]}"
# After this many pieces an open bracket is ignored, because it did not begin a string or list.
_LONGEST_PIECES = 40

# A call has no space before its bracket, and its name has at least three letters. f(x) is mathematics, and so are the
# functions in `_MATHS`.
_MATHS = re.compile(r"(?:sin|cos|tan|log|exp|sqrt|min|max|sum|abs|gcd|mod)\(")
_CALL = r"(?:[a-z_]\w*\.)*[a-z_]\w{2,}\("
# Lines that are always code.
_STRONG = re.compile(
    rf"""(?x)
      (?:async\s+)?def\s+\w+\(.*
    | (?:export\s+|default\s+|async\s+|public\s+|private\s+|static\s+)*function\s*\*?\s?\w*\(.*
    | (?:(?:export|public|abstract|data)\s+)*class\s+\w+(?:\([^)]*\)|\s+(?:extends|implements)\s+\w+)?\s*[:{{]
    | (?:pub\s+)?fn\s+\w+\s*[(<].* | func\s+(?:\([^)]*\)\s*)?\w+\(.*
    | (?:public|private|protected)\s+(?:static\s+)?[\w<>\[\]]+\s+\w+\s*[(=;].*
    | import\s+[\w.]+(?:\s+as\s+\w+)?;? | from\s+[\w.]+\s+import\s+[\w.,*()\s]+ | import\s+.+\s+from\s+['"].*
    | \#include\s*[<"].* | using\s+[\w.]+; | package\s+[\w.]+; | @\w+(?:\.\w+)*(?:\(.*\))?
    | (?:if|elif|while|for|foreach|switch|catch)\s?\(.*\)\s*\{{? | (?:\}}\s*)?else(?:\s+if\s?\(.*\))?\s*\{{
    | for\s+\w+(?:\s*,\s*\w+)*\s+in\s+[\w.]+(?:\(.*\)|\[.*\])?\s*:
    | (?:if|elif|while|with|except)\s.*(?:[=!<>]=|\s[<>]\s|\w[(\[.]\w|_).*:
    | (?:else|try|finally|except|do)\s*[:{{]
    | (?:const|let|var|auto|int|float|double|bool|char|string|String|long)\s+[\w\[\]]+\s*=.*
    | [\w.\[\]'"]+\s*[-+*/|&]?=\s*(?:{_CALL}.*|[\[{{"'].*|new\s+\w+.*|await\s.*|lambda\b.*|.*;)
    | {_CALL}.*\);? | {_CALL}[^)]* | return\b.*[;(\[{{_].* | \w+\s*=>\s*.*
    | SELECT\s.*(?:,|\*|\(|\sAS\s).* | SELECT\s+(?:\*|[\w.]+(?:\s*,\s*[\w.]+)*)
    | (?:SELECT\s.+\sFROM|INSERT\s+INTO|UPDATE\s.+\sSET|DELETE\s+FROM|(?:CREATE|ALTER|DROP)\s+(?:TABLE|INDEX|VIEW))\s.*
    | .*\{{ | \#!/.* | (?:for|while|until)\s.*;\s*do | echo\s+["'$].* | (?:el)?if\s\[.*
    | \$\s\w.* | (?:sudo|npx)\s+[a-z].*
    | (?:pip3?|npm|yarn|brew|apt|apt-get|cargo|conda|gem)\s+(?:-\w+\s+)?(?:install|add|run|i|update|upgrade)\b.*
    | git\s+(?:clone|commit|push|pull|checkout|add|init|status|merge|rebase|log|diff)\b.*
    | docker(?:-compose)?\s+(?:run|build|pull|compose|up|exec)\b.* | curl\s+(?:-|https?:).* | chmod\s+[-+\w]+\s.*
    | (?:python3?|node)\s+(?:-|[\w./]+\.(?:py|js)\b).* | (?:cd|mkdir|rm|cp|mv)\s+[-./~].*
    | [)\]}}]+[;,]?
    """
)
# Lines that are code only right after a line of code.
_WEAK = re.compile(
    r"""(?x)
      (?:return|yield|raise|throw|break|continue|pass|print|await|end|fi|done|esac|then|else|import|from)\b.*
    | (?:if|elif|while|for|with|except)\b.*: | (?:FROM|WHERE|JOIN|LEFT|INNER|ORDER|GROUP|LIMIT|SET|VALUES|AND)\b.*
    | (?:\#|//|--|/\*|\*/?).* | .*[;{}\\=_] | [a-z_].*[=()\[\]{}_$].* | ["'\])}].* | [\w.]+,?
    """
)
_PROSE = re.compile(r"[\"'“(*]*[A-Z0-9][^{}=_]*[.!?…:][\"'”)*]*")
_PROSE_WORDS = 3


class CodeDetector:
    """Tracks whether the last line was code. Use one instance for each reply, and pass the pieces in order."""

    def __init__(self) -> None:
        self._among = False
        # The number of brackets that the code has left open.
        self._open = 0
        self._pieces = 0

    def is_code(self, piece: str) -> bool:
        """Return whether the next piece of the reply is code."""
        if _is_prose(piece):
            self._among, self._open, self._pieces = False, 0, 0
            return False
        inside = self._open > 0 and self._pieces < _LONGEST_PIECES
        found = inside or _is_surely_code(piece) or (self._among and _WEAK.fullmatch(piece) is not None)
        self._among = found
        self._pieces = self._pieces + 1 if found else 0
        self._open = max(0, self._open + _opened(piece)) if found else 0
        return found


def _is_surely_code(piece: str) -> bool:
    if _STRONG.fullmatch(piece) is None or _MATHS.match(piece) is not None:
        return False
    # The splitter may have cut a piece at a full stop within a string.
    return piece[-1] not in ".!?" or _opened(piece) > 0


def _is_prose(piece: str) -> bool:
    """Return whether `piece` is a sentence: several words, a capital at the start, a full stop at the end, no signs of
    code.
    """
    words = [word for word in piece.split() if word.strip("\"'“”,.!?…:()*").isalpha()]
    return _PROSE.fullmatch(piece) is not None and len(words) >= _PROSE_WORDS


def _opened(piece: str) -> int:
    return sum((letter in _OPENERS) - (letter in _CLOSERS) for letter in piece)
