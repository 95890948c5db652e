"""Hearing people one by one: voice activity, endpointing, utterances. `Ears` is what a room owns."""
