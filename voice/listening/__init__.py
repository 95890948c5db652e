"""Voice activity, endpointing, turn detection and coalescing. The way in is `listener.RoomListener`."""
