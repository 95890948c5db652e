"""What operators watch: probes, metrics and traces. It reads what the other parts report, and decides nothing.

- Probes: `service_checks` answers them, and looks every few seconds whether all that the bot needs is there.
- Metrics: `metrics` counts events as they come. `collectors` reads the rest when
  somebody scrapes: health, queues, the local recogniser, and what an endpoint or the cluster's recognisers did.
  `measured_store` measures the store.
- Traces: `traces` has one for each turn of speech, from its first packet to the last sound of its answer.
"""
