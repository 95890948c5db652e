"""What Roomtone's own recognisers in a cluster are told beyond OpenAI's format, and how much any of them hears at once.

For both sides: who asks (`voice.asr.remote`), and who answers (`bot.cluster.transcription`), which needs no client.
"""

from __future__ import annotations

from typing import Final

# Utterances are cut at this length, here and in the local model.
LONGEST_S: Final = 30.0
# Told to nobody else: who speaks (for fairness), unfinished speech, and what is to be heard with more work.
SPEAKER_HEADER: Final = "X-Roomtone-Speaker"
INTERIM_HEADER: Final = "X-Roomtone-Interim"
CAREFUL_HEADER: Final = "X-Roomtone-Careful"
