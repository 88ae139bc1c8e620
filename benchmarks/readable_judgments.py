"""How many of a pretrained model's judgments can be read, with K exemplars and without.

    python benchmarks/readable_judgments.py MODEL [--format words] [--exemplars 0 3 9] [--temperatures 1.0 0.3]

The template is METIS's (appendix A.1), through the model's chat template. The exemplars' variances are those that a
policy of random skill could have had: k(8-k)/64 of k = 0 to 8. Nothing is trained. For a format whose answers are one
token ("digit"), what METIS's `answers="expected"` goes by is shown beside: probabilities, without generating.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch

from rollwise.judges import FORMATS, Exemplar, JudgmentFormat, Question
from rollwise.judges.base import prompt_text
from rollwise.judges.formats import make_format
from rollwise.models import load_policy, task_for
from rollwise.models.question_encoder import QuestionEncoder
from rollwise.models.sampler import context_length
from rollwise.training.judging.judge_loss import choice_tokens
from rollwise.training.judging.shared_prefix import common_prefix, last_logits, shared_prefix


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--format", choices=sorted(FORMATS), default="words")
    parser.add_argument("--task", default="countdown")
    parser.add_argument("--exemplars", type=int, nargs="+", default=[0, 3, 9])
    parser.add_argument("--temperatures", type=float, nargs="+", default=[1.0, 0.3])
    parser.add_argument("--candidates", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=None, help="most tokens of an answer; 128, or the format's fewer")
    parser.add_argument("--show", type=int, default=2, help="answers to print of each K")
    options = parser.parse_args()
    form = make_format(options.format)
    tokens = options.tokens or min(128, form.max_tokens)
    model, tokenizer = load_policy(options.model)
    model.eval()
    records = task_for(options.model, options.task, {}).train_records(options.candidates + max(options.exemplars), 0)
    texts = [prompt_text(record["prompt"]) for record in records]
    rng = np.random.default_rng(0)
    length = context_length(model)
    encoder = QuestionEncoder(tokenizer, window=None if length is None else length - tokens)
    for k in options.exemplars:
        solved = rng.integers(0, 9, size=k)
        memory = tuple(Exemplar(t, float(s * (8 - s) / 64)) for t, s in zip(texts, solved, strict=False))
        candidates = texts[len(texts) - options.candidates :]
        questions = [Question(f"q{i}", "", text, memory, form) for i, text in enumerate(candidates)]
        contexts = [encoder.encode(question).ids for question in questions]
        batch = tokenizer.pad({"input_ids": contexts}, padding_side="left", return_tensors="pt")
        for temperature in options.temperatures:
            torch.manual_seed(0)
            started = time.perf_counter()
            with torch.inference_mode(), shared_prefix(model):
                out = model.generate(
                    **batch,
                    do_sample=True,
                    temperature=temperature,
                    top_k=0,
                    top_p=1.0,
                    max_new_tokens=tokens,
                )
            seconds = time.perf_counter() - started
            width = batch["input_ids"].shape[1]
            answers = tokenizer.batch_decode(out[:, width:], skip_special_tokens=True)
            said = summary(answers, form)
            print(f"K={k}, temperature {temperature:g}: {said}; contexts of {width} tokens, {seconds:.0f} s")
            for answer in answers[: options.show]:
                print("   ", repr(answer[:300]))
            if form.choices:
                print("    expected:", weighed(model, tokenizer, contexts, form, temperature))


def weighed(model: Any, tokenizer: Any, contexts: list[list[int]], form: JudgmentFormat, temperature: float) -> str:
    """How probable answers that can be read are, and what they say on average, candidate by candidate."""
    shared = common_prefix(contexts)
    rest = tokenizer.pad({"input_ids": [ids[shared:] for ids in contexts]}, padding_side="left", return_tensors="pt")
    prefix = torch.tensor(contexts[0][:shared])
    started = time.perf_counter()
    with torch.inference_mode():
        logits = last_logits(model, rest["input_ids"], rest["attention_mask"], 1, prefix)[:, 0].double()
    seconds = time.perf_counter() - started
    chances = (logits / temperature).softmax(dim=1)[:, choice_tokens(tokenizer, form.choices)]
    values = torch.tensor([*form.choices.values()], dtype=torch.float64)
    means = (chances @ values) / chances.sum(dim=1)
    unread = 1 - float(chances.sum(dim=1).mean())
    return (
        f"failure rate {unread:.3f}, predictions mean {means.mean():.3f}, deviation {means.std():.3f}; {seconds:.0f} s"
    )


def summary(answers: list[str], form: JudgmentFormat) -> str:
    """How many can be read, and what they say."""
    read = [form.read(answer) for answer in answers]
    found = np.array([value for value in read if value is not None])
    boxes = sum("\\boxed" in form.begins + answer for answer in answers)
    spread = f"mean {found.mean():.3f}, deviation {found.std():.3f}" if len(found) else "none to average"
    rate = 1 - len(found) / len(answers)
    return f"{len(found)} of {len(answers)} read (failure rate {rate:.2f}, {boxes} with a box), predictions {spread}"


if __name__ == "__main__":
    main()
