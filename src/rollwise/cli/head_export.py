"""`rollwise head export`: a model's folder with the head in its vocabulary, and a recipe for servers."""

from __future__ import annotations

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli.formatting import command_parser
from rollwise.inference.serving.export_config import ExportConfig
from rollwise.terminal import say

_EXAMPLES = """
examples:
  rollwise head export head.safetensors --rollouts rollouts/train --out served
  rollwise head export head.safetensors --rollouts rollouts/train --out served --resize     too few free rows: add some
  rollwise head export head.safetensors --model path/or/hub-id --out served                 unchecked, no safety net

OUT gets the model, its tokenizer, success_head/head.safetensors, serving.json and README.md (the recipe for vLLM).
Rollouts give the hidden states on which what was written is checked. `rollwise bestof` needs no export: it reads HEAD.
"""


def build_parser() -> ArgumentParser:
    """The subcommand's options."""
    parser = command_parser(
        usage="rollwise head export HEAD.safetensors --out DIR [--rollouts ROLLOUTS] [--model M] [--resize]",
        description="Write a head into rows of the output embeddings that no token names. All other rows, and the\n"
        "logits of all tokens, stay the same to the bit.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("head", metavar="HEAD", type=str, help="a file of `rollwise head fit`")
    parser.add_class_arguments(ExportConfig, as_group=False, skip={"head", "resize"})
    parser.add_argument("--resize", action="store_true", help="add rows, if too few are free")
    return parser


def run(options: Namespace) -> int:
    """Write the folder, and say what it holds."""
    from rollwise.cli.progress import Bars
    from rollwise.inference.serving.export_run import run_export

    with Bars() as bars:
        done = run_export(ExportConfig(**options.as_dict()), bars.of)
    say(
        f"{done.words()}{done.path}: the model, its tokenizer, success_head/head.safetensors, serving.json, README.md\n"
    )
    return 0
