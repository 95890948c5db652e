"""Measures the speech recogniser: word errors, CPU time and delay, alone, through Opus with loss, and in company.

Start with `bench`, which takes every recording through `ours` and the `peers`, each of them a `transcriber_process`;
`discord_path` is what of a recording comes out of a voice channel, `company` several people at once, and `tally` adds
up. `ggml_model` converts our model for whisper.cpp (`ctranslate2_weights` reads it).
"""
