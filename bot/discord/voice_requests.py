"""What this process has asked Discord about the bot's own voice channels, to tell others' doings from its own.

Discord says the same whether the bot leaves a channel or somebody takes it out. What an earlier process has asked for
does not count: its voice session ends by itself some time after it.

Who takes the bot out after it has asked to leave, and before Discord has said that it left, is not seen: Discord says
once that the bot is out, whoever came first. If its room ends, that is what they wanted. If the room moves or connects
anew, the bot comes in once more, and they can take it out again.
"""

from __future__ import annotations


class VoiceRequests:
    """The last requests, by server."""

    def __init__(self) -> None:
        self._wants_in: set[int] = set()
        # Where the bot has asked to leave, and Discord has not said that it has left.
        self._leaves: set[int] = set()

    def on_request(self, guild_id: int, channel_id: int | None) -> None:
        """Discord is asked to let the bot into a channel; None: out of the one that it is in."""
        if channel_id is None:
            self._wants_in.discard(guild_id)
            self._leaves.add(guild_id)
        else:
            self._wants_in.add(guild_id)

    def on_entered(self, guild_id: int) -> None:
        """Discord says that the bot was in no channel and is in one. It says so after whatever it had to say before."""
        self._leaves.discard(guild_id)

    def on_left(self, guild_id: int) -> bool:
        """Discord says that the bot has left. Return whether somebody else wanted that, or the channel is gone."""
        if guild_id in self._leaves:
            self._leaves.discard(guild_id)
            return False
        is_taken_out = guild_id in self._wants_in
        self._wants_in.discard(guild_id)
        return is_taken_out

    def forget(self, guild_id: int) -> None:
        """Forget a server that the bot has left."""
        self._wants_in.discard(guild_id)
        self._leaves.discard(guild_id)
