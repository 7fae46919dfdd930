"""The page: one offline HTML file in which every number of a trace can be followed and changed.

``build`` joins a trace (plain data) with the web bundle, which ``make page`` builds from ``web/`` and which every wheel
holds. Nothing here knows what a model is.
"""

from .document import build

__all__ = ["build"]
