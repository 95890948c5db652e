"""The bundled scenarios, one folder each."""
