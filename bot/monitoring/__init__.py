"""What operators watch: probes, metrics and traces. It reads what the other parts report, and decides nothing.

- Probes: `probes` answers them, and `service_checks` looks every few seconds whether all that the bot needs is there.
- Metrics: `metrics` counts events as they come, with the series of `metric_registry`. `collectors` reads the rest when
  somebody scrapes: health, machines, `queues`, the recogniser. `remote_recogniser_collector` has what an endpoint or
  the cluster's recognisers did. `loop_lag` and `measured_store` measure the event loop and the store. A room's process
  tells its own as `process_figures`, which `machine_figures` shows by machine.
- Traces: `traces` has one for each turn of speech, from its first packet to the last sound of its answer.
"""
