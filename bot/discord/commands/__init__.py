"""The slash commands. One module has those of one subject; `add_...` in it puts them on the tree.

Each has the name of its command, except: `participation` (/quiet, /talk, /voice-mode, /wake-names, /opt-out, /opt-in),
`room` (/join, /listen, /leave, /status) and `privacy` (/privacy, /my-data, /forget-me). `default_word`,
`setting_sentences` and `store_failures` are shared. Who may use a command is in `bot.discord.access`, not here.
"""
