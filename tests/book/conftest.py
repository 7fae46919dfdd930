"""What the tests of the book's page share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def whole_book() -> str:
    """The book without a trained model: that takes half a minute, and adds tables alone."""
    # Only here: a conftest is loaded before annotations can be hooked, and must not load the package.
    from book.test_builder import FACTS, REPORTS_OF_NOTHING
    from glassformer.book.build import build_book, chapters_of, template
    from glassformer.book.library import Library
    from glassformer.errors import UserError

    try:
        template()
    except UserError as error:
        pytest.skip(str(error))
    return build_book(Library(facts=FACTS, reports=REPORTS_OF_NOTHING), chapters_of())
