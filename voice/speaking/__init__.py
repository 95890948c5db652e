"""Speaking: normalised text, voices (`port`), playback, barge-in."""
