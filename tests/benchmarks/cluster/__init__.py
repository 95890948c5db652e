"""Tests of `roomtone bench cluster`."""
