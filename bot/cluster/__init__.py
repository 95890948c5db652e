"""Roomtone on several machines, through Ray (the extra `roomtone[cluster]`).

    pool_settings ---- how many recognisers the cluster keeps, and what each may use
    scaling ---------- how many recognisers are wanted: a pure policy
    transcription ---- what a request and an answer are, and what is refused: pure
    replica ---------- one recogniser in the cluster, in a process of its own
    deployment ------- puts the recognisers into the cluster
    state ------------ the cluster's machines and recognisers, as Ray tells them
    draining --------- takes a machine out while speech is heard
    address ---------- how a command connects to Ray, and how a bot reaches the pool
    node ------------- Ray's processes on this machine, from `cluster up` to Ctrl-C

Way in: `node.running_node` and `deployment.deploy` for `roomtone cluster up`; `address.pool_endpoint` for
`roomtone run --cluster`. Rooms run in the bot's own process, which asks the pool over HTTP (`voice.asr.remote`) and
never imports Ray.
"""
