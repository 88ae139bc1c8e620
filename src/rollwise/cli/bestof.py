"""`rollwise bestof`: best-of-N that gives up hopeless candidates early."""

from __future__ import annotations

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli.formatting import data_parser, read_config
from rollwise.inference.bestof.config import BestOfConfig
from rollwise.terminal import say

_EXAMPLES = """
examples:
  rollwise bestof countdown --select majority                      full best-of-8, chosen by vote: needs no head
  rollwise bestof countdown --select majority --policy esc --policy_options.window 4
                                                                   votes that stop once a window agrees: needs no head
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
                                                                   the paper's blend: hard prompts, by V(x), get more
                                                                   candidates
  rollwise bestof my.jsonl --model path/or/hub-id --head head.safetensors --policy early-stop --stop '["</answer>"]'
  vllm serve exported --served-model-name m, then:
  rollwise bestof my.jsonl --base_url http://localhost:8000/v1 --model m --head exported --policy sequential
                                                                   on a server; `rollwise head export` makes the folder

`rollwise head fit` makes a head. `rollwise head evaluate` says which policy saves how much, and at what accuracy.
After a kill or Ctrl-C the same command goes on where it stopped.
"""


def build_parser() -> ArgumentParser:
    """The command's options."""
    return data_parser(
        BestOfConfig,
        usage="rollwise bestof DATA [--model M] [--head HEAD] [--policy P] [--num_generations 8] [--OPTION VALUE ...]",
        description="Draw K candidates for each prompt, stop those that look hopeless, and choose an answer.",
        epilog=_EXAMPLES,
    )


def run(options: Namespace) -> int:
    """Answer what is missing, and say what it cost."""
    from rollwise.inference.bestof.run import run_bestof

    config = read_config(BestOfConfig, options)
    answers = run_bestof(config)
    for id_, why in list(answers.failures.items())[:8]:
        say(f"{id_}: {why}\n", error=True)
    if answers.failures:
        from rollwise.reports.words import count

        lacking = count(len(answers.failures), "prompt")
        say(f"rollwise: {lacking} without an answer; the same command asks again\n", error=True)
    if not answers.lines:
        return 1
    say(answers.words(config.policy))
    return 1 if answers.failures else 0
