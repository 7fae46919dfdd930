"""Training on real text.

| file | what |
|---|---|
| ``config.py`` | what a run is told |
| ``precision.py`` | float32 or bfloat16: what this processor can |
| ``loop.py`` | ``train``: a generator of steps; ``validation_loss`` |
| ``optimizer.py`` | AdamW, fused and explicit, and gradient descent |
| ``adamw.py`` | AdamW as quantities, line by line |
| ``descent.py`` | plain gradient descent as quantities |
| ``clipping.py`` | clipping by the norm of the whole gradient, as quantities |
| ``rate.py`` | the schedule of the learning rate as a quantity |
| ``state.py`` | where a run stands |
| ``weights.py`` | tensors as bytes and back |
| ``checkpoint.py`` | where a run stands, on disk |
| ``run_files.py`` | what lies in a run folder |
| ``run_folder.py`` | ``RunFolder``: writing one, going on in one |
| ``loading.py`` | ``load_run``: reading one |
| ``run_data.py`` | what a run learns from, opened again |
| ``runner.py`` | ``run``: one run to its end, new or resumed |
| ``baseline.py`` | the bigram a model must beat |
| ``respelling.py`` | tokens as characters, for a bigram of characters |
| ``recipe.py`` | data, model and training of a run in one TOML file |
| ``settings.py`` | settings that are refused where they have no effect |
| ``faults.py`` | what is wrong with a setting, in words |
| ``divergence.py`` | a model against a language whose probabilities are known |
"""

from .config import CheckpointConfig, OptimizerConfig, ScheduleConfig, TrainingConfig, ValidationConfig
from .divergence import log_probabilities
from .loading import LoadedRun, load_run
from .loop import Step, held_out, train, validation_loss
from .run_data import RunData, open_run_data
from .run_folder import Resumed, RunFolder
from .runner import Outcome, run
from .state import TrainingState

__all__ = [
    "CheckpointConfig",
    "LoadedRun",
    "OptimizerConfig",
    "Outcome",
    "Resumed",
    "RunData",
    "RunFolder",
    "ScheduleConfig",
    "Step",
    "TrainingConfig",
    "TrainingState",
    "ValidationConfig",
    "held_out",
    "load_run",
    "log_probabilities",
    "open_run_data",
    "run",
    "train",
    "validation_loss",
]
