"""Whether and what the bot answers, from recognised text to spoken reply.

Deciding: `decider` with `wakeword` (`phonetics`), `addressing`, `silence_requests` and `lexicon`. Input of a reply:
`context`, `system_prompt`, `recall_quotes`, `skip`; `realtime_instructions` for speech-to-speech. Carrying a reply out:
`reply` (`Replier`, the way in), which has `responder` and `generation` write it and `speech_output` speak it;
`reply_progress` is their shared state. `embedded` answers without a language model; `tools` are what a model may call.
"""
