"""``glassformer``: the verbs, and how errors reach the person at the terminal."""

from __future__ import annotations

import os
import sys

from ..errors import UserError

_NO_MEMORY = "can't allocate memory"  # torch says it in a RuntimeError
_NO_OPTION = "No such option"


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 a check found a violation, 2 the request could not be carried out."""
    # Read by NumPy when it is loaded: the matrices are small, and a second BLAS thread would only spin.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from .app import app

        code = app(standalone_mode=False)
    except Exception as error:  # noqa: BLE001 - sorted below; what is nobody's request is raised again
        sys.exit(_report(error))
    except KeyboardInterrupt as stop:
        sys.exit(_stopped(stop))
    sys.exit(code if isinstance(code, int) else 0)


def _report(error: Exception) -> int:
    """Print ``error`` for a person and return the exit code; raise what is a fault of the program."""
    from typer import Abort, Exit, TyperException

    from .stopping import StoppedAtOnce

    if isinstance(error, Exit):
        return int(error.exit_code)
    if isinstance(error, Abort):
        return 130
    if isinstance(error, StoppedAtOnce):
        return _stopped(error.__cause__ or error)
    if isinstance(error, BrokenPipeError):
        # The reader went away (`| head`); Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    notes = _notes(error)
    if isinstance(error, OSError):
        # A full disk behind standard output would complain once more at exit, as above.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        where = f" ({error.filename})" if error.filename else ""
        _complain(f"The system refused: {error.strerror or error}{where}.", "", "Nothing more was done.", *notes)
        return 2
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and _NO_MEMORY in str(error)):
        _complain("There is not enough memory for this.", "", "Ask for less: a smaller model, batch or text.", *notes)
        return 2
    if isinstance(error, TyperException):
        dashed = 'A text or path that begins with "-" comes last, after --.' if _NO_OPTION in str(error) else ""
        _complain(error.format_message(), dashed, "glassformer --help lists what there is.")
        return 2
    if isinstance(error, UserError):
        _complain(error.fact, error.context, error.next_step, *notes)
        return 2
    raise error


def _stopped(error: BaseException) -> int:
    _tell("Stopped at once.", *_notes(error))
    return 130


def _notes(error: BaseException) -> list[str]:
    """What was added to ``error`` on its way: what is kept, and how to go on."""
    return list(getattr(error, "__notes__", ()))


def _complain(*parts: str) -> None:
    _tell(f"error: {parts[0]}", *parts[1:])


def _tell(*parts: str) -> None:
    from ..text.visible import visible

    if sys.stderr is None:
        return
    message = "\n  ".join(visible(part) for part in parts if part) + "\n"
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(message.encode(encoding, "backslashreplace").decode(encoding))


if __name__ == "__main__":
    main()
