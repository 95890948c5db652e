"""Hears people and answers them: what is said becomes turns, and some turns get a reply.

A `conversation` owns the parts, which `conversation_parts` makes; `conversation_status` tells how they are.

- Hearing: `hearing` (with `backlog`, `transcriber` and `eager_recognition`) makes text of sound, `turn_taking` decides
  about it, `turn_recorder` stores it. In a pause, `reply_preparation` goes ahead of them. `membership_recorder` (with
  `membership` and `catch_up_offers`) records who comes and goes. `sound_delay` measures how late sound comes.
- Speaking: `prompt` builds what a model is sent for a reply, `speaking` (with `preemptive_reply` and `speech_ahead`,
  which `read_ahead`, and `fixed_sentences`) says it, `barge_in` stops it, `reply_recorder` stores what was heard of it.
"""
