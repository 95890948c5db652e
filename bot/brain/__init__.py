"""Decides whether the bot answers what it recognised, and produces the spoken reply.

Deciding: `decider` with `wakeword` (the bot's name) and `addressing` (calls to others), which look at `spoken_words`;
`silence` has the words that silence the bot. Prompts: `context`, `system_prompt`, `recall_quotes` and
`skip`; `realtime_instructions` for speech-to-speech. Replying: `reply` has the entry point `Replier`, which uses
`responder` and `generation` to write a reply and `speech_output` to speak it; they share `reply_progress`.
`embedded` answers without a language model; `tools` has the tools that a model may call.
"""
