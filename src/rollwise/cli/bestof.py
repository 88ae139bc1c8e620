"""`rollwise bestof`: best-of-N that gives up hopeless candidates early."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli.formatting import command_parser
from rollwise.inference.bestof.config import BestOfConfig
from rollwise.terminal import say

if TYPE_CHECKING:
    from rollwise.inference.serving.server_decoder import Spent

_EXAMPLES = """
examples:
  rollwise bestof countdown --select majority                      full best-of-8, chosen by vote: needs no head
  rollwise bestof countdown --select majority --policy esc --policy_options.window 4
                                                                   votes that stop once a window agrees: nor does this
  rollwise bestof countdown --head head.safetensors                full best-of-8, chosen by the head
  rollwise bestof countdown --head head.safetensors --policy sequential
                                                                   another candidate only while it is worth its tokens
  rollwise bestof countdown --head head.safetensors --evaluation rollouts/eval/evaluation
                                                                   the cheapest setting there that loses no accuracy
  rollwise bestof countdown --head head.safetensors --policy until --policy_options.threshold 0.9
                                                                   another candidate until one's verdict reaches .9
  rollwise bestof my.jsonl --model path/or/hub-id --policy check --check checks.py:looks_right
                                                                   until a text passes a check: needs no head
  rollwise bestof countdown --head head.safetensors --policy prune --mean_k 4
                                                                   the paper's blend by V(x), not value_q25 as in B.7:
                                                                   hard prompts get more candidates
  rollwise bestof my.jsonl --model path/or/hub-id --head head.safetensors --policy early-stop --stop '["</answer>"]'
  vllm serve exported --served-model-name m, then:
  rollwise bestof my.jsonl --base_url http://localhost:8000/v1 --model m --head exported --policy sequential
                                                                   on a server; `rollwise head export` makes the folder

Which policy, and how much it saves at what accuracy: rollwise head evaluate. A head: rollwise head fit.
Killed or interrupted, the same command goes on where it stopped.
"""


def build_parser() -> ArgumentParser:
    """The command's options."""
    parser = command_parser(
        usage="rollwise bestof DATA [--model M] [--head HEAD] [--policy P] [--k 8] [--OPTION VALUE ...]",
        description="Draw K candidates of each prompt, give up on those that look hopeless, and choose an answer.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("--config", action="config", help="YAML file with any of the options below.")
    parser.add_argument("data", type=str, help="a task's name, or a .jsonl, .json or .parquet file")
    parser.add_class_arguments(BestOfConfig, as_group=False, skip={"data"})
    return parser


def run(options: Namespace) -> int:
    """Answer what is missing, and say what it cost."""
    import numpy as np

    from rollwise.inference.bestof.run import run_bestof

    values = options.as_dict()
    values.pop("config", None)
    config = BestOfConfig(**values)
    try:
        answers = run_bestof(config)
    except KeyboardInterrupt:
        say("rollwise: interrupted; the same command goes on where it stopped\n", error=True)
        return 130
    lines = answers.lines
    for id_, why in list(answers.failures.items())[:8]:
        say(f"{id_}: {why}\n", error=True)
    if answers.failures:
        say(f"rollwise: {len(answers.failures):,} prompts have no answer; the same command asks again\n", error=True)
    if not lines:
        return 1
    mean = {name: np.mean([line[name] for line in lines]) for name in ("row_forwards", "steps", "k", "complete")}
    scored = "" if answers.accuracy is None else f"mean reward {answers.accuracy:.3f}; "
    notes = "".join(f"note: {note}\n" for note in answers.notes)
    took = f"; {answers.decoded / answers.wall_s:.1f} prompts a second" if answers.decoded else ""
    say(
        f"{len(lines):,} prompts by {config.policy} of {mean['k']:.1f} candidates: {scored}"
        f"{mean['row_forwards']:.1f} row forwards and {mean['steps']:.1f} steps a prompt, {mean['complete']:.1f} "
        f"candidates carried to the end{took}\n{_spent(answers.spent)}{notes}"
        f"{answers.path}: config.yaml, model.json, answers.jsonl\n"
    )
    return 1 if answers.failures else 0


def _spent(spent: Spent | None) -> str:
    if spent is None:
        return ""
    closed = f" ({spent.uncounted:,} closed before the server counted: as they came)" if spent.uncounted else ""
    return (
        f"server: {spent.wall_s:.1f} s, {spent.requests:,} requests, {spent.tokens_in:,} tokens in, "
        f"{spent.tokens_out:,} out{closed}\n"
    )
