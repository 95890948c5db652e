"""The bundled scenarios, one folder each, and the scripts that make their audio and pictures."""
