"""Plays a written evening: a real room without sound, on a manual clock. Way in: `player.play_written`."""
