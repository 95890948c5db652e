"""How well shared screens are watched: what is noticed, what is read, how fast, and what an hour costs."""
