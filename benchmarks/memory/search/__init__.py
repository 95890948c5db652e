"""Searches that are measured: Roomtone's (`roomtone_search`), behind the interface `retrieval`."""
