"""How many turns processes store in one PostgreSQL database, each for a server of its own."""
