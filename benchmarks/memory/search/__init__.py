"""Searches that are measured: Roomtone's (`roomtone_search`) and a plain one (`retrieval`)."""
