"""What is to be run: phases, methods, checked arguments, the job and the state of its walks."""
