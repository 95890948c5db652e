"""`roomtone bench receive`: what it costs to receive many people who speak at once.

Start with `bench`, which starts two kinds of processes: a local Discord with its speakers (`crowd_process`, `crowd`),
and who receives them (`receiving_process`, with `client` for the link alone). `scene` is one measurement, and `talk`
what people say in it. `usage` measures what a thread took, `recogniser_work` what was recognised meanwhile, and
`targets` says what is wanted.
"""
