"""The parts of benchmarks/peers.py: tasks, environments, runs and the table."""
