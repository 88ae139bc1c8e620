"""Continuous batching: candidates of many prompts in one batch, each step one token for every row."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch

from rollwise.inference.decoding.prefill import Prompt
from rollwise.inference.decoding.token_sampler import TokenSampler
from rollwise.inference.head.verdict import Verdict
from rollwise.inference.policies.candidate_group import RUNNING, CandidateGroup, Result
from rollwise.inference.policies.candidates import Policy
from rollwise.models.decoding.uniforms import draw_tokens, rollout_uniforms

READ_AHEAD = 16
"""Read this many prompts in one forward pass, even if there are slots for the first one only."""


class Signal(Protocol):
    """A policy's value signal: a `SuccessHead`, or anything else that can be read from a step's forward pass."""

    @property
    def states(self) -> Sequence[float]:
        """(R,) numbers whose mean, weighted by the chances, is the value."""

    def read(self, hidden: torch.Tensor, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(n, H) hidden states and (n, V) logits -> (n, R) chances, (n,) expected remaining tokens.

        A signal may have an attribute `verdict` too (`verdict.Verdict`), by which finished candidates are judged.
        """


@dataclass
class DecodingStats:
    """What decoding has cost so far.

    Attributes:
        steps: Forward passes of the batch.
        row_forwards: Rows in them, summed: all tokens computed, but for prompts and first tokens.
        prompt_tokens: Tokens of prompts read.
        wall_s: Seconds.
        cpu_s: Seconds of all of this process's threads.
    """

    steps: int = 0
    row_forwards: int = 0
    prompt_tokens: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0


@dataclass
class _Prompted:
    """A prompt under way."""

    group: CandidateGroup
    prompt: Prompt
    watched: dict[int, list[np.ndarray]] = field(default_factory=dict)

    def result(self) -> Result:
        """The result, with the reads of the second signal."""
        result = self.group.result()
        for j, reads in self.watched.items():
            result.candidates[j].watched = np.stack(reads)
        return result


@dataclass(eq=False)
class _Row:
    """A candidate in the batch, or about to be."""

    prompted: _Prompted
    index: int
    uniforms: np.ndarray
    verdicts: list[np.ndarray] = field(default_factory=list)

    @property
    def tokens(self) -> list[int]:
        return self.prompted.group.tokens[self.index]

    @property
    def runs(self) -> bool:
        return self.prompted.group.state[self.index] == RUNNING


class Batching:
    """One run over a queue of prompts.

    Args:
        rows: `SlotRows` or `PaddedRows`, empty.
        sampler: Draws tokens.
        signal: What is read at each step, or None.
        policy: Decides what is given up, and when.
        limit: Most tokens of a candidate.
        seed: With prompt id and index it names the random streams.
        stats: Counted into.
        answer: A finished candidate's tokens -> its final answer, for policies that vote.
        watch: A second signal, read along and kept with the candidates; no policy sees it.
    """

    def __init__(
        self,
        rows: Any,
        sampler: TokenSampler,
        signal: Signal | None,
        policy: Policy,
        *,
        limit: int,
        seed: int,
        stats: DecodingStats,
        answer: Callable[[Sequence[int]], str | None],
        watch: Signal | None,
    ) -> None:
        self.rows, self.sampler, self.signal, self.policy = rows, sampler, signal, policy
        self.verdict: Verdict | None = getattr(signal, "verdict", None)
        self.limit, self.seed, self.stats, self.answer, self.watch = limit, seed, stats, answer, watch
        self.read_ahead: deque[_Prompted] = deque()
        """Prompts that were read, many in one forward pass, before there were slots for them."""
        self.wanted: deque[_Row] = deque()
        """Candidates that were launched while no slot was free."""

    def run(self, queue: Iterable[tuple[str, list[int], int]]) -> Iterator[Result]:
        """Results of prompts (id, tokens, k), each as soon as it is done."""
        waiting = deque(queue)
        clock = time.perf_counter(), time.process_time()
        while waiting or self.read_ahead or self.wanted or self.rows.owners:
            with torch.inference_mode():
                done = self._refill(waiting)
                if self.rows.owners:
                    done += self._step()
            if done:
                self._count(clock)
                for prompted in done:
                    yield prompted.result()
                clock = time.perf_counter(), time.process_time()
        self._count(clock)

    def _refill(self, waiting: deque[tuple[str, list[int], int]]) -> list[_Prompted]:
        """Fill the free slots: first with candidates of prompts under way, then with those of new prompts."""
        self.wanted = deque(row for row in self.wanted if row.runs)
        fresh = [self.wanted.popleft() for _ in range(min(self.rows.free, len(self.wanted)))]
        room = self.rows.free - len(fresh)
        while not self.wanted and (self.read_ahead or waiting):
            if not self.read_ahead:
                self._read_ahead(waiting, room)
            if not self.read_ahead or self.read_ahead[0].group.first > room:
                break
            prompted = self.read_ahead.popleft()
            room -= prompted.group.first
            fresh += self._launched(prompted, prompted.group.launch(prompted.group.first))
        return self._begin(fresh) if fresh else []

    def _read_ahead(self, waiting: deque[tuple[str, list[int], int]], room: int) -> None:
        """Read the prompts for which there is room and, where rows come and go, some more."""
        more = READ_AHEAD if self.rows.refills else 0
        admitted: list[tuple[str, list[int], int]] = []
        while waiting and (room >= self.policy.first(waiting[0][2]) or (admitted and len(admitted) < more)):
            room -= self.policy.first(waiting[0][2])
            admitted.append(waiting.popleft())
        if admitted:
            prompts = self.rows.prefill([tokens for _, tokens, _ in admitted])
            for (id_, _, count), prompt in zip(admitted, prompts, strict=True):
                self.read_ahead.append(self._prompted(id_, prompt, count))

    def _prompted(self, id_: str, prompt: Prompt, count: int) -> _Prompted:
        self.stats.prompt_tokens += prompt.length
        states = () if self.signal is None else self.signal.states
        group = CandidateGroup(
            id_, count, limit=self.limit, policy=self.policy, states=states, prompt_tokens=prompt.length
        )
        if self.signal is not None:
            chances, length = self.signal.read(prompt.hidden[None], prompt.logits[None])
            group.see_prompt(settled(chances)[0], float(length[0]))
        return _Prompted(group, prompt)

    def _launched(self, prompted: _Prompted, indices: Sequence[int]) -> list[_Row]:
        id_ = prompted.group.id
        return [_Row(prompted, j, rollout_uniforms(self.seed, id_, j, self.limit)) for j in indices]

    def _begin(self, fresh: Sequence[_Row]) -> list[_Prompted]:
        """Rows take slots, and draw their first tokens from what was read of their prompts."""
        self.rows.begin([(row.prompted.prompt, row) for row in fresh])
        logits = torch.stack([row.prompted.prompt.logits for row in fresh])
        hidden = torch.stack([row.prompted.prompt.hidden for row in fresh])
        self._emit(fresh, logits, hidden)
        return self._settle(fresh)

    def _step(self) -> list[_Prompted]:
        """One token for every row."""
        rows: list[_Row] = list(self.rows.owners)
        logits, hidden = self.rows.forward([row.tokens[-1] for row in rows])
        self.stats.steps += 1
        self.stats.row_forwards += len(rows)
        self._emit(rows, logits, hidden)
        return self._settle(rows)

    def _emit(self, rows: Sequence[_Row], logits: torch.Tensor, hidden: torch.Tensor) -> None:
        """Read the signal, draw a token for each row, and see which are whole."""
        reads: list[tuple[Any, float]] = [(None, 0.0)] * len(rows)
        if self.signal is not None:
            chances, lengths = self.signal.read(hidden, logits)
            reads = list(zip(settled(chances), lengths.tolist(), strict=True))
        if self.watch is not None:
            for row, read in zip(rows, settled(self.watch.read(hidden, logits)[0]), strict=True):
                row.prompted.watched.setdefault(row.index, []).append(read)
        uniforms = torch.tensor([row.uniforms[len(row.tokens)] for row in rows], dtype=torch.float64)
        tokens = draw_tokens(self.sampler.scores(logits), uniforms).tolist()
        for row, token, (chance, length) in zip(rows, tokens, reads, strict=True):
            row.prompted.group.observe(row.index, token, chance, length)
        if self.verdict is not None:
            for row, read in zip(rows, self.verdict.read(hidden).cpu().double().numpy(), strict=True):
                row.verdicts.append(read)
        for row, ended in zip(rows, self.sampler.ended([row.tokens for row in rows]), strict=True):
            if ended or len(row.tokens) >= self.limit:
                answer = self.answer(row.tokens) if row.prompted.group.votes else None
                belief = None if self.verdict is None else self.verdict.chances(np.stack(row.verdicts)).round(6)
                row.prompted.group.end(row.index, truncated=not ended, answer=answer, belief=belief)

    def _settle(self, rows: Sequence[_Row]) -> list[_Prompted]:
        """Ask the policies, let go of the rows that are done or given up, launch others; the prompts that are done."""
        touched = list({id(row.prompted): row.prompted for row in rows}.values())
        for prompted in touched:
            _, begun = prompted.group.decide()
            self.wanted.extend(self._launched(prompted, begun))
        gone = [i for i, row in enumerate(self.rows.owners) if not row.runs]
        if gone:
            self.rows.remove(gone)
        return [prompted for prompted in touched if prompted.group.done]

    def _count(self, since: tuple[float, float]) -> None:
        self.stats.wall_s += time.perf_counter() - since[0]
        self.stats.cpu_s += time.process_time() - since[1]


def settled(chances: torch.Tensor) -> np.ndarray:
    """(n, R) chances without the digits that depend on what else is in the batch: equal candidates stay equal."""
    return np.asarray(chances.cpu().double().numpy().round(6))
