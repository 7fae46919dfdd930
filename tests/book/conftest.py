"""The book's page is opened as the page of a trace is."""

from page.conftest import browser, built, open_page

__all__ = ["browser", "built", "open_page"]
