"""The worker: a supervisor and its processes. Importing this package imports nothing else."""
