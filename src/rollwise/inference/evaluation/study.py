"""The evaluation of the adaptive decoder: one full run a seed, every setting replayed from it, some run live.

Everything is kept in a folder, so that a killed evaluation goes on: see `folder`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.inference.evaluation.folder import EvaluationFolder
from rollwise.inference.evaluation.full_runs import FullRun, decode_full, read_full
from rollwise.inference.evaluation.live import Decode, Judge, Progress
from rollwise.inference.evaluation.pareto import PolicyRun
from rollwise.inference.evaluation.replay import replay
from rollwise.inference.evaluation.settings import (
    CONFIDENCE,
    HEAD,
    NOTHING,
    EvaluationConfig,
    Setting,
    live_names,
    settings_of,
)
from rollwise.inference.evaluation.summary import summary_of
from rollwise.inference.evaluation.text_check import TextCheck
from rollwise.inference.policies import WAITING, FloatArray, Result, TokenConfidence, allocate, answer_key, choose
from rollwise.runs.evaluation_file import FAILED

REPLAYED, LIVED = "replay", "live"


class Evaluation:
    """An evaluation in its folder.

    Args:
        out: The folder.
        config: What is compared.
        decode: The live decoder.
        judge: Rewards the candidates.
        states: (R,) rewards of the head's states.
        solved_at: The reward that counts as success.
        confident: The live decoder with `TokenConfidence` as its signal; without it the peers that go by it are left
            out.
        check: Of a text; without one there are no rows of it.
        late: Whether the decoder can begin candidates late; else settings that do so are left out.
        about: What was evaluated (model, head, task), JSON-safe: a folder holds one such thing.
        digests: Hashes of what a name does not tell (data, reward, weights): a folder goes on with the same only.

    Raises:
        ConfigError: the folder holds an evaluation of something else.
    """

    def __init__(
        self,
        out: str | Path,
        config: EvaluationConfig,
        *,
        decode: Decode,
        judge: Judge,
        states: Sequence[float],
        solved_at: float = 1.0,
        confident: Decode | None = None,
        check: TextCheck | None = None,
        late: bool = True,
        about: Mapping[str, Any] | None = None,
        digests: Mapping[str, str] | None = None,
    ) -> None:
        self.config, self.judge = config, judge
        self.states, self.solved_at = tuple(map(float, states)), float(solved_at)
        self.check, self.about, self.digests = check, dict(about or {}), dict(digests or {})
        # Votes need no signal: they are cast on the runs that the head saw, with its values taken away.
        self._seen = {HEAD: (decode, self.states), NOTHING: (decode, self.states)}
        if confident is not None:
            self._seen[CONFIDENCE] = (confident, TokenConfidence().states)
        k, seen = config.num_generations, self._seen
        grid = [setting for setting in settings_of(config, check) if setting.signal in seen]
        self.settings = [setting for setting in grid if late or setting.policy.first(k) == k]
        self._live_names = live_names(config, self.settings)
        named = {"k": config.num_generations, "limit": config.limit, "rule": config.select, "states": self.states}
        more = {"solved_at": self.solved_at, "about": self.about, "digests": self.digests}
        self.folder = EvaluationFolder(out, named | more)
        self._full: dict[int, FullRun] = {}

    @property
    def out(self) -> Path:
        """The folder."""
        return self.folder.path

    def run(
        self,
        *,
        calibration: Mapping[str, Any] | None = None,
        fitted: int | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Do what is missing; the contents of `evaluation.json`, which is written too.

        Args:
            calibration: What `calibration_report` said of the head, to stand beside.
            fitted: Of the rollouts' prompts those that the head was fitted on; None if it does not say.
            progress: Told how far it is.
        """
        tell = progress or (lambda *_: None)
        seeds = self.config.seeds
        for i, seed in enumerate(seeds):
            tell("full runs", i, len(seeds))
            self.full(seed)
        tell("full runs", len(seeds), len(seeds))
        self._each(self.settings, REPLAYED, self._replay, tell)
        lived = self._live_names
        if lived is None and _failed(calibration):
            lived = set()  # seconds of a head that chooses no better than chance are of no use
        elif lived is None:
            first = self._summary(calibration)["policies"]
            lived = {policy["name"] for policy in first if policy["baseline"] or policy["notable"]}
        self._each([setting for setting in self.settings if setting.name in lived], LIVED, self._live, tell)
        found = self._summary(calibration) | {
            "fitted": fitted,
            "digests": self.digests,
            "value": float(np.mean(self._prompt_values(seeds[0]))),
        }
        self.folder.write(found)
        return found

    def full(self, seed: int) -> FullRun:
        """The full run of a seed: from its file, or decoded now."""
        if seed not in self._full:
            watch = CONFIDENCE in self._seen
            path = self.out / f"full-{seed}.npz"
            found = read_full(path) if path.exists() else None
            if found is None or (watch and not found.confident):
                found = decode_full(
                    path, self._seen[HEAD][0], self.judge, seed, k=self.config.num_generations, watch=watch
                )
            self._full[seed] = found
        return self._full[seed]

    def runs(self, setting: Setting, kind: str = REPLAYED) -> list[PolicyRun]:
        """The setting's runs so far, by seed."""
        keys = [(setting.key, seed, kind) for seed in self.config.seeds]
        return [self.folder.runs[key] for key in keys if key in self.folder.runs]

    def shares(self, setting: Setting, seed: int) -> list[int]:
        """(N,) candidates of each prompt: K, or as adaptive K allots them by V(x)."""
        prompts = self.full(seed).prompts
        if setting.mean_k is None:
            return [self.config.num_generations] * len(prompts)
        ids = [prompt.id for prompt in prompts]
        most = self.config.num_generations
        return [int(k) for k in allocate(self._prompt_values(seed), setting.mean_k, 1, most, ids=ids)]

    def _prompt_values(self, seed: int) -> list[float]:
        """(N,) V(x), the same with every seed: it is read before any token."""
        return [float(prompt.chances[0][0] @ np.array(self.states)) for prompt in self.full(seed).prompts]

    def _each(
        self, settings: Sequence[Setting], kind: str, do: Callable[[Setting, int], PolicyRun], tell: Progress
    ) -> None:
        # Seed by seed, so that what a machine does meanwhile falls on all settings alike.
        wanted = [(setting, seed) for seed in self.config.seeds for setting in settings]
        what = {REPLAYED: "replays", LIVED: "live runs"}[kind]
        for i, (setting, seed) in enumerate(wanted):
            tell(what, i, len(wanted))
            if (setting.key, seed, kind) not in self.folder.runs:
                self.folder.keep(setting.key, kind, do(setting, seed))
        tell(what, len(wanted), len(wanted))

    def _replay(self, setting: Setting, seed: int) -> PolicyRun:
        full, states = self.full(seed), self._seen[setting.signal][1]
        key = answer_key if setting.check is None else setting.check.vote
        prompts = full.confident if setting.signal == CONFIDENCE else full.prompts
        results = [
            replay(prompt, setting.policy, limit=self.config.limit, states=states, k=k, key=key)
            for prompt, k in zip(prompts, self.shares(setting, seed), strict=True)
        ]
        return self._run(setting, seed, results, full.rewards)

    def _live(self, setting: Setting, seed: int) -> PolicyRun:
        options: dict[str, Any] = {} if setting.mean_k is None else {"ks": self.shares(setting, seed)}
        if setting.check is not None:
            options["answer"] = setting.check.vote
        results, wall_s, cpu_s = self._seen[setting.signal][0](setting.policy, seed, **options)
        return self._run(setting, seed, results, self.judge(results), seconds=(wall_s, cpu_s))

    def _run(self, setting: Setting, seed: int, results: Sequence[Result], rewards: Any, **seconds: Any) -> PolicyRun:
        states, rule = self._seen[setting.signal][1], self.config.select
        return policy_run(
            setting, seed, results, rewards, rule=rule, solved_at=self.solved_at, states=states, **seconds
        )

    def _summary(self, calibration: Mapping[str, Any] | None) -> dict[str, Any]:
        return summary_of(
            self.config,
            self.settings,
            {setting.name: self.runs(setting) for setting in self.settings},
            {setting.name: self.runs(setting, LIVED) for setting in self.settings},
            [self._curve_inputs(seed) for seed in self.config.seeds],
            calibration=calibration,
            about=self.about,
            check=self.check,
        )

    def _curve_inputs(self, seed: int) -> dict[str, Any]:
        full, states = self.full(seed), np.asarray(self.states)
        return {
            "values_end": [[float(belief @ states) for belief in prompt.beliefs] for prompt in full.prompts],
            "rewards": (full.rewards >= self.solved_at).astype(np.float64),
            "lengths": [prompt.lengths for prompt in full.prompts],
            "answers": [[answer_key(text) for text in prompt.texts] for prompt in full.prompts],
            "passed": self.check and [[self.check(text) for text in prompt.texts] for prompt in full.prompts],
            "truncated": [prompt.truncated for prompt in full.prompts],
            "states": self.states,
        }


def policy_run(
    setting: Setting,
    seed: int,
    results: Sequence[Result],
    rewards: Any,
    *,
    rule: str,
    solved_at: float,
    states: Sequence[float],
    seconds: tuple[float, float] = (np.nan, np.nan),
) -> PolicyRun:
    """The run of a setting on N prompts.

    Args:
        setting: What was decoded.
        seed: Of the samples.
        results: (N,).
        rewards: (N,) of (K,) rewards of the candidates.
        rule: How the answer is chosen, unless the setting has its own rule.
        solved_at: The reward that counts as success.
        states: (R,) rewards of the states that the setting's values are means of.
        seconds: Of wall-clock and of processor.
    """
    if setting.signal == NOTHING:
        results = [_unvalued(result) for result in results]
    how: dict[str, Any] = {"states": states, "policy": setting.policy, "check": setting.check}
    chosen = [choose(result, setting.rule or rule, **how) for result in results]
    ends = [[candidate.index for candidate in result.complete] for result in results]
    right = [one is not None and earned[one.index] >= solved_at for one, earned in zip(chosen, rewards, strict=True)]
    return PolicyRun(
        setting.name,
        seed,
        _floats(right),
        _floats(result.row_forwards for result in results),
        _floats(result.steps for result in results),
        *seconds,
        oracle=_floats(any(earned[i] >= solved_at for i in own) for own, earned in zip(ends, rewards, strict=True)),
        begun=_floats(sum(candidate.state != WAITING for candidate in result.candidates) for result in results),
        carried=_floats(map(len, ends)),
    )


def _floats(values: Iterable[float]) -> FloatArray:
    return np.array(list(values), dtype=np.float64)


def _unvalued(result: Result) -> Result:
    """Without the head's values, which would decide between answers of equally many votes."""
    return replace(result, candidates=[replace(one, value_end=np.nan) for one in result.candidates])


def _failed(calibration: Mapping[str, Any] | None) -> bool:
    """Whether the head failed the viability gate."""
    return bool(calibration and (calibration.get("viability") or {}).get("verdict") == FAILED)
