"""PCL's judge: a language model with a scalar head, trained beside the policy to predict how its prompts will fare."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from rollwise.errors import ConfigError, StateError
from rollwise.judges.base import Judge, Predicts, Prompts, highest, told_values
from rollwise.models.loading import need
from rollwise.options import Count, PositiveShare
from rollwise.pool import PromptPool
from rollwise.rng import stream_generator

if TYPE_CHECKING:
    from rollwise.models.value_network import ValueNetwork


class ValueModelJudge(Judge):
    """A causal language model's backbone, and a head on the last hidden state of the prompt's last token.

    PCL's judge, as METIS's appendix A.5 and Table 5 give it: the backbone begins as the policy's and is trained with
    the head, by squared error, with AdamW. docs/judges.md says what was decided where that is open. Weights are loaded
    when first needed. No `state_dict` has them: a trainer of `rollwise.training` saves them with its checkpoints; in
    your own loop call `curriculum.save_files(folder)`, and `load_files(folder)` after `load_state_dict`.

    Args:
        model: a folder or a hub id; None: where the policy came from, which a trainer says before it binds.
        predicts: "pass-rate" or "variance".
        hidden: width of the head (512).
        learning_rate: of AdamW (1e-4).
        batch_size: prompts of one step of AdamW (64).
        updates_per_step: passes over the outcomes of a training step (1).
        frozen: train the head alone; each prompt's features are made once and kept, 4 H bytes for each prompt seen.
        dtype: of the backbone; by default float32, in which small steps are not lost; if frozen, as `load_policy`.
        device: such as "cuda:1"; by default the accelerator, where there is one.
        forward_batch: prompts of one forward pass, for memory; changes nothing but the last digits.

    Raises:
        ConfigError: an option out of range.
        MissingExtraError: torch is not installed.
    """

    unsaved = frozenset({"device", "forward_batch"})  # they change nothing but the last digits

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        predicts: Predicts = "pass-rate",
        hidden: Count = 512,
        learning_rate: PositiveShare = 1e-4,
        batch_size: Count = 64,
        updates_per_step: Count = 1,
        frozen: bool = False,
        dtype: str | None = None,
        device: str | None = None,
        forward_batch: Count = 64,
    ) -> None:
        need("torch", "the value model")
        if model is not None and not isinstance(model, str | Path):
            raise ConfigError(f"model must be a folder or a hub id, got {model!r}")
        self.model = None if model is None else str(model)
        self.policy: str | None = None
        self.predicts, self.hidden, self.learning_rate = predicts, hidden, learning_rate
        self.batch_size, self.updates_per_step, self.frozen = batch_size, updates_per_step, frozen
        self.dtype, self.device, self.forward_batch = dtype, device, forward_batch
        # All judges made of this one by `fresh`, so that a state can be taken over from one that is still there.
        self.family: weakref.WeakSet[ValueModelJudge] = weakref.WeakSet()
        self._clear(0)

    @property
    def options(self) -> Mapping[str, Any]:
        return {"model": self.model, **super().options}

    def starting_from(self, source: str) -> Self:
        made = super().fresh()
        made.policy = source
        self.family.add(made)
        return made

    def fresh(self) -> Self:
        made = super().fresh()
        made._clear(0)
        self.family.add(made)
        return made

    def bind(self, pool: PromptPool, seed: int) -> None:
        if self.model is None and self.policy is None:
            raise ConfigError(
                "the value model has no model to begin with: give it model=... (judge_options: {model: ...}), a folder "
                "or a hub id, or leave the curriculum unbound to a trainer, which gives the policy's own. Where there "
                "is no policy, as in a simulation, use 'embedding-judge' (rollwise.EmbeddingJudged)"
            )
        self._clear(seed)

    def _clear(self, seed: int) -> None:
        self.seed = seed
        self.updates = 0  # training steps that it has learnt from
        self.error = 0.0  # squared, of the last update
        self.digest = hashlib.sha256(f"{seed} {sorted(self.options.items())!r}".encode()).hexdigest()
        self.network: ValueNetwork | None = None
        self.awaits_files = False

    # ---- predicting, learning ----

    def predict(self, candidates: Prompts) -> np.ndarray:
        if not self.updates:
            return super().predict(candidates)
        return self._ready().predict(candidates.ids, candidates.prompts)

    def learn(self, told: Prompts, mean: np.ndarray, variance: np.ndarray, count: np.ndarray) -> None:
        """`updates_per_step` passes over what was told."""
        rows, target = told_values(self.predicts, mean, variance, count)
        if not len(rows):
            return
        network = self._ready()
        ids, prompts = told.ids, told.prompts
        for number in range(self.updates_per_step):
            errors = []
            for batch in self._batches(rows, number):
                chosen = [ids[i] for i in batch], [prompts[i] for i in batch]
                errors.append(network.update(*chosen, target[batch], np.asarray(count[batch], dtype=np.float64)))
            if number == 0:
                self.error = float(np.mean(errors))
        self.updates += 1
        self.digest = _grown(self.digest, [ids[i] for i in rows], target[rows], count[rows])

    def _batches(self, rows: np.ndarray, number: int) -> list[np.ndarray]:
        """Indices of the prompts told, in batches of an order of chance where there are several."""
        if len(rows) > self.batch_size:
            rows = stream_generator(self.seed, f"pass {number} of update {self.updates}").permutation(rows)
        return np.split(rows, range(self.batch_size, len(rows), self.batch_size))

    def _ready(self) -> ValueNetwork:
        if self.awaits_files:
            raise StateError(
                f"the saved state names a value model of {self.updates} updates, whose weights are in files: call "
                "load_files(folder) with the folder that save_files wrote at the same moment, or start a new curriculum"
            )
        if self.network is None:
            self.network = self._load()
        return self.network

    def _load(self) -> ValueNetwork:
        from rollwise.models.value_network import NetworkOptions, ValueNetwork

        names = ("hidden", "learning_rate", "batch_size", "frozen", "dtype", "device", "forward_batch")
        own = {name: getattr(self, name) for name in names}
        return ValueNetwork(
            NetworkOptions(model=self.model or str(self.policy), high=highest(self.predicts), **own), self.seed
        )

    # ---- looking, saving ----

    def take_costs(self) -> dict[str, float]:
        """Tokens of prompts read, and FLOPs, learning included; its time is that of ask and tell."""
        if self.network is None or not self.network.costs["flops"]:
            return {}
        taken = dict(self.network.costs)
        self.network.costs = dict.fromkeys(taken, 0)
        return taken

    def metrics(self) -> dict[str, float]:
        return {"judge_updates": float(self.updates), "judge_error": self.error}

    def state_dict(self) -> dict[str, Any]:
        """Which weights they are: `digest` names the seed, the options, and all that was learnt, in order."""
        return {"seed": self.seed, "updates": self.updates, "error": self.error, "digest": self.digest}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        try:
            self._clear(int(state["seed"]))
            self.updates, self.error = int(state["updates"]), float(state["error"])
            self.digest = str(state["digest"])
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the judge's state is damaged: {error!r}") from error
        alive = [judge for judge in self.family if judge.network is not None and judge.digest == self.digest]
        if alive and alive[0].network is not None:
            self.network = alive[0].network.copy()
        self.awaits_files = self.network is None and self.updates > 0

    def save_files(self, folder: Path) -> None:
        """`value_model.safetensors`: weights and AdamW's state; nothing before the first update."""
        if self.updates:
            self._ready().save(folder, self.digest)

    def load_files(self, folder: Path) -> None:
        if self.awaits_files:
            network = self._load()
            network.load(folder, self.digest)
            self.network, self.awaits_files = network, False


def _grown(digest: str, ids: list[str], target: np.ndarray, count: np.ndarray) -> str:
    """The digest of what `digest` stands for and one more step."""
    told = [ids, np.asarray(target).tolist(), np.asarray(count).tolist()]
    return hashlib.sha256(f"{digest} {told!r}".encode()).hexdigest()
