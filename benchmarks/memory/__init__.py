"""How much of a long conversation Roomtone and other systems remember."""
