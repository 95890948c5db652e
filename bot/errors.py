"""What can go wrong in the service, named by who must act."""

from __future__ import annotations


class BotError(Exception):
    """Base of every error this package raises. The message is a plain sentence with the remedy.

    The store raises `compaction.errors.StoreError`: memory owns that port, and so its errors.
    """


class SetupError(BotError):
    """Something needed to run is missing or unusable: the operator must install or configure it."""


class ModelError(SetupError):
    """A model could not be brought or used."""


class ModelUnknownError(ModelError):
    """No model of that name is in the catalogue: the person must choose another."""


class ModelSourceError(ModelError):
    """A model could not be fetched from one of its sources: network, mirror, disk or the file itself."""
