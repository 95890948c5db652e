"""`roomtone bench asr`: word errors and CPU time of the recogniser, alone, through Opus with loss, and on questions.

`bench` takes every recording through `ours`. `discord_path` is what of a recording comes out of a voice channel.
"""
