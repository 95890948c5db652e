"""Hearing people one by one: voice activity, endpointing, utterances. `RoomListener` is what a room owns."""
