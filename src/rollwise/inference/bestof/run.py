"""`rollwise bestof`: prompts in, chosen answers with their cost out.

The folder holds `config.yaml`, the options that decide the answers, `model.json`, facts of the model, and
`answers.jsonl`, a line for each prompt. Killed at any moment, the same command goes on with the prompts that are
missing, and gives the same answers as if it had not been: a candidate's random numbers depend on seed, prompt and index
alone.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from rollwise.errors import ConfigError
from rollwise.inference.bestof.config import BestOfConfig
from rollwise.inference.bestof.server import exported_head, served_facts, server_decoder
from rollwise.inference.decoding.decoder import AdaptiveDecoder, DecodingOptions
from rollwise.inference.evaluation.bench import source_of
from rollwise.inference.evaluation.text_check import TextCheck, check_for
from rollwise.inference.files.rollout_folder import keep_facts
from rollwise.inference.head.fitted_on import check_weights, fitted_among, overlap_words
from rollwise.inference.head.head import SuccessHead
from rollwise.inference.policies.allocation import allocate
from rollwise.inference.policies.candidate_group import Candidate, Result
from rollwise.inference.policies.candidates import Policy
from rollwise.inference.policies.confidence import TokenConfidence
from rollwise.inference.policies.defaults import policy_for, with_defaults
from rollwise.inference.policies.policies import BestOfN
from rollwise.inference.policies.selection import answer_key, choose
from rollwise.inference.policies.until import UntilChecked
from rollwise.inference.serving.server_decoder import ServerDecoder, Spent
from rollwise.models import is_embedded
from rollwise.models.identity import made_by
from rollwise.models.sampler import encode
from rollwise.runs.names import MODEL_FILE
from rollwise.sampling.data import PromptData, load_data, sampling_order
from rollwise.sampling.files import is_file_like
from rollwise.sampling.folder import SampleFolder
from rollwise.sampling.progress import SamplingBar
from rollwise.sampling.scoring import Scorer
from rollwise.sampling.setting import completion_length, load_model, make_scorer, make_task_of
from rollwise.tasks import TASKS, Task
from rollwise.terminal import make_console

logger = logging.getLogger(__name__)

Line = dict[str, Any]
"""A prompt's line: id, prompt, answer (the chosen text), chosen (its index), value_end, k, complete, abandoned,
row_forwards, steps, prompt_tokens, rewards (of the chosen one, or empty), candidates if all are kept, and first_value
and first_solved (V(x), and whether the first candidate succeeded) where the setting is an evaluation's."""


@dataclass(frozen=True)
class Answers:
    """What `rollwise bestof` gave.

    Attributes:
        path: The folder.
        lines: One for each prompt, in the order of the sample.
        wall_s: Seconds of decoding in this call.
        decoded: Prompts decoded in this call.
        notes: What one should know of them, in sentences.
        spent: What a server took in this call; None without one.
        failures: Prompt id -> why it has no answer; the same command asks again.
    """

    path: Path
    lines: list[Line]
    wall_s: float
    decoded: int
    notes: tuple[str, ...] = ()
    spent: Spent | None = None
    failures: Mapping[str, str] = field(default_factory=dict)

    @property
    def accuracy(self) -> float | None:
        """Mean reward of the chosen candidates that could be scored; None where nothing is."""
        scored = [reward for line in self.lines for reward in line["rewards"] if reward is not None]
        return float(np.mean(scored)) if scored else None


def run_bestof(config: BestOfConfig, *, console: Console | None = None) -> Answers:
    """Answer the prompts that have no answer yet in the folder.

    Raises:
        ConfigError: options that don't fit, a policy that can never act, a head of another model, or of other weights
            and no `transfer`, or a folder that was begun with others.
        PoolError: data that can't be used.
        RewardError: rewards that can't be used. What was answered before is kept.
    """
    console = console or make_console(stderr=True)
    scored = config.source in TASKS or config.task is not None or bool(config.rewards)
    task = make_task_of(config) if scored or not is_file_like(config.sources[0]) else None
    scorer, reward_hash = make_scorer(config, task)
    split = config.split or ("eval" if config.source in TASKS else None)
    data = load_data(config, task, split=split)
    if task is None and is_embedded(config.model):
        raise ConfigError(
            f"the embedded policy is a task's own, and {config.source!r} is no task: name a model with --model, or the "
            "task with --task"
        )
    if scored:
        scorer.check(data.rows[0])
    served = config.base_url is not None
    head = None
    if config.head is not None:
        head = SuccessHead.load(exported_head(config.head) if served else config.head, without_facts=config.transfer)
    options = DecodingOptions(
        temperature=config.temperature,
        top_p=config.top_p,
        top_k=config.top_k,
        stop_strings=tuple(config.stop),
        max_new_tokens=completion_length(config, task),
        slots=config.slots,
        seed=config.seed,
    )
    shape = {"k": config.k, "limit": options.max_new_tokens}
    policy = policy_for(config.policy, config.policy_options, **shape)
    check = check_for(config.check, task) if config.policy == UntilChecked.name else None
    folder = SampleFolder(config.folder, lines="answers.jsonl", what="a folder of `rollwise bestof`")
    decided = {
        **config.deciding(),
        "policy_options": with_defaults(config.policy, config.policy_options, **shape),
        "max_completion_length": options.max_new_tokens,
        "head_digest": None if head is None else head.digest,  # the same file may hold another head by now
        "check_digest": None if check is None else check.digest,
    }
    folder.begin({**decided, "data_hash": data.fingerprint(), "reward_hash": reward_hash})
    rows = sampling_order(data.ids, data.categories, config.seed)[: config.prompts]
    done = folder.read_groups()
    missing = [row for row in rows if data.ids[row] not in done]
    wall, notes, spent = 0.0, list[str](), None
    failures: Mapping[str, str] = {}
    if missing:
        with SamplingBar(console) as bar:
            decoder: AdaptiveDecoder | ServerDecoder
            if served:
                decoder, facts = server_decoder(config, options.max_new_tokens), served_facts(config)
                counts: Mapping[int, int] = dict.fromkeys(rows, config.k)
            else:
                decoder = _decoder(config, task, head, options, bar)
                facts = made_by(decoder.model, decoder.tokenizer)  # the same path may hold other weights by now
                counts = _counts(config, decoder, data, rows)
            keep_facts(folder.path / MODEL_FILE, facts, resumed=folder.groups.exists())
            notes = _before(config, options.max_new_tokens, decoder.tokenizer, head, data, rows, facts)
            answers = _answer(decoder, config, data, missing, counts, scorer if scored else None, policy, check)
            tokens = 0
            bar.sampled(len(rows) - len(missing), len(rows), 0)
            for at, line in enumerate(answers, start=len(rows) - len(missing) + 1):
                folder.append([line])
                done[line["id"]] = line
                tokens += line["row_forwards"]
                bar.sampled(at, len(rows), tokens)
            wall = decoder.stats.wall_s
            if isinstance(decoder, ServerDecoder):
                spent, failures = decoder.stats, decoder.failures
    lines = [done[data.ids[row]] for row in rows if data.ids[row] in done]
    after = _after(config, policy, lines) if lines else []
    return Answers(folder.path, lines, wall, len(missing) - len(failures), (*notes, *after), spent, failures)


def _before(
    config: BestOfConfig,
    limit: int,
    tokenizer: Any,
    head: SuccessHead | None,
    data: PromptData,
    rows: list[int],
    facts: Mapping[str, Any],
) -> list[str]:
    """Warn where the setting was chosen on something else; and how many prompts the head was fitted on."""
    if config.chosen is not None:
        now = {
            "weights_digest": facts["weights_digest"],
            "head": None if head is None else head.digest,
            "data_hash": data.fingerprint(),
            "source": source_of(config),
            "limit": limit,
            "temperature": config.temperature,
            "top_p": config.top_p,
        }
        for said in config.chosen.differences(now):
            logger.warning("setting %r was chosen on something else: %s", config.chosen.name, said)
    if head is None:
        return []
    prompts = [encode(tokenizer, data.prompts[row]) for row in rows]
    return [overlap_words(fitted_among(head, prompts), len(prompts))]


def _after(config: BestOfConfig, policy: Policy, lines: list[Line]) -> list[str]:
    """Whether the policy ever acted, and whether the prompts are as hard as those that its setting was chosen on."""
    notes = []
    if not isinstance(policy, BestOfN) and all(line["complete"] == line["k"] for line in lines):
        notes.append(
            f"policy {policy.name} never acted: all candidates of all {len(lines):,} prompts were carried to the end, "
            "as by policy none"
        )
    known = [line for line in lines if "first_value" in line]
    if config.chosen is not None and known:
        values = [float("nan") if line["first_value"] is None else line["first_value"] for line in known]
        said = config.chosen.easier_or_harder([line["first_solved"] for line in known], values)
        notes += [said] if said else []
    return notes


def _decoder(
    config: BestOfConfig, task: Task | None, head: SuccessHead | None, options: DecodingOptions, bar: SamplingBar
) -> AdaptiveDecoder:
    model, tokenizer = load_model(config.model, task, progress=bar.warmed)
    signal = TokenConfidence() if head is None and config.policy == "deepconf" else head
    decoder = AdaptiveDecoder(model, tokenizer, signal=signal, options=options)
    if head is not None:
        check_weights(head, model, transfer=config.transfer)
    return decoder


def _counts(config: BestOfConfig, decoder: AdaptiveDecoder, data: PromptData, rows: list[int]) -> Mapping[int, int]:
    """Each prompt's K: all the same, or by the percentile rank of V(x) among all prompts of the sample."""
    if config.mean_k is None:
        return dict.fromkeys(rows, config.k)
    values = decoder.prompt_values([data.ids[row] for row in rows], [data.prompts[row] for row in rows])
    ids = [data.ids[row] for row in rows]
    return dict(zip(rows, allocate(values, config.mean_k, 1, config.k, ids=ids).tolist(), strict=True))


def _answer(
    decoder: AdaptiveDecoder | ServerDecoder,
    config: BestOfConfig,
    data: PromptData,
    rows: list[int],
    counts: Mapping[int, int],
    scorer: Scorer | None,
    policy: Policy,
    check: TextCheck | None,
) -> Any:
    place = {data.ids[row]: row for row in rows}
    ids, prompts = list(place), [data.prompts[row] for row in rows]
    counted = [counts[row] for row in rows]
    answer = answer_key if check is None else check.vote
    for result in decoder.decode(ids, prompts, policy, k=counted, answer=answer):
        states = () if decoder.signal is None else decoder.signal.states
        chosen = choose(result, config.rule, states=states, policy=policy, check=check)
        if chosen is None:  # no policy may leave a prompt so
            raise ConfigError(f"policy {config.policy!r} gave up every candidate of prompt {result.id!r}; mend it")
        yield _line(result, chosen, data.rows[place[result.id]], config, scorer)


def _line(
    result: Result, chosen: Candidate, row: Mapping[str, Any], config: BestOfConfig, scorer: Scorer | None
) -> Line:
    rewards = [] if scorer is None else scorer(row, [chosen.text], [chosen.token_ids])[0]
    line = {
        "id": result.id,
        "prompt": row["prompt"],
        "answer": chosen.text,
        "chosen": chosen.index,
        "value_end": None if np.isnan(chosen.value_end) else round(chosen.value_end, 6),
        "k": len(result.candidates),
        "complete": len(result.complete),
        "abandoned": sum(candidate.state == "abandoned" for candidate in result.candidates),
        "row_forwards": result.row_forwards,
        "steps": result.steps,
        "prompt_tokens": result.prompt_tokens,
        **({} if config.base_url is None else {"late_tokens": result.late_tokens}),
        "rewards": rewards,
    }
    if config.chosen is not None:
        line |= _first(result.candidates[0], chosen, rewards, row, scorer)
    if config.keep == "all":
        line["candidates"] = [
            {
                "state": candidate.state,
                "text": candidate.text,
                "token_ids": candidate.token_ids,
                "values": [round(value, 6) for value in candidate.values.tolist()],
            }
            for candidate in result.candidates
        ]
    return line


def _first(
    first: Candidate, chosen: Candidate, rewards: list[float | None], row: Mapping[str, Any], scorer: Scorer | None
) -> Line:
    """V(x), and whether the first candidate succeeded: with the others left out, their mean is the pass rate."""
    solved = None
    if scorer is not None and first.complete:
        own = rewards if first.index == chosen.index else scorer(row, [first.text], [first.token_ids])[0]
        solved = scorer.solved(own[0])
    return {"first_value": float(first.values[0].round(6)) if len(first.values) else None, "first_solved": solved}
