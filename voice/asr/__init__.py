"""Speech recognition. Start at `port`, the interface of a recogniser.

- The local recogniser: `scheduler` puts utterances into a `fair_queue` and has them recognised, some together.
  `reloading_model` keeps the model running in its thread (`worker`); `whisper` is the engine;
  `placement` chooses GPU or CPU.
- Elsewhere: `remote` asks an endpoint, `fallback` counts what became of that and has a second recogniser for when it
  fails.
- What a text is worth: `guards` drop texts that nobody said, `second_hearing`
  recognises doubtful ones again, `sound_effect` tells whether a text names a sound.
- What helps: `glossary` suggests names, `languages` tracks each person's language (`language_names`: its code),
  `unspaced` knows scripts without spaces.
"""
