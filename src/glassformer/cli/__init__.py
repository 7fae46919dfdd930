"""The command line: one file per verb, and ``main.py`` that gathers them."""
