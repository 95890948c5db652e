"""The greeter of docs/rehearsal.md with disnake. The same test tests it, with `disnake` for `discord`."""

import array
import io
import math

import disnake
from disnake.ext import commands

TONE = [round(9000 * math.sin(index / 18)) for index in range(96_000)]
SOUND = array.array("h", [sample for sample in TONE for _ in ("left", "right")]).tobytes()


@commands.slash_command(description="Come and greet me")
async def greet(interaction: disnake.ApplicationCommandInteraction):
    await interaction.response.defer()
    voice = await interaction.author.voice.channel.connect()
    voice.play(disnake.PCMAudio(io.BytesIO(SOUND)))
    await interaction.followup.send("Hello!")


class Greeter(commands.InteractionBot):
    def __init__(self, **options):
        super().__init__(**options)
        self.add_slash_command(greet)
