"""The policy that can be asked for judgments: what teaches it the form, and that it is learnt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollwise.errors import ConfigError, TaskError
from rollwise.judges import CompactFormat
from rollwise.models import (
    EMBEDDED,
    JUDGING,
    EmbeddedConfig,
    JudgingConfig,
    embedded_policy,
    judging_policy,
    judgment_examples,
    load_policy,
    policy_source,
    task_for,
)
from rollwise.models.cache import RECEIPT
from rollwise.models.embedded import recipe_of
from rollwise.models.judging import in_batches
from rollwise.models.sampler import SamplingOptions, sample_prompts
from rollwise.models.tokenizer import character_tokenizer
from rollwise.tasks import Countdown, Reversal, Task

torch = pytest.importorskip("torch")
TASK = Reversal(longest=3)


def parts(context: str) -> tuple[list[tuple[str, str]], str]:
    """The exemplars of a context, prompt and letter each, and the candidate: of `1=?j2=?` `[("1=", "j")], "2="`."""
    first, *others, end = context.split("?")
    assert end == ""
    prompts = [first, *(piece[1:] for piece in others)]
    return list(zip(prompts[:-1], (piece[0] for piece in others), strict=True)), prompts[-1]


def test_contexts_hold_none_to_nine_exemplars_in_turn() -> None:
    """Every other has none; the others 1 to 9 and then 1 again: of 20 examples the 1st, 3rd, ... 19th have none."""
    examples = judgment_examples(TASK, 20, seed=5)
    assert [len(parts(e["prompt"])[0]) for e in examples[::2]] == [0] * 10
    assert [len(parts(e["prompt"])[0]) for e in examples[1::2]] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 1]
    assert all(len(e["completion"]) == 1 for e in examples)
    assert [len(parts(e["prompt"])[0]) for e in judgment_examples(TASK, 5, seed=5, exemplars=1)] == [0, 1, 0, 1, 0]
    assert [len(parts(e["prompt"])[0]) for e in judgment_examples(TASK, 3, seed=5, exemplars=0)] == [0, 0, 0]


def test_the_same_seed_gives_the_same_examples() -> None:
    assert judgment_examples(TASK, 30, seed=1) == judgment_examples(TASK, 30, seed=1)
    assert judgment_examples(TASK, 30, seed=1) != judgment_examples(TASK, 30, seed=2)


def test_letters_are_even_and_say_nothing_of_the_prompt() -> None:
    """4000 answers over 10 letters: 400 each, with a standard deviation of sqrt(4000 x 0.1 x 0.9) = 19.

    A correlation of 4000 independent pairs has a standard deviation of 1/sqrt(4000) = 0.016, of 2000 0.022.
    """
    examples = judgment_examples(TASK, 4000, seed=0)
    letters = np.array(["abcdefghij".index(e["completion"]) for e in examples])
    told = [parts(e["prompt"]) for e in examples]
    assert abs(np.bincount(letters, minlength=10) - 400).max() < 5 * 19
    assert {letter for known, _ in told for _, letter in known} == set("abcdefghij")
    lengths = [len(candidate) for _, candidate in told]
    assert abs(np.corrcoef(lengths, letters)[0, 1]) < 5 * 0.016
    newest = [(ord(known[-1][1]), letter) for (known, _), letter in zip(told, letters.tolist(), strict=True) if known]
    assert abs(np.corrcoef(np.array(newest).T)[0, 1]) < 5 * 0.022


def test_no_held_out_prompt_is_shown() -> None:
    told = [parts(e["prompt"]) for e in judgment_examples(TASK, 200, seed=0)]
    texts = [text for known, candidate in told for text in (*(prompt for prompt, _ in known), candidate)]
    assert texts
    assert not any(TASK.held_out(text.removesuffix("=")) for text in texts)


def test_the_oldest_exemplars_are_left_out_of_a_long_context() -> None:
    """A prompt of Reversal up to 3 has at most 4 characters; with mark and letter 6, as candidate 5.

    In 17 characters at least 2 exemplars fit (2 x 6 + 5); of the same draws, the newest are the ones that are kept.
    """
    whole, cut = judgment_examples(TASK, 40, seed=3), judgment_examples(TASK, 40, seed=3, longest=17)
    assert max(len(e["prompt"]) for e in whole) > 17
    for before, after in zip(whole, cut, strict=True):
        known, candidate = parts(after["prompt"])
        assert len(after["prompt"]) <= 17
        assert before["prompt"].endswith(after["prompt"])
        assert (candidate, after["completion"]) == (parts(before["prompt"])[1], before["completion"])
        assert len(known) >= min(2, len(parts(before["prompt"])[0]))


def test_the_longest_contexts_fit() -> None:
    """Reversal's longest prompt has 17 characters: 9 x (17 + 2) + 17 + 1 = 189; with begin, letter and end 192."""
    lengths = [max(len(record["prompt"]) for record in task.train_records(400, 0)) for task in (Reversal(), LEVELS)]
    assert lengths == [17, 16]
    assert 9 * (17 + 2) + 17 + 1 + 3 == 192 <= JudgingConfig().max_length


LEVELS = Countdown(levels=(1, 2, 3, 4, 5, 6))


@pytest.mark.parametrize("task", [Reversal(foreign=0.5), LEVELS])
def test_no_prompt_of_a_task_looks_like_a_judgment(task: Task) -> None:
    records = [*task.train_records(300, 0), *task.eval_records(100, 0)]
    assert not any(set("?abcdefghij") & set(record["prompt"]) for record in records)
    assert all(e["prompt"].endswith("?") for e in judgment_examples(task, 50, seed=0))


def test_chat_messages_are_refused() -> None:
    with pytest.raises(TaskError, match="not in chat messages"):
        judgment_examples(Countdown(style="tinyzero-chat"), 4, seed=0)


def test_half_of_a_batch_are_judgments_of_like_length() -> None:
    """4 judgments and batches of 2 + 2 are 2 batches; by length (1, 2 and 3, 4 characters) b, d and c, a are together.

    The demonstrations stay as they are.
    """
    judgments = [{"prompt": text, "completion": "a"} for text in ("aaaa", "b", "ccc", "dd")]
    demos = [{"prompt": str(i), "completion": "x"} for i in range(5)]
    prompts = [row["prompt"] for row in in_batches(judgments, demos, 2, seed=0)]
    assert sorted([prompts[0:2], prompts[4:6]]) == [["b", "dd"], ["ccc", "aaaa"]]
    assert prompts[2:4] + prompts[6:8] == ["0", "1", "2", "3"]
    assert len(prompts) == 8
    assert len({tuple(row["prompt"] for row in in_batches(judgments, demos, 2, seed)) for seed in range(9)}) == 2


def test_a_pretrained_model_is_its_own_source() -> None:
    assert policy_source("path/or/hub-id", TASK) == "path/or/hub-id"


@pytest.mark.parametrize(("model", "style"), [(EMBEDDED, "compact"), (JUDGING, "compact"), ("some/model", "tinyzero")])
def test_embedded_policies_get_the_compact_style(model: str, style: str) -> None:
    task = task_for(model, "countdown", {})
    assert isinstance(task, Countdown)
    assert task.style == style


@pytest.mark.parametrize("checkpoint", [False, True])
def test_the_folder_of_an_embedded_policy_gets_it_too(checkpoint: bool, tmp_path: Path) -> None:
    """As the `starts` of a plan are, and what has been trained from them."""
    if checkpoint:
        character_tokenizer().save_pretrained(tmp_path)
    else:
        (tmp_path / RECEIPT).touch()
    task = task_for(str(tmp_path), "countdown", {})
    assert isinstance(task, Countdown)
    assert task.style == "compact"


SMALL = EmbeddedConfig(
    hidden_size=32, num_layers=2, intermediate_size=64, num_demos=400, sft_steps=60, sft_batch_size=64
)
FEW = JudgingConfig(steps=120, exemplars=3, learning_rate=4e-3)


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("trl")
    return judging_policy(TASK, config=SMALL, judging=FEW, cache_dir=tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize("exemplars", [0, 3])
def test_it_gives_letters_that_can_be_read(policy: Path, exemplars: int) -> None:
    model, tokenizer = load_policy(policy)
    examples = judgment_examples(TASK, 1200, seed=9, exemplars=3)
    contexts = [e["prompt"] for e in examples if len(parts(e["prompt"])[0]) == exemplars][:200]
    options = SamplingOptions(n=1, max_new_tokens=4)
    drawn = [r for b in sample_prompts(model, tokenizer, list(map(str, range(200))), contexts, options) for r in b]
    read = [CompactFormat().read(r.texts[0]) for r in drawn]
    known = [value for value in read if value is not None]
    assert len(known) > 0.9 * len(read)
    assert len(set(known)) >= 8  # it explores, and does not repeat one letter


def test_it_starts_from_the_embedded_policy_with_more_tokens(tmp_path: Path) -> None:
    """ALPHABET's 20 characters, 4 special tokens and 2 tags are 26; with `?` and 10 letters 37, of 40 rows."""
    pytest.importorskip("trl")
    unmoved = JudgingConfig(steps=1, half_batch=4, learning_rate=1e-12)
    few = EmbeddedConfig(hidden_size=32, num_layers=1, intermediate_size=32, num_demos=8, sft_steps=1, max_length=300)
    policy = judging_policy(TASK, config=few, judging=unmoved, cache_dir=tmp_path)
    plain = embedded_policy(TASK, config=few, cache_dir=tmp_path)
    (old, before), (new, after) = load_policy(plain), load_policy(policy)
    assert (len(before), len(after), new.config.vocab_size) == (26, 37, 40)
    assert after.decode(after("7=?j")["input_ids"]) == "<s>7=?j"
    assert before("12=")["input_ids"] == after("12=")["input_ids"]
    assert (new.config.max_position_embeddings, after.model_max_length) == (300, 300)  # no less than it had
    assert torch.allclose(new.lm_head.weight[:26], old.lm_head.weight[:26], atol=1e-6)
    assert torch.allclose(new.model.norm.weight, old.model.norm.weight, atol=1e-6)
    letters, spread = new.lm_head.weight[26:], float(old.lm_head.weight[:26].detach().std())
    assert 0.8 * spread < float(letters.detach().std()) < 1.2 * spread  # 14 x 32 normal numbers: within 7 % or so


def test_it_is_cached_and_seeded(policy: Path) -> None:
    steps: list[tuple[int, int]] = []
    again = {"config": SMALL, "judging": FEW, "cache_dir": policy.parent, "progress": lambda *at: steps.append(at)}
    assert judging_policy(TASK, **again) == policy  # type: ignore[arg-type]
    assert steps == []
    before = (policy / "model.safetensors").read_bytes()
    (policy / "model.safetensors").unlink()
    assert judging_policy(TASK, **again) == policy  # type: ignore[arg-type]
    assert steps == [(i, 120) for i in range(1, 121)]  # the embedded one was there
    assert (policy / "model.safetensors").read_bytes() == before


def test_the_embedded_policy_keeps_the_name_it_has_in_caches() -> None:
    """A cached policy is found by the hash of its recipe; one more entry, or another value, would lose them all."""
    recipe = recipe_of(TASK, 0, EmbeddedConfig())
    assert sorted(recipe) == ["config", "libraries", "recipe", "seed", "task"]
    assert recipe["recipe"] == 1
    assert recipe["config"] == {
        "hidden_size": 96,
        "num_layers": 3,
        "num_heads": 4,
        "intermediate_size": 256,
        "max_length": 128,
        "num_demos": 20_000,
        "sft_steps": 900,
        "sft_batch_size": 64,
        "learning_rate": 4e-3,
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [({"steps": 0}, "steps must be"), ({"exemplars": -1}, "exemplars must be"), ({"learning_rate": 0.0}, "learning_")],
)
def test_refuses_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        JudgingConfig(**options)
