"""A plug-in for unweave: a method, a metric and a data set."""
