"""The evaluation of the adaptive decoder: one full run a seed, every setting replayed from it, some run live.

Everything is kept in a folder, so that a killed evaluation goes on: `full-SEED.npz` (the full runs), `runs.jsonl` (a
line for each setting, seed and kind) and, at the end, `evaluation.json`, from which tables and figures are drawn.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rollwise.errors import ConfigError, StateFileError
from rollwise.inference.evaluation.full_runs import FullRun, read_full, write_full
from rollwise.inference.evaluation.pareto import PolicyRun
from rollwise.inference.evaluation.replay import Logged, logged, replay
from rollwise.inference.evaluation.run_lines import line_of, plain, run_of
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
from rollwise.inference.policies.allocation import allocate
from rollwise.inference.policies.candidate_group import Result
from rollwise.inference.policies.candidates import FloatArray, Policy
from rollwise.inference.policies.confidence import TokenConfidence
from rollwise.inference.policies.policies import BestOfN
from rollwise.inference.policies.selection import AnswerKey, answer_key, choose
from rollwise.runs.lines import read_json_lines
from rollwise.runs.names import EVALUATION_FILE
from rollwise.state import make_folder, write_atomically

RUNS_FILE, CONFIG_FILE = "runs.jsonl", "config.json"
REPLAYED, LIVED = "replay", "live"

Judge = Callable[[Sequence[Result]], Sequence[Sequence[float]]]
"""Rewards of each prompt's candidates; those of candidates that are not complete are not looked at."""

Progress = Callable[[str, int, int], None]
"""Told what is done, how much of it, and of how much."""


class Decode(Protocol):
    """Decodes all prompts live: the same seed gives the same samples, whatever the policy.

    `ks`, given for adaptive K alone, is (N,) candidates for each prompt; otherwise each gets K. `watch`, given for full
    runs alone, is a second signal whose reads are kept in `Candidate.watched`. `answer`, given for a check alone,
    answers a text. Returns a result for each prompt, always in the same order, and the seconds of wall-clock and of
    processor that it took.
    """

    def __call__(self, policy: Policy, seed: int, **options: Any) -> tuple[list[Result], float, float]:
        """Decode."""


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
        key: What a text votes for.
        check: Of a text; without one there are no rows of it.
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
        key: AnswerKey = answer_key,
        check: TextCheck | None = None,
        about: Mapping[str, Any] | None = None,
        digests: Mapping[str, str] | None = None,
    ) -> None:
        self.out, self.config, self.judge = Path(out), config, judge
        self.states, self.solved_at, self.key = tuple(map(float, states)), float(solved_at), key
        self.check, self.about, self.digests = check, dict(about or {}), dict(digests or {})
        # Votes need no signal: they are cast on the runs that the head saw, with its values taken away.
        self._seen = {HEAD: (decode, self.states), NOTHING: (decode, self.states)}
        if confident is not None:
            self._seen[CONFIDENCE] = (confident, TokenConfidence().states)
        self.settings = [setting for setting in settings_of(config, check) if setting.signal in self._seen]
        self._live_names = live_names(config, self.settings)
        make_folder(self.out)
        self._same_as_before()
        self._runs = self._read_runs()
        self._full: dict[int, FullRun] = {}

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
        tell = progress or _no_progress
        seeds = self.config.seeds
        for i, seed in enumerate(seeds):
            tell("full runs", i, len(seeds))
            self.full(seed)
        tell("full runs", len(seeds), len(seeds))
        self._each(self.settings, REPLAYED, self._replay, tell)
        lived = self._live_names
        if lived is None:
            first = self._summary(calibration)["policies"]
            lived = {policy["name"] for policy in first if policy["baseline"] or policy["notable"]}
        self._each([setting for setting in self.settings if setting.name in lived], LIVED, self._live, tell)
        found = self._summary(calibration) | {"fitted": fitted, "digests": self.digests, "value": self._prompt_value()}
        text = json.dumps(plain(found), indent=1, ensure_ascii=False, allow_nan=False)
        write_atomically(self.out / EVALUATION_FILE, text.encode("utf-8", "replace"))
        return found

    def full(self, seed: int) -> FullRun:
        """The full run of a seed: from its file, or decoded now."""
        if seed not in self._full:
            path = self.out / f"full-{seed}.npz"
            found = read_full(path) if path.exists() else None
            if found is None or (CONFIDENCE in self._seen and not found.confident):
                found = self._decode_full(seed, path)
            self._full[seed] = found
        return self._full[seed]

    def runs(self, setting: Setting, kind: str = REPLAYED) -> list[PolicyRun]:
        """The setting's runs so far, by seed."""
        keys = [(setting.key, seed, kind) for seed in self.config.seeds]
        return [self._runs[key] for key in keys if key in self._runs]

    def shares(self, setting: Setting, seed: int) -> list[int]:
        """(N,) candidates of each prompt: K, or as adaptive K allots them by V(x)."""
        prompts = self.full(seed).prompts
        if setting.mean_k is None:
            return [self.config.k] * len(prompts)
        values = self._prompt_values(prompts)
        ids = [prompt.id for prompt in prompts]
        return [int(k) for k in allocate(values, setting.mean_k, 1, self.config.k, ids=ids)]

    def _prompt_values(self, prompts: Sequence[Logged]) -> list[float]:
        """(N,) V(x), the same with every seed: it is read before any token."""
        return [float(prompt.chances[0][0] @ np.array(self.states)) for prompt in prompts]

    def _prompt_value(self) -> float:
        """The mean V(x)."""
        return float(np.mean(self._prompt_values(self.full(self.config.seeds[0]).prompts)))

    def _key(self, setting: Setting) -> AnswerKey:
        """What answers a text, for the policies that look at answers."""
        return self.key if setting.check is None else setting.check.vote

    def _each(
        self, settings: Sequence[Setting], kind: str, do: Callable[[Setting, int], PolicyRun], tell: Progress
    ) -> None:
        # Seed by seed, so that what a machine does meanwhile falls on all settings alike.
        wanted = [(setting, seed) for seed in self.config.seeds for setting in settings]
        what = {REPLAYED: "replays", LIVED: "live runs"}[kind]
        for i, (setting, seed) in enumerate(wanted):
            tell(what, i, len(wanted))
            if (setting.key, seed, kind) not in self._runs:
                run = do(setting, seed)
                self._runs[setting.key, seed, kind] = run
                with (self.out / RUNS_FILE).open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"key": setting.key, "kind": kind, **line_of(run)}) + "\n")
        tell(what, len(wanted), len(wanted))

    def _replay(self, setting: Setting, seed: int) -> PolicyRun:
        full, states = self.full(seed), self._seen[setting.signal][1]
        prompts = full.confident if setting.signal == CONFIDENCE else full.prompts
        results = [
            replay(prompt, setting.policy, limit=self.config.limit, states=states, k=k, key=self._key(setting))
            for prompt, k in zip(prompts, self.shares(setting, seed), strict=True)
        ]
        return self._scored(setting, seed, results, full.rewards, math.nan, math.nan)

    def _live(self, setting: Setting, seed: int) -> PolicyRun:
        options: dict[str, Any] = {} if setting.mean_k is None else {"ks": self.shares(setting, seed)}
        if setting.check is not None:
            options["answer"] = setting.check.vote
        results, wall_s, cpu_s = self._seen[setting.signal][0](setting.policy, seed, **options)
        return self._scored(setting, seed, results, self.judge(results), wall_s, cpu_s)

    def _scored(
        self, setting: Setting, seed: int, results: Sequence[Result], rewards: Any, wall_s: float, cpu_s: float
    ) -> PolicyRun:
        if setting.signal == NOTHING:
            results = [_unvalued(result) for result in results]
        rule, states = setting.rule or self.config.rule, self._seen[setting.signal][1]
        how: dict[str, Any] = {"key": self.key, "states": states, "policy": setting.policy, "check": setting.check}
        chosen = [choose(result, rule, **how) for result in results]
        right = [
            one is not None and earned[one.index] >= self.solved_at for one, earned in zip(chosen, rewards, strict=True)
        ]
        return PolicyRun(
            setting.name,
            seed,
            np.array(right, dtype=np.float64),
            np.array([result.row_forwards for result in results], dtype=np.float64),
            np.array([result.steps for result in results], dtype=np.float64),
            wall_s,
            cpu_s,
        )

    def _decode_full(self, seed: int, path: Path) -> FullRun:
        decode, states = self._seen[HEAD]
        watch = {"watch": TokenConfidence()} if CONFIDENCE in self._seen else {}
        results, _, _ = decode(BestOfN(), seed, **watch)
        if any(len(result.candidates) != self.config.k for result in results):
            raise ConfigError(f"the decoder's results don't have k = {self.config.k} candidates each")
        prompts = [logged(result, states) for result in results]
        rewards = np.array([[float(r) for r in earned] for earned in self.judge(results)])
        return write_full(path, prompts, rewards, [_watched(result) for result in results] if watch else None)

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
            "answers": [[self.key(text) for text in prompt.texts] for prompt in full.prompts],
            "passed": self.check and [[self.check(text) for text in prompt.texts] for prompt in full.prompts],
            "states": self.states,
        }

    def _same_as_before(self) -> None:
        config = self.config
        facts = plain({"k": config.k, "limit": config.limit, "rule": config.rule, "states": list(self.states),
                        "solved_at": self.solved_at, "about": self.about, "digests": self.digests})  # fmt: skip
        path = self.out / CONFIG_FILE
        if path.exists():
            try:
                before = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                raise StateFileError(f"{str(path)!r} is not readable: {error}") from error
            compared = [(name, before.get(name), facts[name]) for name in facts if name not in ("about", "digests")]
            for part in ("about", "digests"):  # an earlier version kept less: what is there is compared
                compared += [(name, was, facts[part].get(name)) for name, was in before.get(part, {}).items()]
            for name, was, now in compared:
                if was != now:
                    raise ConfigError(
                        f"{str(self.out)!r} holds an evaluation whose {name} is {was!r}, not {now!r}; "
                        "give another folder"
                    )
        write_atomically(path, json.dumps(facts, indent=1).encode())

    def _read_runs(self) -> dict[tuple[str, int, str], PolicyRun]:
        path = self.out / RUNS_FILE
        if not path.exists():
            return {}
        lines = [line for _, line in read_json_lines(path)]
        write_atomically(path, "".join(json.dumps(line) + "\n" for line in lines).encode())  # without a torn last line
        return {(line["key"], line["seed"], line["kind"]): run_of(line) for line in lines}


def _no_progress(what: str, done: int, total: int) -> None:
    return None


def _watched(result: Result) -> list[FloatArray]:
    """(K,) of (T,) confidences that were read along."""
    return [candidate.watched[:, 0] for candidate in result.candidates]


def _unvalued(result: Result) -> Result:
    """Without the head's values, which would decide between answers of equally many votes."""
    return replace(result, candidates=[replace(one, value_end=math.nan) for one in result.candidates])
