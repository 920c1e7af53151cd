"""Work on a Ray cluster: join or start one, and send values to its workers. Only this package imports Ray."""
