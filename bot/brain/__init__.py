"""Decides whether the bot answers what it recognised, and produces the spoken reply.

Deciding: `decider` with `wakeword` (the bot's name, calls to others, words that silence it). Prompts: `context` with
its quotes, `system_prompt` (also of speech-to-speech) and `skip`. Replying:
`replier` has the entry point `Replier`, which uses `responder` to write a `reply` and `speech_output` to speak it.
`embedded` answers without a language model; `tools` has the tools that a model may call.
"""
