"""Can METIS ask this model? Asks it for some judgments of prompts that were rolled out, in each form of question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rollwise.curricula import METIS
from rollwise.errors import ConfigError, MissingColumnError
from rollwise.judges import MAX_VARIANCE, CompactFormat, Exemplar, JudgmentFormat, Question, spread_out
from rollwise.judges.base import prompt_text
from rollwise.judges.formats import make_format
from rollwise.models import JUDGING
from rollwise.models.loading import evaluating
from rollwise.models.question_encoder import EncodedQuestion, QuestionEncoder
from rollwise.models.sampler import Rollouts, SamplingOptions, context_length, sample_encoded
from rollwise.profiling.config import ProfileConfig
from rollwise.profiling.summary import Summary
from rollwise.rng import stream_generator

FORMATS = ("words", "boxed", "digit")
"""The forms that are tried; the first that will do is taken.

The embedded policy that judges is asked only in the form that it was taught, and so is a model that none of these fit.
"""

MOST_UNREADABLE = 0.1
LEAST_SPREAD = 0.04 * MAX_VARIANCE
"""Below it predictions do not tell candidates apart; as in a run's report."""

COLUMNS = ("format", "unread", "mean", "spread", "r", "tokens", "of a step", "context", "examples")

_SHOWN = 2


def check_judge(config: ProfileConfig, summary: Summary, load: Callable[[], tuple[Any, Any]]) -> dict[str, Any]:
    """What the model's judgments are worth: numbers of each form, the form to take, and a verdict in one line.

    Args:
        config: `judge` judgments are asked for in each form, with `judge_exemplars` examples.
        summary: What was rolled out: the examples' variances, and what came of the candidates.
        load: Gives model and tokenizer.

    Raises:
        ConfigError: too few prompts with two scored rollouts.
    """
    pairs, ids = known_pairs(config, summary)
    order = stream_generator(config.seed, "judge").permutation(len(pairs)).tolist()
    asked = order[: config.judge]
    rest = order[config.judge :]
    known = rest if len(rest) >= config.judge_exemplars else order
    model, tokenizer = load()
    rollout = float(np.mean([tokens for group in summary.groups for tokens in group["tokens"]]))
    realised = np.array([pairs[row].variance for row in asked])

    def asked_in(name: str) -> dict[str, Any]:
        form = make_format(name)
        questions = [
            Question(
                id=f"{name}/{ids[row]}",
                prompt_id=ids[row],
                candidate=pairs[row].text,
                exemplars=spread_out([pairs[other] for other in known if other != row], config.judge_exemplars),
                format=form,
                spread=True,
            )
            for row in asked
        ]
        return _asked(model, tokenizer, questions, realised, config, rollout)

    lines = [asked_in(name) for name in ((CompactFormat.name,) if config.model == JUDGING else FORMATS)]
    if all(line["too_long"] == line["asked"] for line in lines):  # a small policy, such as one trained from JUDGING
        lines.append(asked_in(CompactFormat.name))
    return {"exemplars": config.judge_exemplars, "column": config.judge_column, "formats": lines, **verdict(lines)}


def check_askable(config: ProfileConfig, rows: Sequence[Mapping[str, Any]]) -> None:
    """Refuse, before anything is rolled out, what could not be asked about these rows of the data afterwards.

    Raises:
        MissingColumnError: the data have no column `judge_column`.
        ConfigError: too few prompts.
    """
    column = config.judge_column
    if column is not None and (record := next((row for row in rows if column not in row), None)) is not None:
        raise MissingColumnError(f"--judge_column: the data has no column {column!r}, but {', '.join(record)}")
    _check_enough(config, len(rows))


def _check_enough(config: ProfileConfig, prompts: int) -> None:
    if prompts <= config.judge_exemplars:
        raise ConfigError(
            f"--judge needs more than {config.judge_exemplars} prompts with two scored rollouts, got {prompts}; "
            "roll out more (--num_prompts), or show fewer examples (--judge_exemplars)"
        )


def known_pairs(config: ProfileConfig, summary: Summary) -> tuple[list[Exemplar], list[str]]:
    """The prompts with two scored rollouts or more, as the judge reads them, with their variances; and their ids."""
    pairs, ids = [], []
    for row, group, rewards in zip(summary.rows, summary.groups, summary.rewards, strict=True):
        record, column = summary.data.rows[row], config.judge_column
        if len(rewards) > 1:
            text = prompt_text(group["prompt"]) if column is None else str(record[column])
            variance = float(np.var(summary.scorer.spec.scores(np.array(rewards))))
            pairs.append(Exemplar(text, min(variance, MAX_VARIANCE)))
            ids.append(group["id"])
    _check_enough(config, len(pairs))
    return pairs, ids


def _asked(
    model: Any,
    tokenizer: Any,
    questions: Sequence[Question],
    realised: np.ndarray,
    config: ProfileConfig,
    rollout: float,
) -> dict[str, Any]:
    """The numbers of one form; `rollout` is the mean tokens of a rollout."""
    form, length = questions[0].format, context_length(model)
    window = None if length is None else length - form.max_tokens
    encoded = [QuestionEncoder(tokenizer, window=window).encode(question) for question in questions]
    fits = [row for row, one in enumerate(encoded) if one.ids]
    drawn = _draw(model, tokenizer, [(questions[row], encoded[row]) for row in fits], config)
    said = [form.read(one.texts[0]) for one in drawn]
    read = [row for row, value in enumerate(said) if value is not None]
    values = np.array([said[row] for row in read], dtype=np.float64)
    came = realised[[fits[row] for row in read]]
    tokens = float(np.mean([one.tokens[0] for one in drawn])) if drawn else 0.0
    judging, rolling = METIS().candidate_multiplier * tokens, config.planned_generations * rollout
    known = len(read) > 2 and values.std() > 0 and came.std() > 0
    return {
        "format": form.name,
        "asked": len(questions),
        "too_long": len(questions) - len(fits),
        "unreadable": 1.0 - len(read) / len(questions),
        "mean": float(values.mean()) if read else None,
        "spread": float(values.std()) if read else None,
        "correlation": float(np.corrcoef(values, came)[0, 1]) if known else None,
        "tokens": tokens,
        "share_of_step": judging / (judging + rolling) if judging + rolling else 0.0,
        "context": float(np.mean([len(encoded[row].ids) for row in fits])) if fits else None,
        "exemplars": float(np.mean([one.exemplars for one in encoded])),
        "whole": float(np.mean([one.exemplars == len(q.exemplars) for one, q in zip(encoded, questions, strict=True)])),
        "one_token": _one_token(tokenizer, form),
        "answers": [form.begins + one.texts[0] for one in drawn[:_SHOWN]],
    }


def _draw(
    model: Any, tokenizer: Any, asked: Sequence[tuple[Question, EncodedQuestion]], config: ProfileConfig
) -> list[Rollouts]:
    """One answer to each question, drawn as the rollouts are."""
    drawn: list[Rollouts] = []
    with evaluating(model):
        for start in range(0, len(asked), config.batch_size):
            some = asked[start : start + config.batch_size]
            options = SamplingOptions(
                n=1,
                temperature=config.temperature,
                top_p=config.top_p,
                max_new_tokens=some[0][0].format.max_tokens,
                seed=config.seed,
            )
            ids, encoded = [question.id for question, _ in some], [one.ids for _, one in some]
            drawn += sample_encoded(model, tokenizer, ids, encoded, options)
    return drawn


def _one_token(tokenizer: Any, form: JudgmentFormat) -> bool:
    """Whether each answer is one token, so that probabilities can be read without generating any."""
    sizes = [len(tokenizer(choice, add_special_tokens=False)["input_ids"]) for choice in form.choices]
    return bool(sizes) and set(sizes) == {1}


def verdict(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The form to take, None for none, and why, in one line."""
    good = [line for line in lines if line["unreadable"] <= MOST_UNREADABLE]
    apart = [line for line in good if line["spread"] is not None and line["spread"] >= LEAST_SPREAD]
    if not good:
        best = min(lines, key=lambda line: line["unreadable"])
        why = (
            f"METIS can't ask this model: {best['unreadable']:.0%} of its answers can't be read at the best "
            f"({best['format']}); take another model, or a method that asks none"
        )
        return {"take": None, "verdict": why}
    line = (apart or good)[0]
    parts = [f"{line['unreadable']:.0%} unreadable", f"predictions spread by {line['spread']:.3f}"]
    parts += [f"{line['share_of_step']:.0%} of a step's tokens"]
    if line["whole"] < 1.0:
        parts.append(f"all examples fit into {line['whole']:.0%} of the contexts")
    said = f"format {line['format']} ({', '.join(parts)})"
    if not apart:
        said += "; its predictions are all alike, so that chance decides at first: add explore 0.25"
    elif line["one_token"]:
        said += "; with answers: expected they cost no tokens"
    return {"take": line["format"], "verdict": f"METIS can ask this model: {said}"}


def judge_rows(judged: Mapping[str, Any]) -> list[list[str]]:
    """The numbers of each form as the rows of a table; `COLUMNS` are their names."""
    return [
        [
            line["format"],
            f"{line['unreadable']:.0%}",
            *("" if line[name] is None else f"{line[name]:.3f}" for name in ("mean", "spread", "correlation")),
            f"{line['tokens']:.1f}",
            f"{line['share_of_step']:.1%}",
            "" if line["context"] is None else f"{line['context']:.0f}",
            f"{line['exemplars']:.1f} of {judged['exemplars']}",
        ]
        for line in judged["formats"]
    ]
