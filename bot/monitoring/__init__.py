"""What operators watch: probes, metrics and traces. It reads what the other parts report, and decides nothing."""
