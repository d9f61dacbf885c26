"""Building blocks for many models at once: every tensor and parameter may carry an axis of runs in front."""
