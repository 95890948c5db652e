"""Roomtone on several machines, through Ray (the extra that installs it is called cluster).

    shard_groups ------ divides the bot's shards into groups, one for each process: pure
    shard_keeper ------ the actor of one group: keeps `roomtone run --shards …` running as its child
    transcription ----- requests and answers of the recogniser service: pure
    recogniser_service  a recogniser that Ray Serve runs and scales
    ray_access -------- the files that Ray's own commands read, and a command's connection to the Ray of this machine
    deployment -------- starts, moves and ends what is ours in a cluster; who serves what, as sentences

Way in: `bot.cli.cluster`. A room never imports Ray: a bot asks the recogniser service over HTTP, as it asks any other
endpoint (`voice.asr.remote`).
"""
