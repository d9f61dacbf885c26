"""From a table of results to answers: statistics, figures and a page. Reads tables only; needs no torch."""
