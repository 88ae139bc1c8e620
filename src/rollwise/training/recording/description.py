"""What a run's folder says of the run itself: rewards, options, and the model that it begins with."""

from __future__ import annotations

from typing import Any

from rollwise.models.identity import made_by
from rollwise.runs.folder import RunFolder
from rollwise.tickets.outcome import RewardSpec
from rollwise.training.recording.script import script_config


class Description:
    """Writes `rewards.json`, and for a script's run `config.yaml` and `model.json`; on rank 0 alone."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._trainer: Any = None
        self._model: dict[str, Any] = {}  # `made_by`, of a model that is whole no more once it is trained
        self._rewards: RewardSpec | None = None  # as they stand in the folder

    def begin(self, trainer: Any) -> None:
        """Describe this trainer's run."""
        self._trainer = trainer
        self._model = self._made_by() if trainer._is_sharded() else {}

    def write_rewards(self, *, anew: bool = False) -> None:
        """Say what counts as solved, where the trainer has widened the range, or `anew`: the file may be put aside."""
        spec = self._trainer.curriculum.reward_spec
        if anew or spec != self._rewards:
            self.folder.write_rewards(spec)
            self._rewards = spec

    def write(self, state: Any) -> None:
        """Write what the run is made of, and, where it begins, which weights it begins with."""
        self.folder.write_config(script_config(self._trainer, state))
        if state.global_step == 0:
            self.folder.write_model(self._model or self._made_by())

    def _made_by(self) -> dict[str, Any]:
        return made_by(self._trainer.accelerator.unwrap_model(self._trainer.model), self._trainer._tokenizer)
