"""What operators watch: probes, metrics and faults. It reads what the other parts report, and decides nothing.

- Probes: `service_checks` answers them, and looks every few seconds whether all that the bot needs is there. It also
  tells the operator of all faults.
- Metrics: `metrics` counts events as they come. `collectors` has what is read when somebody scrapes: health, shards,
  queues and the local recogniser.
- Faults: `overload` finds that there is too much to do, and `watchdog` ends a process that only a restart mends.
"""
