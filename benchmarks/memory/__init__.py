"""What is left of long conversations, for Roomtone and other systems."""
