"""Every recipe of examples/launch, dry-run with a model of the same architecture and random weights."""

import importlib
import io
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from random_model import save_random_model
from recipes import RECIPES, ROWS, recipe
from rich.console import Console

import rollwise as rw
from rollwise.cli import main
from rollwise.inference.fitting.fit_config import FitConfig
from rollwise.inference.head.spec import spec_for
from rollwise.launching.prepared import splits, verl_task
from rollwise.sampling.own_task import task_of
from rollwise.training.dry_run import dry_run
from rollwise.yaml_file import read_yaml

HEAD = Path(__file__).parents[2] / "examples/head"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_random_model(tmp_path_factory.mktemp("model"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_is_dry_run_with_random_weights(path: Path, model: Path, tmp_path: Path) -> None:
    if "task: bfcl" in path.read_text():
        pytest.importorskip("bfcl_eval")
    config, _ = recipe(path, tmp_path)
    said = io.StringIO()
    estimate = dry_run(replace(config, model=str(model)), console=Console(file=said, width=200))
    cost = estimate.of(config)
    assert cost.rollouts >= config.steps // config.updates * config.prompts_per_step * config.num_generations
    assert str(config.max_completion_length) in said.getvalue().replace(",", "")
    assert "prompt" in said.getvalue()


METIS = {"learning_rate": 2e-6, "max_completion_length": 8192, "num_generations": 8}
SHORT = {"learning_rate": 1e-6, "max_completion_length": 4096}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("metis-math", {"prompts_per_step": 256, "mini_batch_prompts": 64, **METIS}),
        ("metis-code", {"prompts_per_step": 128, "mini_batch_prompts": 64, **METIS}),
        ("metis-agentic", {"prompts_per_step": 64, "mini_batch_prompts": 64, **SHORT}),
        ("sec-3b-math", {"prompts_per_step": 256, "num_generations": 8, **SHORT}),
        ("sec-3b-countdown", {"prompts_per_step": 256, "num_generations": 8, "learning_rate": 1e-6, "steps": 240}),
        *[(name, {"num_generations_eval": 8}) for name in ("sec-3b-countdown", "sec-3b-math", "metis-agentic")],
        ("bots-1.5b-math", {"prompts_per_step": 256, "mini_batch_prompts": 32, "num_generations": 16, "updates": 8}),
        ("bots-7b-math", {"prompts_per_step": 512, "mini_batch_prompts": 64, "num_generations": 16, "updates": 8}),
        ("prioritized-7b-math", {"prompts_per_step": 4, "num_generations": 8, "temperature": 0.7, "steps": 250}),
        ("prioritized-7b-math", {"max_completion_length": 8192}),
        ("frontier-0.5b-countdown", {"prompts_per_step": 64, "num_generations": 8, "learning_rate": 1e-5, "steps": 80}),
    ],
)  # fmt: skip
def test_the_numbers_are_the_papers(name: str, settings: dict[str, float], tmp_path: Path) -> None:
    config, extra = recipe(next(path for path in RECIPES if path.stem == name), tmp_path, rows=80)
    assert {key: getattr(config, key) for key in settings} == settings
    assert "ppo_mini_batch_size" not in str(extra.options)


@pytest.mark.parametrize("name", ["sec-3b-math", "sec-3b-countdown"])
def test_the_policy_is_given_secs_conversation_as_text(name: str, tmp_path: Path) -> None:
    """SEC, appendix C: the text ends where the policy goes on. In a chat it would be a user's words."""
    config, _ = recipe(next(path for path in RECIPES if path.stem == name), tmp_path, rows=80)
    prompt = task_of(config).train_records(1, 0)[0]["prompt"]
    assert isinstance(prompt, str)
    assert prompt.startswith("A conversation between User and Assistant. ")
    assert prompt.endswith("Assistant: Let me solve this step by step.")


def test_the_arms_of_secs_mathematics_are_the_five_levels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC, section 3.1. A few problems of MATH have `Level ?`: an arm of two, and both were in every batch of 256."""
    made = ROWS["math-train"]
    monkeypatch.setitem(ROWS, "math-train", lambda i: {**made(i), "level": f"Level {i % 5 + 1 if i > 1 else '?'}"})
    config, _ = recipe(next(path for path in RECIPES if path.stem == "sec-3b-math"), tmp_path, rows=80)
    records = task_of(config).train_records(80, 0)
    assert {record["category"] for record in records} == {f"Level {level}" for level in range(1, 6)}


@pytest.mark.parametrize("name", ["metis-math", "metis-code"])
def test_the_judge_reads_the_problem_alone(name: str, tmp_path: Path) -> None:
    """METIS, appendices A.2, B.3 and B.4: no exemplar and no candidate says how the problem is to be answered."""
    config, _ = recipe(next(path for path in RECIPES if path.stem == name), tmp_path, rows=80)
    rows, _ = splits(config, verl_task(config))
    pool = rw.PromptPool(
        ids=[row["id"] for row in rows],
        prompts=[row["prompt"] for row in rows],
        columns={"prose": [row["prose"] for row in rows]},
    )
    (question, *_) = rw.METIS(pool, rails="off", **config.curriculum_options).consult(1)
    (row,) = (row for row in rows if row["id"] == question.prompt_id)
    said = question.context()[-1]["content"].split("[Candidate]\n")[1]
    assert "Please" in row["prompt"][0]["content"]
    assert said == f'PROMPT:\n"""\n{row["prompt"][0]["content"].partition(chr(10))[0]}\n"""'


def test_table_7_is_read_by_the_commands_of_the_head(capsys: pytest.CaptureFixture[str]) -> None:
    folder = HEAD
    for name, command in (
        ("rollouts", "rollouts countdown"),
        ("calibration", "rollouts countdown"),
        ("fit", "head fit rollouts/table7"),
        ("evaluate", "head evaluate rollouts/table7-held-out"),
    ):
        path = folder / f"table7-{name}.yaml"
        assert main([*command.split(), "--config", str(path), "--print_config"]) == 0
        printed = yaml.safe_load(capsys.readouterr().out)
        assert yaml.safe_load(path.read_text()).items() <= printed.items()
    assert len(list(folder.glob("table7-*.yaml"))) == 4


def test_table_7_fits_the_binary_head_on_every_position() -> None:
    """R = 2 states by L = 7 bins are 14 logits, though the task also rewards the format; 0.1 is no success."""
    config = FitConfig(**read_yaml(HEAD / "table7-fit.yaml"), rollouts=["x"])
    spec = spec_for([0.0, 0.1, 1.0], 300, states=config.rewards, edges=config.edges)
    assert (spec.size, spec.rewards, spec.edges[-1]) == (14, (0.0, 1.0), 1024)
    assert spec.reward_states([0.0, 0.1, 1.0]).tolist() == [0, 0, 1]
    assert (config.method, config.judging, config.most_positions) == ("paper", False, None)
    assert FitConfig(rollouts=["x"], out="y").most_positions == 100_000
    assert FitConfig(rollouts=["x"], out="y", method="paper", max_positions=9).most_positions == 9


@pytest.mark.parametrize("name", ["rollouts", "calibration"])
def test_table_7_stops_where_a_chat_model_does(name: str) -> None:
    """Table 7's stop tokens. A model whose settings name another end would go on after <|im_end|> (appendix B.5)."""
    assert read_yaml(HEAD / f"table7-{name}.yaml")["stop"] == ["<|im_end|>", "<|endoftext|>", "</answer>"]


def test_the_study_fits_the_head_of_table_7(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`examples/head_study.py --method paper` has the options of the recipe."""
    monkeypatch.syspath_prepend(str(HEAD.parent))
    given = importlib.import_module("head_study").METHODS["paper"]
    assert main(["head", "fit", "rollouts", "--out", "table7.safetensors", *given, "--print_config"]) == 0
    assert read_yaml(HEAD / "table7-fit.yaml").items() <= yaml.safe_load(capsys.readouterr().out).items()
