"""Turns a reply into sound. Start at `port`, the interface of a voice.

- Text: `sentences` cuts a stream of text into pieces; `text_normalizer` makes each readable aloud. It leaves out
  `hidden_passages`, and writes out numbers and signs
  with `english_symbols`, `german_symbols` and the common `sign_rules`. `moderation` refuses words.
- Voices: `hibari`, `piper` and `kokoro` are `embedded`, `openai` asks an endpoint, `fallback` tries one, then another.
  `resample` changes the rate of their sound.
- Sound: `playback` queues it and counts what was sent, `speech_rate` estimates which words that was. `barge_in` decides
  what happens when people speak over it, and `backchannel` what their words mean.
"""
