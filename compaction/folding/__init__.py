"""Compaction of one session: decides when a batch is folded, runs the fold, and lands its result.

Way in: `compactor.Compactor`. Decisions without I/O: `window` (which turns are due), `machine` (what follows from what:
`signals` in, effects out, over `state`). I/O: `compactor` (one run at a time), `outbox` (writes to the store).
`fold_requests` builds what a summariser gets, `events` is what listeners and the log get.
"""
