"""Roomtone on several machines, through Ray (the extra that installs it is called cluster).

    pool_settings ---- how many recognisers the cluster keeps, and what each may use
    room_offer ------- what a place for rooms offers, and what it reserves
    places ----------- how many places for rooms there are, and how they leave a machine
    place_actor ------ one place, as Ray runs it
    room_place ------- keeps the process of a place: pure of Ray
    place_folder ----- where a place's process, its actor and `cluster up` find each other
    left_behind ------ ends what Ray has forgotten on a machine
    running_process -- which process has a folder
    scaling ---------- how many recognisers are wanted: a pure policy
    transcription ---- what a request and an answer are, and what is refused: pure
    replica ---------- one recogniser in the cluster, in a process of its own
    deployment ------- puts the recognisers into the cluster
    state ------------ the cluster's machines and recognisers, as Ray tells them
    draining --------- takes a machine out while speech is heard
    address ---------- how a command connects to Ray, and how a bot reaches the pool
    node ------------- Ray's processes on this machine, from `cluster up` to Ctrl-C

Way in: `node.running_node` and `deployment.deploy` for `roomtone cluster up`; `address.pool_endpoint` for
`roomtone run --cluster`; `places.set_places` for `roomtone cluster rooms --places`. A room never imports Ray: it asks
the pool over HTTP (`voice.asr.remote`), and its process is only started by an actor (`room_place`).
"""
