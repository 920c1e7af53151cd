"""Walks on a Ray cluster: joining or starting one, and what is sent to its workers. Only this package imports Ray."""
