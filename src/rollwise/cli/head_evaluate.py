"""`rollwise head evaluate`: calibration of a head, and accuracy against cost of every policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli.formatting import command_parser
from rollwise.inference.evaluation.settings import EvaluationConfig
from rollwise.terminal import make_console, say

_EXAMPLES = """
examples:
  rollwise rollouts countdown --split eval --prompts 100 --rollouts 64 --out rollouts/eval
  rollwise head evaluate rollouts/eval --head head.safetensors       all tables and figures
  rollwise head evaluate rollouts/eval --head head.safetensors --prompts 50 --k 8 --seeds [0,1,2,3,4]
  rollwise head evaluate rollouts/eval --head head.safetensors --live "prune 0.5, early-stop 0.8"
                                                                          which settings are run live too, for seconds
  rollwise head evaluate rollouts/eval --head head.safetensors --rule majority --out evaluations/majority
  rollwise head evaluate rollouts/eval --head head.safetensors --check checks.py:looks_right
                                                                          beside them: until the text passes a check

It writes into ROLLOUTS/evaluation: report.html, table.md, policies.csv, evaluation.json and figures.
Each seed is decoded once in full; every setting is replayed from that exactly, and those on the front run live as well.
Killed or interrupted, the same command goes on where it stopped; more thresholds or seeds join what is there.
"""

_OWN = ("rollouts", "head", "model", "out", "prompts", "slots", "check", "fitted")


def build_parser() -> ArgumentParser:
    """The subcommand's options."""
    parser = command_parser(
        usage="rollwise head evaluate ROLLOUTS --head HEAD.safetensors [--out DIR] [--OPTION VALUE ...]",
        description="Evaluate a head and the adaptive decoder on held-out prompts: calibration on their rollouts, and\n"
        "accuracy, cost, steps and seconds of every policy against best-of-N, also at the same cost.",
        epilog=_EXAMPLES,
    )
    add = parser.add_argument
    add("rollouts", metavar="ROLLOUTS", type=str, help="a folder of `rollwise rollouts`, of prompts not fitted on")
    add("--head", type=str, required=True, help="a file of `rollwise head fit`")
    add("--model", type=str | None, default=None, help="folder, hub id or embedded; by default who made the rollouts")
    add("--out", type=str | None, default=None, help="the folder; by default ROLLOUTS/evaluation")
    add("--prompts", type=int | None, default=None, help="decode only this many of the first prompts; by default all")
    add("--slots", type=int, default=64, help="most candidates in the batch at once, of all prompts together")
    add(
        "--check", type=str | None, default=None,
        help="file.py:function, text -> bool: a row without the head, until the text passes; by default the task's own",
    )  # fmt: skip
    add("--fitted", type=bool, default=False, help="take rollouts of prompts that the head was fitted on as well")
    parser.add_class_arguments(EvaluationConfig, as_group=False, skip={"limit"})
    return parser


def run(options: Namespace) -> int:
    """Do what is missing, and write tables, figures and the page."""
    values = options.as_dict()
    own = {name: values.pop(name, None) for name in _OWN}
    try:
        page = _evaluate(own, values)
    except KeyboardInterrupt:
        say("rollwise: interrupted; the same command goes on where it stopped\n", error=True)
        return 130
    say(f"{page}\n{page.parent}: evaluation.json, table.md, policies.csv, figures\n")
    return 0


def _evaluate(own: dict[str, Any], values: dict[str, Any]) -> Path:
    from rollwise.cli.progress import Bars
    from rollwise.errors import ConfigError
    from rollwise.inference.decoding.decoder import AdaptiveDecoder, DecodingOptions
    from rollwise.inference.evaluation.bench import auc_steps, bench_of, decode_on, judge_on, scored_of
    from rollwise.inference.evaluation.calibration import calibration_report
    from rollwise.inference.evaluation.study import Evaluation
    from rollwise.inference.evaluation.text_check import load_check
    from rollwise.inference.files.model_of_rollouts import model_of
    from rollwise.inference.files.rollout_set import RolloutSet
    from rollwise.inference.head.fitted_on import check_weights, fitted_among, overlap_words, prompts_of
    from rollwise.inference.head.head import SuccessHead
    from rollwise.inference.policies.confidence import TokenConfidence
    from rollwise.models.identity import weights_digest
    from rollwise.reports.inference.report import read_evaluation, write_inference_report
    from rollwise.reports.inference.tables import verdict

    head, rollouts = SuccessHead.load(own["head"]), RolloutSet.read(own["rollouts"])
    bench = bench_of(own["rollouts"], own["prompts"])
    prompts = prompts_of(rollouts)
    fitted = fitted_among(head, prompts)
    if fitted and not own["fitted"]:
        raise ConfigError(
            f"{overlap_words(fitted, len(prompts))}, and there it looks better than it is: roll out others (a task's "
            "--split eval; of one file --split train and --split eval), or take these as well with --fitted true"
        )
    check = bench.check if own["check"] is None else load_check(own["check"])
    config = EvaluationConfig(limit=bench.limit, **{name: _tuple(value) for name, value in values.items()})
    console = make_console(stderr=True)
    with Bars(console) as bars:
        model, tokenizer, name = model_of(rollouts, own["model"], progress=bars.of("warm start"))
        head.check(model, tokenizer)
        check_weights(head, model)
        drawing = DecodingOptions(
            temperature=bench.temperature,
            top_p=bench.top_p,
            stop_strings=bench.stop,
            max_new_tokens=bench.limit,
            slots=own["slots"] or 64,
        )
        by_head, by_confidence = (
            AdaptiveDecoder(model, tokenizer, signal=signal, options=drawing) for signal in (head, TokenConfidence())
        )
        evaluation = Evaluation(
            own["out"] or Path(own["rollouts"]) / "evaluation",
            config,
            decode=decode_on(by_head, bench, config.k),
            confident=decode_on(by_confidence, bench, config.k),
            judge=judge_on(bench),
            states=head.states,
            solved_at=bench.solved_at,
            check=check,
            about={"model": name, "head": head.digest, "rollouts": str(own["rollouts"]),
                   "decoded": len(bench.ids), "temperature": bench.temperature, "top_p": bench.top_p,
                   "stop": list(bench.stop), "data": dict(bench.source)},
            digests={**bench.digests, "weights_digest": weights_digest(model)},
        )  # fmt: skip
        scored = scored_of(
            model,
            tokenizer,
            head,
            rollouts,
            check=check,
            progress=bars.of("rollouts scored"),
            kept=evaluation.out / "scored",
        )
        warmup = int(config.warmup or 1)
        steps = auc_steps(warmup, int(scored.lengths.max()))
        report = calibration_report(scored, steps=steps, prune_step=warmup, k=config.k, solved_at=bench.solved_at)
        evaluation.run(calibration=report, fitted=fitted, progress=bars.update)
    page = write_inference_report(evaluation.out)
    for sentence in verdict(read_evaluation(evaluation.out)):
        console.print(sentence, highlight=False)
    return page


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
