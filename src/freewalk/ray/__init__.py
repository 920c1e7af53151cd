"""What it takes to work on a Ray cluster: join or start one, and send things to its workers. Only this imports Ray."""
