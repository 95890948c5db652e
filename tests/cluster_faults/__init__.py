"""A cluster on this one machine that loses its parts one after the other while people speak."""
