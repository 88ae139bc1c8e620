"""`rollwise head evaluate`: loads head, rollouts and model, and does the evaluation in its folder."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from rollwise.inference.decoding.decoder import AdaptiveDecoder, DecodingOptions
from rollwise.inference.evaluation.bench import Bench, bench_of
from rollwise.inference.evaluation.live import Progress, decode_on, judge_on
from rollwise.inference.evaluation.scored_rollouts import report_of, scored_of
from rollwise.inference.evaluation.settings import EvaluationConfig, EvaluationInputs
from rollwise.inference.evaluation.study import Evaluation
from rollwise.inference.files import RolloutSet, model_of
from rollwise.inference.head.fitted_on import check_prompts, check_weights
from rollwise.inference.head.head import SuccessHead
from rollwise.inference.head.viability_file import note_viability
from rollwise.inference.policies import TokenConfidence
from rollwise.models.identity import weights_digest
from rollwise.runs.evaluation_file import FAILED, viability_words

logger = logging.getLogger(__name__)


def run_evaluation(given: EvaluationInputs, options: dict[str, Any], *, progress: Progress) -> Evaluation:
    """Do what is missing of the evaluation.

    Args:
        given: What is evaluated.
        options: Of `EvaluationConfig`, all but `limit`, which is that of the rollouts.
        progress: Called with what is done, how much of it, and of how much.

    Raises:
        ConfigError: options that don't fit, prompts that the head was fitted on, or a folder of something else.
        StateFileError: a damaged file.
    """
    head, rollouts = SuccessHead.load(given.head), RolloutSet.read(given.rollouts)
    bench = bench_of(given.rollouts, given.num_prompts, check=given.check)
    fitted = check_prompts(head, rollouts, accepted=given.fitted)
    config = EvaluationConfig(limit=bench.limit, **options)
    model, tokenizer, name = model_of(rollouts, given.model, progress=partial(progress, "warm start"))
    head.check(model, tokenizer)
    check_weights(head, model)
    evaluation = _evaluation(given, config, bench, head, model, tokenizer, name)
    told = partial(progress, "rollouts scored")
    kept = evaluation.out / "scored"
    scored = scored_of(model, tokenizer, head, rollouts, check=bench.check, progress=told, kept=kept)
    report = report_of(scored, config, bench.solved_at)
    if (gate := report["viability"]) is not None:
        if gate["verdict"] == FAILED:
            logger.warning(viability_words(gate))
        if not fitted:
            note_viability(given.head, head.digest, gate)
    evaluation.run(calibration=report, fitted=fitted, progress=progress)
    return evaluation


def _evaluation(
    given: EvaluationInputs,
    config: EvaluationConfig,
    bench: Bench,
    head: SuccessHead,
    model: Any,
    tokenizer: Any,
    name: str,
) -> Evaluation:
    """The evaluation, with one decoder that reads the head and one that reads the tokens' confidence."""
    drawing = DecodingOptions(
        temperature=bench.temperature,
        top_p=bench.top_p,
        stop=bench.stop,
        max_new_tokens=bench.limit,
        slots=given.slots,
    )
    by_head, by_confidence = (
        AdaptiveDecoder(model, tokenizer, signal=signal, options=drawing) for signal in (head, TokenConfidence())
    )
    return Evaluation(
        given.folder,
        config,
        decode=decode_on(by_head, bench, config.num_generations),
        confident=decode_on(by_confidence, bench, config.num_generations),
        judge=judge_on(bench),
        states=head.states,
        solved_at=bench.solved_at,
        check=bench.check,
        late=by_head.refills,
        about={"model": name, "head": head.digest, "rollouts": given.rollouts, "decoded": len(bench.ids),
               "temperature": bench.temperature, "top_p": bench.top_p, "stop": list(bench.stop),
               "data": dict(bench.source)},
        digests={**bench.digests, "weights_digest": weights_digest(model)},
    )  # fmt: skip
