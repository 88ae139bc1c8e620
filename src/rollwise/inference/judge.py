"""The success head as a judge for curricula: predicts rewards of prompts before a rollout, or after a few tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np

from rollwise.errors import ConfigError, StateError
from rollwise.inference.head.head import SuccessHead
from rollwise.inference.head.recalibration import Recalibration, moments, with_mean
from rollwise.judges.base import Predicts, Prompts, summed
from rollwise.models.reading.policy_source import PolicyJudge, PolicySource
from rollwise.options import Count, CountOrZero, Range, Share
from rollwise.pool import PromptPool
from rollwise.rng import check_seed
from rollwise.state import decode_array, encode_array

REMEMBERED = 8192
"""This many of the newest predictions are kept until their outcomes are known: many steps' candidates."""


class SuccessHeadJudge(PolicyJudge):
    """Predicts by a head that was fitted on rollouts of the policy (`rollwise head fit`): one belief for both uses.

    Without probes it is V(x), read at the prompt's last token: one forward pass over the prompt, nothing generated.
    With K probes, K partial rollouts of a few tokens are drawn, and of each the head's last reads are averaged (the
    last 4; of one that has ended its verdict, or the last 16), then all K. These rollouts are thrown away. Their
    tokens and time are charged to the run, as those of METIS's judgments are: `judge_tokens`.

    *The model* is the live policy where a trainer of `rollwise.training` has one to lend: what it believes of a prompt
    moves with what it learns. Where the policy's weights are sharded (FSDP, ZeRO-3) no single process can read them;
    the judge then keeps a copy of the policy as it was when training began, and says so. In a loop of your own call
    `curriculum.follow(model, tokenizer)`; or give `model`, which stays as it is.

    *Rewards* of the head's states become scores in [0, 1] by the lowest and the highest. A variance is that of the
    joint's marginal over the states; for rewards 0 and 1, p (1 - p).

    *Recalibration*, on by default, is a line from its predictions to the outcomes (`Recalibration`), because the head
    is as old as the policy it was fitted on, and V(x) is compressed. A variance keeps its share of the
    greatest that scores of that mean can have, m (1 - m).

    *No prediction* (NaN) is made for a prompt that does not fit into the model's context with the probe's tokens.

    *Random numbers* of a probe are named by the judge's seed, the training steps so far, the prompt's id and the
    probe's number. So a resumed run draws the same ones, and no prompt's depend on the other candidates.

    Args:
        head: a file from `rollwise head fit`, or a `SuccessHead`.
        model: a folder or hub id that stays as it is; None: the policy, live where it can be.
        predicts: "pass-rate" or "variance".
        probes: K, partial rollouts of each candidate (0).
        probe_tokens: most tokens of each (16).
        temperature: of the probes; give that of training (1).
        recalibrate: share of past outcomes that the line forgets each step; 0.02 remembers about 50 steps; 0: no line.
        prior: weight, in rollouts, of the line that changes nothing.
        batch_size: prompts of one forward pass, without probes; changes nothing but the last digits.
        slots: probes generated at once; changes nothing but the last digits.
        dtype: of a model that it loads itself; by default as `load_policy` has it.
        device: likewise, such as "cuda:1"; by default the accelerator, where there is one.

    Raises:
        ConfigError: an option out of range; later, a head of another model or tokenizer.
        StateFileError: no such file, or it holds no head.
        MissingExtraError: torch is not installed.
    """

    reader = "the success head"
    unsaved = frozenset({"model", "batch_size", "slots", "device"})

    def __init__(
        self,
        head: str | Path | SuccessHead | None = None,
        *,
        model: str | Path | None = None,
        predicts: Predicts = "pass-rate",
        probes: CountOrZero = 0,
        probe_tokens: Count = 16,
        temperature: Annotated[float, Range(0.0, 10.0, open_low=True)] = 1.0,
        recalibrate: Share = 0.02,
        prior: Annotated[float, Range(0.0, 1e9, open_low=True)] = 8.0,
        batch_size: Count = 64,
        slots: Count = 64,
        dtype: str | None = None,
        device: str | None = None,
    ) -> None:
        if not isinstance(head, str | Path | SuccessHead):
            raise ConfigError(f"head must be a file from `rollwise head fit`, or a SuccessHead, got {head!r}")
        if slots < probes:
            raise ConfigError(f"slots must be at least probes={probes}, got {slots}")
        self.head = head if isinstance(head, SuccessHead) else SuccessHead.load(head)
        self._reads(model, dtype, device)
        self.predicts, self.probes, self.probe_tokens = predicts, probes, probe_tokens
        self.temperature, self.recalibrate, self.prior = temperature, recalibrate, prior
        self.batch_size, self.slots = batch_size, slots
        self._beliefs: Any = None  # the head on the model, once it was needed
        self._clear(0)

    @property
    def options(self) -> Mapping[str, Any]:
        """The head by its contents, so that a state fits wherever the file lies, and no other head."""
        return {"head": self.head.digest, "model": self.model, **super().options}

    # ---- which model ----

    def _reading(self, source: PolicySource) -> Self:
        if source.live is not None:
            self.head.check(*source.live)
        made = super()._reading(source)
        made._beliefs = None
        return made

    def fresh(self) -> Self:
        made = super().fresh()
        made._clear(0)
        return made

    def bind(self, pool: PromptPool, seed: int) -> None:
        super().bind(pool, seed)
        self._clear(seed)

    def _clear(self, seed: int) -> None:
        self.seed = check_seed(seed)
        self.steps = 0  # with outcomes
        self.too_long = 0  # candidates without a prediction
        self.error = 0.0  # squared, of the predictions whose outcomes came last
        self.line = Recalibration(forgetting=self.recalibrate, prior=self.prior)
        self.predicted: dict[str, float] = {}  # V by prompt id, the newest last
        self.costs = {}

    # ---- predicting, learning ----

    def predict(self, candidates: Prompts) -> np.ndarray:
        ids = candidates.ids
        chances, costs = self._read().chances([f"{self.steps}/{id_}" for id_ in ids], candidates.prompts, self.seed)
        self.costs = summed([self.costs, costs])
        mean, variance = moments(chances, self.head.states)
        self.too_long += int(np.isnan(mean).sum())
        self._remember(ids, mean)
        if self.recalibrate:
            now = self.line(mean)
            mean, variance = now, with_mean(variance, mean, now)
        return mean if self.predicts == "pass-rate" else variance

    def _read(self) -> Any:
        """The head on the model (`Beliefs`), which is loaded when it is first needed."""
        if self._beliefs is None:
            from rollwise.inference.beliefs import Beliefs

            model, tokenizer = self._load()
            probing = {"temperature": self.temperature, "max_new_tokens": self.probe_tokens, "slots": self.slots}
            self._beliefs = Beliefs(
                model, tokenizer, self.head, probes=self.probes, batch_size=self.batch_size, probing=probing
            )
        return self._beliefs

    def _remember(self, ids: Sequence[str], mean: np.ndarray) -> None:
        for id_, value in zip(ids, mean.tolist(), strict=True):
            self.predicted.pop(id_, None)
            if value == value:
                self.predicted[id_] = value
        for id_ in list(self.predicted)[: max(0, len(self.predicted) - REMEMBERED)]:
            del self.predicted[id_]

    def learn(self, told: Prompts, mean: np.ndarray, variance: np.ndarray, count: np.ndarray) -> None:
        """One step of the line, by the prompts that it had predicted."""
        self.steps += 1
        values = np.array([self.predicted.pop(id_, np.nan) for id_ in told.ids])
        rows = np.flatnonzero(~np.isnan(values))
        if not len(rows):
            return
        values, came, n = values[rows], np.asarray(mean)[rows], np.asarray(count)[rows]
        said = self.line(values) if self.recalibrate else values
        self.error = float(np.average((said - came) ** 2, weights=n))
        if self.recalibrate:
            self.line.learn(values, came, n)

    # ---- looking, saving ----

    def metrics(self) -> dict[str, float]:
        shift, slope = self.line.line
        line = {"judge_shift": shift, "judge_slope": slope} if self.recalibrate else {}
        return {"judge_error": self.error, "too_long": float(self.too_long), **line}

    def state_dict(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in ("seed", "steps", "too_long", "error")},
            "line": self.line.state_dict(),
            "predicted": {
                "ids": list(self.predicted),
                "values": encode_array(np.array(list(self.predicted.values()), dtype=np.float64)),
            },
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        try:
            self._clear(state["seed"])
            self.steps, self.too_long = int(state["steps"]), int(state["too_long"])
            self.error = float(state["error"])
            self.line.load_state_dict(state["line"])
            values = decode_array(state["predicted"]["values"]).tolist()
            self.predicted = {str(id_): v for id_, v in zip(state["predicted"]["ids"], values, strict=True)}
        except (ConfigError, KeyError, TypeError, ValueError) as error:
            raise StateError(f"the judge's state is damaged: {error!r}") from error
