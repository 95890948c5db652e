"""Roomtone on several machines, through Ray (the extra that installs it is called cluster).

    pool_settings ---- how many recognisers the cluster keeps, and what each may use
    resources -------- CPUs and GPUs in words: pure
    running_process -- which process has a folder
    ray_process ------ Ray's first process on this machine, also when `cluster up` has gone
    scaling ---------- how many recognisers are wanted: a pure policy
    transcription ---- what a request and an answer are, and what is refused: pure
    front ------------ what answers HTTP on every node, in Ray Serve's process for it
    ongoing_requests - lets that process end only when its requests are answered
    replica ---------- one recogniser in the cluster, in a process of its own
    deployment ------- puts the recognisers into the cluster
    entry_points ----- lets every machine take speech, also one without a recogniser
    state ------------ the cluster's machines and recognisers, as Ray tells them
    draining --------- takes a machine out while speech is heard
    address ---------- how a command connects to Ray, and how a bot reaches the pool
    joining ---------- what a machine looks at before it joins: its address, and whether the first machine answers
    node ------------- Ray's processes on this machine, from `cluster up` to Ctrl-C

Way in: `node.running_node` and `deployment.deploy` for `roomtone cluster up`; `address.pool_endpoint` for
`roomtone run --cluster`. A room never imports Ray: it asks the pool over HTTP (`voice.asr.remote`).
"""
