"""Makes the recordings of free talk on which endpointing is judged (`free_talk`)."""
