"""Ground truths: factors of variation and the images they make."""
