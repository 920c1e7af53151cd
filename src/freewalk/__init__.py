"""freewalk."""
