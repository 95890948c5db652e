"""Hears people and answers them: what is said becomes turns, and some turns get a reply.

`assemble` makes the parts, `conversation` runs them and knows what the bot says next.

- Hearing: `hearing` (with `transcriber` and `pauses`) makes text of sound, `turn_taking` decides
  about it and has a reply held in a pause, `turn_recorder` stores it.
- Speaking: `prompt` builds what a model is sent for a reply, `speaking` says it, `barge_in` stops it,
  `turn_recorder` stores what was heard of it. `typed_talk` answers what people type.

`services` are what all rooms share, and the context of one room. `room_voice` decides which voice a server has.
"""
