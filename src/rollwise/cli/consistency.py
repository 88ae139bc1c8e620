"""`rollwise consistency`: majority votes over any endpoint that stop drawing once the answers agree."""

from __future__ import annotations

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli.formatting import data_parser, read_config
from rollwise.inference.endpoint.config import EndpointConfig
from rollwise.terminal import make_console, say

_EXAMPLES = """
examples:
  rollwise consistency math.jsonl --base_url http://localhost:8000/v1 --model Qwen/Qwen2.5-0.5B-Instruct
                                                      adaptive: at most 40 samples, until the majority is safe
  rollwise consistency math.jsonl ... --price_in 0.15 --price_out 0.6   what it cost and saved, by a million tokens
  rollwise consistency math.jsonl ... --prompt_column problem         the column that holds the prompts
  rollwise consistency math.jsonl ... --same math                     \\frac{1}{2}, \\frac12 and 0.5 are one answer
  rollwise consistency math.jsonl ... --reward rewards.py:accuracy    your own function says which answers are right
  rollwise consistency math.jsonl ... --concurrency 256 --ahead 4     faster, and a few samples more
  rollwise consistency math.jsonl ... --rule esc                      windows of 5, until all of one agree
  rollwise consistency math.jsonl ... --rule full --num_generations 40   all 40, to compare with
  rollwise consistency math.jsonl ... --n 1                           for a server that gives one sample a request
  rollwise consistency math.jsonl ... --answer_function answers.py:last_line   your own: text -> answer or None
  rollwise consistency math.jsonl ... --route completions --max_completion_length 256 --seed 0 --extra '{"top_k": 20}'

OUT gets a JSON line for each prompt: id, answers, chosen, why (agreed or budget), samples, requests, tokens, texts, and
correct where the data has a recorded answer. OUT.samples.jsonl gets each sample as it is finished, OUT.summary.json
the numbers shown. After a kill or Ctrl-C the same command goes on where it stopped, and draws no finished sample again.
`rollwise report OUT` makes a page of it.
"""


def build_parser() -> ArgumentParser:
    """The command's options."""
    return data_parser(
        EndpointConfig,
        data="a .jsonl, .json, .csv or .parquet file of prompts",
        usage="rollwise consistency DATA --base_url URL --model M [--rule adaptive|esc|full] [--num_generations 40]\n"
        "       [--OPTION VALUE ...]",
        description="Self-consistency that stops drawing once the answers agree: no head, no weights, any endpoint.",
        epilog=_EXAMPLES,
    )


def run(options: Namespace) -> int:
    """Answer what is missing, and show what it cost."""
    from rollwise.inference.endpoint.run import run_consistency
    from rollwise.inference.endpoint.summary import show_summary, summarise

    config = read_config(EndpointConfig, options)
    path, lines, failures, seconds, asked = run_consistency(config)
    show_summary(summarise(lines, config), config, make_console(), seconds=seconds, asked=asked)
    say(f"\n{path}\n".encode("utf-8", "backslashreplace").decode())  # a path may be no UTF-8
    if failures:
        from rollwise.reports.words import count

        id_, what = list(failures.items())[-1]  # says most: a server that went down comes last
        failed = f"{count(len(failures), 'prompt')} failed, for example {id_!r}: {what}"
        say(f"rollwise: {failed}; the same command tries again\n", error=True)
        return 1
    return 0
