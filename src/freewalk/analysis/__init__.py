"""What a walk will do, computed without running it."""
