"""One module for each step, named by its number and what it adds. Alembic loads them by `revision`."""
