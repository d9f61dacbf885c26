"""The explorer: a web page to move through the latents of a run and through the runs of a study."""
