"""Plays a written scenario: a real room without sound, in virtual time. The entry point is `room.play_written`."""
