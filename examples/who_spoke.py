"""Records the people who use /record, each into a WAV file. At /stop it says who spoke how long."""

import functools
import wave

import discord

import voice

bot = discord.Client(intents=discord.Intents.default())
tree = discord.app_commands.CommandTree(bot)
bot.setup_hook = tree.sync
willing = set()  # those whose sound may be decrypted


@tree.command(description="Record what I say in this voice channel")
async def record(interaction: discord.Interaction):
    willing.add(interaction.user.id)
    await interaction.response.send_message("I hear you. Use /stop to end it.")
    if interaction.guild.voice_client is None:
        client = functools.partial(voice.HearingClient, may_hear=willing.__contains__, rate_hz=48_000)
        hearing, files = await interaction.user.voice.channel.connect(cls=client), {}
        async for event in hearing.events():  # until /stop
            if isinstance(event, voice.SpeechFrames):
                if event.user_id not in files:
                    files[event.user_id] = wave.Wave_write(f"{event.user_id}.wav")
                    files[event.user_id].setparams((1, 2, 48_000, 0, "NONE", ""))
                files[event.user_id].writeframes(event.pcm.tobytes())
        spoken = [f"<@{user}> spoke {file.tell() / 48_000:.1f} s" for user, file in files.items()]
        await interaction.channel.send("\n".join(spoken) or "Nobody spoke.")


@tree.command(description="End the recording")
async def stop(interaction: discord.Interaction):
    willing.clear()
    await interaction.response.send_message("It ends.")
    await interaction.guild.voice_client.disconnect()


bot.run(input("The bot's token: "))
