"""The greeter of docs/rehearsal.md with py-cord. The same test tests it."""

import array
import io
import math

import discord

TONE = [round(9000 * math.sin(index / 18)) for index in range(96_000)]
SOUND = array.array("h", [sample for sample in TONE for _ in ("left", "right")]).tobytes()


@discord.slash_command(description="Come and greet me")
async def greet(context):
    await context.defer()
    voice = await context.author.voice.channel.connect()
    voice.play(discord.PCMAudio(io.BytesIO(SOUND)))
    await context.followup.send("Hello!")


class Greeter(discord.Bot):
    def __init__(self, **options):
        super().__init__(**options)
        self.add_application_command(greet)
