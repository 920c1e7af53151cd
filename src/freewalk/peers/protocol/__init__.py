"""The protocol of one node as a pure state machine, its messages and what they carry."""
