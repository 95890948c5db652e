"""`roomtone bench receive`: what it costs to receive many people who speak at once.

Start with `bench`, which starts three kinds of processes: a local Discord with its speakers (`crowd_process`, `crowd`),
who receives them (`receiving_process`, with `client` for the link alone), and the Node client beside us (`node_peer`).
`scene` is one measurement, and `talk` what people say in it. `decoders` measures the decoding alone, `usage` what a
thread took, `recogniser_work` what was recognised meanwhile, and `targets` says what is wanted.
"""
