"""Folding: decides when a batch of turns is summarised, runs the summariser, and stores the result.

Callers use `compactor.Compactor`. These modules decide without I/O: `window` (which turns are due), `next_run` (which
run a check begins), `machine` (what to do after each event; it takes `signals`, changes `state` and returns effects)
and `skip_reports` (checks that began no run). Three modules do I/O: `compactor` (runs one fold at a time), `fold_work`
(the work of one run) and `outbox` (writes to the store). `fold_parts` is what all folds of a session share.
`fold_input` collects what a fold is given, `fold_requests` makes a summariser's input of it, `fold_results` what is
stored of the answer. `ledger_view` is what the session knows of its folded turns. `summarisers` says who folds,
`failures` how a run failed, `withheld` whose words no model gets. `events` defines what listeners and the log receive;
`event_reporter` passes it on.
"""
