"""unweave: learn, measure and compare disentangled representations."""

__version__ = "0.1.0"
