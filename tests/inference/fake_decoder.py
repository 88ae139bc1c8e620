"""A decoder without a model: candidates drawn from (seed, prompt, index) alone, decoded in lock-step."""

from typing import Any

import numpy as np

from rollwise.inference.policies.candidate_group import CandidateGroup, Result
from rollwise.inference.policies.candidates import Policy

LIMIT, STATES = 48, (0.0, 1.0)


class FakeDecoder:
    """Prompts of rising difficulty; a candidate's value drifts to its fate, and its answer is right if that is good.

    Args:
        confident: Its signal is a confidence, ten times the value, and not the chances of the states.

    Attributes:
        calls: (policy's name, seed) of each decoding.
    """

    def __init__(self, prompts: int = 12, k: int = 4, confident: bool = False) -> None:
        self.prompts, self.k, self.confident = prompts, k, confident
        self.calls: list[tuple[str, int]] = []

    def candidate(self, seed: int, prompt: int, j: int) -> tuple[list[int], np.ndarray, bool]:
        rng = np.random.default_rng([seed, prompt, j])
        chance = 0.9 - 0.7 * prompt / self.prompts
        good = bool(rng.random() < chance)
        n = int(rng.integers(8, 30)) + (0 if good else 10)
        drift = np.linspace(0, 0.4 if good else -0.4, n) + rng.normal(0, 0.1, n)
        drift[0] = 0.0  # at the prompt nothing is known of the candidate
        return rng.integers(0, 9, n).tolist(), np.clip(chance + drift, 0.01, 0.99), good

    def text(self, seed: int, prompt: int, j: int) -> str:
        return f"<answer>{'right' if self.candidate(seed, prompt, j)[2] else f'wrong {j % 2}'}</answer>"

    def read(self, value: float) -> list[float]:
        return [10 * value] if self.confident else [1 - value, value]

    def __call__(
        self, policy: Policy, seed: int, ks: Any = None, watch: Any = None, answer: Any = None
    ) -> tuple[list[Result], float, float]:
        self.calls.append((policy.name, seed))
        ks = [self.k] * self.prompts if ks is None else ks
        results = [self.decode(policy, seed, i, k, answer) for i, k in enumerate(ks)]
        if watch is not None:  # the fake's confidence, whoever asks
            for i, result in enumerate(results):
                for one in result.candidates:
                    one.watched = 10 * self.candidate(seed, i, one.index)[1][:, None]
        work = float(sum(result.row_forwards for result in results))
        return results, work / 1000, work / 500

    def decode(self, policy: Policy, seed: int, prompt: int, k: int, answer: Any = None) -> Result:
        states = (1.0,) if self.confident else STATES
        group = CandidateGroup(f"p{prompt}", k, limit=LIMIT, policy=policy, states=states, prompt_tokens=3)
        drawn = [self.candidate(seed, prompt, j) for j in range(k)]
        group.see_prompt(self.read(drawn[0][1][0]), 25.0)

        def token(j: int) -> None:
            tokens, values, _ = drawn[j]
            at = len(group.tokens[j])
            group.observe(j, tokens[at], self.read(values[at]), 25.0 if at == 0 else float(len(tokens) - at))
            if at + 1 == len(tokens):
                text = self.text(seed, prompt, j)
                group.end(j, answer=text if answer is None else answer(text))

        launched = group.launch(group.first)
        while not group.done:
            # A new row's first token is drawn from what was read of the prompt, before the batch steps on.
            for j in launched:
                token(j)
            launched = group.decide()[1] if launched else []
            for j in [j for j in group.running if j not in launched]:
                token(j)
            launched += group.decide()[1]
            launched = [j for j in launched if j in group.running]
        result = group.result()
        for candidate in result.complete:
            candidate.text = self.text(seed, prompt, candidate.index)
        return result


def judge(results: Any) -> list[list[float]]:
    return [[float(c.text == "<answer>right</answer>") for c in result.candidates] for result in results]
