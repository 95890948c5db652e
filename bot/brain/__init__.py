"""Decides whether the bot answers what it recognised, and produces the spoken reply.

Deciding: `decider` with `wakeword`, `addressing` and `lexicon`; `silence` has the words that silence the bot; names are
found in `spoken_words` by `name_search` and `phonetic_search` (`phonetics`). Prompts: `context`, `system_prompt`,
`presence`, `recall_quotes` and `skip`; `realtime_instructions` for speech-to-speech. Replying: `reply` has the entry
point `Replier`, which uses `responder` and `generation` to write a reply and `speech_output` to speak it; they share
`reply_progress`. `embedded` answers without a language model; `tools` has the tools that a model may call.
"""
