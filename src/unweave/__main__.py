"""Lets `python -m unweave` be the unweave command."""

from unweave.cli import main

main()
