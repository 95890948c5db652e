"""`python -m tests.fuzz [MINUTES] [FIRST_ROUND]`: runs the attacks one after the other until the time is over.

Ends with a traceback at the first round that fails, and says how to run that round again.
"""

from __future__ import annotations

import itertools
import sys
import time

from tests.fuzz.attacks import ATTACKS, attack_once


def main(arguments: list[str]) -> int:
    """Run rounds for the given minutes and return the exit status."""
    minutes = float(arguments[0]) if arguments else 10.0
    first = int(arguments[1]) if len(arguments) > 1 else 0
    until = time.monotonic() + 60 * minutes
    done = 0
    for number in itertools.count(first):
        for name in ATTACKS:
            if time.monotonic() >= until:
                sys.stdout.write(f"{done} rounds, none failed. The next run may begin at round {number}.\n")
                return 0
            try:
                attack_once(name, number)
            except BaseException:
                sys.stderr.write(f'Ended in attack_once("{name}", {number}) of tests/fuzz/attacks.py.\n')
                raise
            done += 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
