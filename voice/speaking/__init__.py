"""Speaking: text normalisation, voices, playback and barge-in. Start at `port`."""
