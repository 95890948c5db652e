"""Voice activity, endpointing, turn detection and coalescing. Start at `listener.RoomListener`."""
