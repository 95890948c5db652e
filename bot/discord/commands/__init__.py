"""The slash commands. One module has those of one subject; `add_...` in it puts them on the tree.

Each has the name of its command, except: `participation` (/quiet, /talk, /opt-out, /opt-in), `joining` (/join, /leave,
/status), `privacy` (/privacy, /my-data, /forget-me), `sessions` (/recap, /transcript), and `settings` (/settings,
/rolling-context), whose table is in `setting_table`. Who may use a command is in `bot.discord.access`, not here.
"""
