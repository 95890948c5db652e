"""Plays a scenario and records what happens.

`play` is the way in. `ports`: what it needs from outside. `observations`: what bot and servers report. `record`: all
that was observed. `bot_lifecycle`: starts and stops the bot. `local_environment`: the local Discord with people.
`local_servers`, `scripted_answers`: the model servers. `evening_record`: the record of a written evening.
"""
