"""What the service keeps: the journal, the databases behind it, and experiments as replays of it."""
