"""Training on real text.

| file | what |
|---|---|
| ``config.py`` | what a run is told |
| ``loop.py`` | ``train``: a generator of steps; ``validation_loss`` |
| ``baseline.py`` | the character bigram a model must beat |
| ``divergence.py`` | a model against a language whose probabilities are known |
| ``run_folder.py`` | saving and loading a run |
| ``descent.py`` | plain gradient descent as quantities |
"""

from .config import CheckpointConfig, OptimizerConfig, ScheduleConfig, TrainingConfig, ValidationConfig
from .divergence import log_probabilities
from .loop import Step, train, validation_loss
from .run_folder import LoadedRun, RunFolder, load_run

__all__ = [
    "CheckpointConfig",
    "LoadedRun",
    "OptimizerConfig",
    "RunFolder",
    "ScheduleConfig",
    "Step",
    "TrainingConfig",
    "ValidationConfig",
    "load_run",
    "log_probabilities",
    "train",
    "validation_loss",
]
