"""``python -m glassformer``: the command line, where no console script is on the path."""

from __future__ import annotations

from .cli.main import main

if __name__ == "__main__":
    main()
