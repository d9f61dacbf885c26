"""The figures of the report: pure functions, tables in, a figure out; one file for each research question."""
