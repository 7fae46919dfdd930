"""Tests of the page: as text, and in a browser without network."""
