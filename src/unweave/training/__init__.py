"""Training: populations of runs, the one trainer, checkpoints."""
