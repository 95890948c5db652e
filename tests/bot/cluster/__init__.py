"""Tests of Roomtone on several machines."""
