"""`roomtone bench cluster`: what the recogniser pool costs, and what more recognisers bring."""
