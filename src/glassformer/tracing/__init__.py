"""Looking at a run: every number recorded, checked against its definition, and kept in one file.

| file | what |
|---|---|
| ``record.py`` | run a model once with somebody listening |
| ``trace.py`` | ``trace``: forward, gradients, one update, forward again, with everything below |
| ``request.py`` | what is asked for: a text or ids, what follows, what counts |
| ``traceable.py`` | what cannot be traced, and where numbers stop being finite |
| ``view.py`` | one quantity of a trace: numbers, gradient, formula, any cell explained |
| ``explanation.py`` | how one number came about: text, LaTeX |
| ``notebook.py`` | a trace in a notebook: a summary, and the page in a sandboxed frame |
| ``formats.py`` | the same as Markdown and CSV, token texts harmless |
| ``walk.py`` | the way on: to the loss, to parameters and tokens |
| ``replay.py`` | every recorded number equals its definition |
| ``witnesses.py`` | definition, automatic differentiation and differences, for every gradient |
| ``optimizers.py`` | ``SGD`` and ``AdamW``: the step of a trace, line by line |
| ``losses.py`` | the loss with other parameters, from the model that ran |
| ``update.py`` | the step predicted, exact, by group, in the wrong order, along itself |
| ``attribution.py`` | the exact change shared out among parameters (Shapley) |
| ``reasons.py`` | what the step did to attention and probability, and equal gradients |
| ``batch.py`` | one step on several samples: who gains, who pays |
| ``audit.py`` | no operation lies outside the definitions |
| ``header.py`` | a trace as plain data, saved and loaded |
| ``file.py`` | the trace file |
| ``toy.py`` | the 24-parameter model under any settings |
| ``runs.py`` | a text through a trained model |
| ``probing.py`` | a trace with what the probes find |
| ``steps.py`` | ``train``, every step of which can be traced |
| ``probes/`` | experiments on a trained model |
"""

from .attribution import Attribution, Share
from .batch import BatchChange, SampleChange, update_batch
from .explanation import Explanation
from .header import header_of, load_trace, save_trace, tensors_of, trace_from
from .optimizers import SGD, AdamW, Moments, Scheduled
from .runs import trace_run
from .steps import TracedStep, train
from .toy import ToySettings, reference_json, trace_toy24
from .trace import Trace, trace
from .update import shares_of
from .view import QuantityView

__all__ = [
    "SGD",
    "AdamW",
    "Attribution",
    "BatchChange",
    "Explanation",
    "Moments",
    "QuantityView",
    "SampleChange",
    "Scheduled",
    "Share",
    "ToySettings",
    "Trace",
    "TracedStep",
    "header_of",
    "load_trace",
    "reference_json",
    "save_trace",
    "shares_of",
    "tensors_of",
    "trace",
    "trace_from",
    "trace_run",
    "trace_toy24",
    "train",
    "update_batch",
]
