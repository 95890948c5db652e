"""Fits the policy that ends speech: free talk to fit it on (`free_talk`), and the search for it (`fit`)."""
