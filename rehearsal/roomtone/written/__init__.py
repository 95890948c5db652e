"""Plays a written scenario: a real room without sound, on a manual clock. The entry point is `player.play_written`."""
