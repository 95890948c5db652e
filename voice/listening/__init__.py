"""Voice activity, endpointing, turn detection and coalescing of utterances. Start at `listener.RoomListener`."""
