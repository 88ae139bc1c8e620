"""A user's own data and rewards: trained from the command, killed, resumed; rewards of any range; success by name."""

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own import REWARDS, maths_file, tiny_model
from processes import Command
from toys import make_trainer, toy_dataset

import rollwise as rw
from rollwise.cli import main
from rollwise.errors import ConfigError, RewardError
from rollwise.training import CurriculumGRPOTrainer, CurriculumRLOOTrainer

PHASES = ("generation", "reward", "logprobs", "update", "evaluation", "ask", "tell")
TIMED = {"time", "wall_s", "ask_s", "tell_s", *(f"time/{phase}" for phase in PHASES)}


@pytest.fixture
def own(tmp_path: Path) -> Path:
    maths_file(tmp_path)
    tiny_model(tmp_path / "tiny")
    (tmp_path / "r.py").write_text(REWARDS)
    return tmp_path


def command(folder: Path, *more: str) -> list[str]:
    return [
        *("train", "--data", str(folder / "maths.jsonl"), "--prompt_column", "problem", "--category", "type"),
        *("--model", str(folder / "tiny"), "--steps", "10", "--prompts_per_step", "6", "--num_generations", "4"),
        *("--eval_prompts", "8", "--eval_every", "5", "--save_every", "2", "--max_completion_length", "2", *more),
    ]


def timeless(path: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [{k: v for k, v in row.items() if k not in TIMED} for row in rows]


@pytest.mark.slow
def test_killed_and_resumed_it_is_the_same_run_to_the_bit(own: Path) -> None:
    """200 problems, two rewards of different scale, the maths verifier among them."""
    pytest.importorskip("math_verify")
    more = ["--reward", "math", f"{own / 'r.py'}:brevity", "--success", "math"]
    straight, killed = own / "straight", own / "killed"
    assert main([*command(own, *more), "--out", str(straight)]) == 0
    process = Command(*command(own, *more), "--out", str(killed))
    rollouts = killed / "rollouts.jsonl"
    process.wait_until(lambda: rollouts.exists() and '"step": 6' in rollouts.read_text())
    process.send(signal.SIGKILL)
    process.wait()
    assert main(["train", "--resume", str(killed)]) == 0
    for name in ("rollouts.jsonl", "prompts.jsonl", "metrics.jsonl"):
        assert timeless(killed / name) == timeless(straight / name)
    for name in ("model.safetensors", "rollwise_state.json"):
        path = Path("checkpoints/checkpoint-10") / name
        assert (killed / path).read_bytes() == (straight / path).read_bytes()
    last = timeless(straight / "metrics.jsonl")[-1]
    assert {"rewards/math/mean", "rewards/brevity/mean"} <= last.keys()
    assert {r for line in timeless(rollouts) for r in line["rewards"]} == {0.0, 1.0}  # what was told: math alone
    page = (straight / "report.html").read_text()
    assert "maths.jsonl" in page
    assert "solved by math" in page
    assert ">Rewards<" in page
    assert "not there" not in page


def test_changed_data_and_rewards_are_said_at_a_resume(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = own / "run"
    reward = f"{own / 'r.py'}:starts"
    short = [*command(own, "--reward", reward), "--steps", "2", "--out", str(run)]
    assert main(short) == 0
    data = own / "maths.jsonl"
    data.write_text(data.read_text() + '{"problem": "1+1?", "answer": "2", "type": "sum"}\n')
    (own / "r.py").write_text(REWARDS + "\n")
    assert main(["train", "--resume", str(run), "--steps", "4"]) == 0
    said = "".join(capsys.readouterr())
    assert "the training prompts have changed" in said
    assert "learning rate 0.0003 is for the embedded policy" in said
    assert "the file of the reward has changed" in said


@pytest.mark.usefixtures("forked_workers")
def test_compare_on_own_data(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = own / "plan.yaml"
    plan.write_text(
        f"""
name: own
seeds: [0, 1]
baseline: uniform
base:
  data: {own / "maths.jsonl"}
  prompt_column: problem
  category: type
  model: {own / "tiny"}
  reward: {own / "r.py"}:starts
  steps: 2
  prompts_per_step: 4
  num_generations: 4
  eval_prompts: 4
  eval_every: 1
  max_completion_length: 3
methods:
  uniform: {{curriculum: uniform}}
  recommended: {{curriculum: recommended}}
"""
    )
    assert main(["compare", str(plan), "--out", str(own / "comparison")]) == 0
    assert len(list((own / "comparison").rglob("rollouts.jsonl"))) == 4
    assert capsys.readouterr().err.count("learning rate 0.0003 is for the embedded policy") == 1  # not in logs alone
    (own / "tiny/rollwise.json").touch()  # as the folder of an embedded policy has it
    assert main(["compare", str(plan), "--dry_run", "true"]) == 0
    assert "learning rate" not in capsys.readouterr().out


def test_lora_from_the_command(own: Path) -> None:
    pytest.importorskip("peft")
    lora = ["--peft.r", "2", "--peft.target_modules", "[q_proj]", "--reward", f"{own / 'r.py'}:starts"]
    assert main([*command(own, *lora), "--steps", "2", "--eval_prompts", "0", "--out", str(own / "run")]) == 0
    assert (own / "run/checkpoints/checkpoint-2/adapter_model.safetensors").exists()


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--reward", "nothing.py:f"], "reward file 'nothing.py' does not exist"),
        ([], "who scores the prompts of"),
        (["--reward", "R:starts", "--prompts_per_step", "500"], "a step needs 500 distinct prompts"),
        (["--reward", "R:starts", "--max_completion_length", "600"], "is more than the model's window of 512"),
        (["--reward", "R:starts", "--system", "Be brief."], "the model's tokenizer has no chat template"),
        (["--reward", "R:starts", "--peft.rank", "2"], "peft's LoraConfig has no option 'rank'"),
        (["--reward", "R:starts", "--peft.r", "two"], "peft refuses these options of --peft"),
        (
            ["--reward", "R:starts", "--peft.r", "2", "--peft.target_modules", "[q]"],
            "peft refuses these options of --peft",
        ),
        (
            ["--reward", "R:starts", "--trainer_options.reward_weights", "[1,2]"],
            "TRL refuses these options (trainer_options): Number of reward weights (2)",
        ),
        (["--reward", "R:starts", "--trainer_options.loss_type", "x"], "(trainer_options): Unknown loss type: x"),
        (["--reward", "R:starts", "--trainer_options.weight_decay", "x"], "weight_decay must be float, got 'x'"),
        (["--reward", "R:starts", "--trainer_options.max_grad_norm", "[1]"], "max_grad_norm must be float, got [1]"),
        (["--reward", "R:starts", "--trainer_options.epsilon_high", "x"], "must be float | None, got 'x'"),
        (["--reward", "R:starts", "--success", "start"], "did you mean 'starts'?"),
        (["--reward", "R:starts", "--reward_weights", "[1,2]"], "a number for each of the 1 rewards"),
        (["--reward", "R:starts", "--report_to", "wandb"], "report_to 'wandb' is not installed"),
    ],
)
def test_what_does_not_fit_is_one_line(
    own: Path, more: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [text.replace("R:", f"{own / 'r.py'}:") for text in more]
    assert main([*command(own, *given), "--out", str(own / "run")]) == 1
    said = capsys.readouterr().err
    assert reason in said
    assert "Traceback" not in said
    assert not (own / "run").exists()  # the command can be given again


# ---- rewards of any range, and success by name ----


def accuracy(completion_ids: list[list[int]], threshold: list[int], **_: Any) -> list[float]:
    return [float(sum(i < 14 for i in ids) >= t) for ids, t in zip(completion_ids, threshold, strict=True)]


def length_penalty(completion_ids: list[list[int]], **_: Any) -> list[float]:
    return [-0.05 * sum(ids) for ids in completion_ids]


class Bonus:
    """1.5 for one rollout, from the fourth generation on."""

    __name__ = "bonus"

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, completion_ids: list[list[int]], threshold: list[int], **_: Any) -> list[float]:
        self.calls += 1
        rewards = accuracy(completion_ids, threshold)
        return [1.5, *rewards[1:]] if self.calls > 3 else rewards


def told(trainer: Any) -> list[list[float]]:
    """The rewards of every outcome, in order, noted while the trainer trains."""
    seen: list[list[float]] = []
    tell = trainer.curriculum.tell

    def noting(outcomes: Any) -> Any:
        listed = list(outcomes)
        seen.extend([np.asarray(o.rewards).tolist(), np.asarray(o.advantages).round(5).tolist()] for o in listed)  # type: ignore[misc]
        return tell(listed)

    trainer.curriculum.tell = noting
    return seen


def test_a_reward_outside_the_range_does_not_end_a_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Undeclared, the range is widened, said once and kept in the checkpoint; declared, it is strict."""
    trainer = make_trainer(tmp_path / "a", reward=Bonus(), max_steps=6, save_steps=3, save_strategy="steps")
    trainer.train()
    spec = trainer.curriculum.reward_spec
    assert (spec.low, spec.high, spec.solved_at) == (0.0, 1.5, 1.0)
    assert sum("a reward lies outside [0, 1]" in record.message for record in caplog.records) == 1
    resumed = make_trainer(tmp_path / "a", reward=Bonus(), max_steps=7, save_steps=3, save_strategy="steps")
    resumed.train(resume_from_checkpoint=True)
    assert resumed.curriculum.reward_spec == spec
    strict = rw.PrioritizedReplay(seed=0, reward_spec=rw.RewardSpec())
    with pytest.raises(RewardError, match=r"outside \[0, 1\]"):
        make_trainer(tmp_path / "b", reward=Bonus(), curriculum=strict, max_steps=6).train()


def test_the_run_folder_says_the_range_that_holds(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path / "out", reward=Bonus(), max_steps=5, extra={"run": tmp_path / "run"})
    trainer.train()
    written = json.loads((tmp_path / "run/rewards.json").read_text())
    assert written == {"low": 0.0, "high": 1.5, "solved_at": 1.0}


def test_a_second_training_into_a_folder_says_the_range_anew(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path / "out", reward=accuracy, max_steps=1, extra={"run": tmp_path / "run"})
    for _ in range(2):
        trainer.train()
        assert (tmp_path / "run/rewards.json").exists()


def test_a_state_that_was_widened_goes_on_so() -> None:
    pool = rw.PromptPool(ids=["a", "b"])
    first = rw.Recommended(pool, seed=0)
    assert first.widen_rewards(-1.0, 0.5)
    assert not first.widen_rewards(-0.5, 1.0)
    first.tell([rw.Outcome(t.id, [-1.0, 1.0]) for t in first.ask(2)])
    second = rw.Recommended(pool, seed=0)
    second.load_state_dict(first.state_dict())
    assert second.reward_spec == first.reward_spec == rw.RewardSpec(low=-1.0, high=1.0, solved_at=1.0)
    declared = rw.Recommended(pool, seed=0, reward_spec=rw.RewardSpec())
    assert not declared.widen_rewards(-1.0, 2.0)
    wrong: list[tuple[Any, Any]] = [(float("-inf"), 2.0), (float("nan"), 2.0), (0.0, float("nan"))]
    for low, high in [*wrong, ("a", 2.0), (None, 2.0), (0.0, 10**400)]:
        with pytest.raises(ConfigError, match="finite|must be a number"):
            second.widen_rewards(low, high)


@pytest.mark.parametrize("penalised", [False, True])
def test_success_is_what_is_told_and_measured(tmp_path: Path, penalised: bool) -> None:
    """Two functions of different scale: pass@1 is the mean of the one that says what is solved."""
    functions = [accuracy, length_penalty] if penalised else [accuracy]
    trainer = make_trainer(tmp_path, reward=functions, extra={"success": "accuracy"}, max_steps=2)
    trainer.train()
    trainer.eval_dataset = toy_dataset(8)
    scores = trainer.evaluate(toy_dataset(8))
    assert scores["eval_pass@1"] == pytest.approx(scores["eval_rewards/accuracy/mean"])


def test_a_length_penalty_leaves_the_curriculums_outcomes_as_they_are(tmp_path: Path) -> None:
    """The policy does not move (learning rate 0), so both runs roll out the same."""
    seen = []
    for name, functions in (("a", [accuracy]), ("b", [accuracy, length_penalty])):
        trainer = make_trainer(
            tmp_path / name, reward=functions, extra={"success": "accuracy"}, max_steps=4, learning_rate=0.0
        )
        outcomes = told(trainer)
        trainer.train()
        seen.append(outcomes)
    assert seen[0]
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (CurriculumGRPOTrainer, {"scale_rewards": "batch"}),
        (CurriculumRLOOTrainer, {"normalize_advantages": True}),
        (CurriculumGRPOTrainer, {"scale_rewards": "group"}),
    ],
)
def test_advantages_of_what_is_solved_are_scaled_as_those_trained_on(
    tmp_path: Path, kind: type, options: dict[str, Any]
) -> None:
    seen = []
    for name, extra in (("trained-on", {}), ("named", {"success": "accuracy"})):
        trainer = make_trainer(tmp_path / name, kind=kind, reward=accuracy, extra=extra, max_steps=2, **options)
        outcomes = told(trainer)
        trainer.train()
        seen.append(np.array(outcomes, dtype=float))
    assert np.ptp(seen[0][:, 1]) > 0
    np.testing.assert_allclose(seen[1], seen[0], atol=2e-5)


def test_a_function_that_is_no_reward_may_say_what_is_solved(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, reward=[length_penalty], extra={"success": accuracy}, max_steps=2)
    assert trainer.reward_func_names == ["length_penalty", "accuracy"]
    assert trainer.reward_weights.tolist() == [1.0, 0.0]
    outcomes = told(trainer)
    trainer.train()
    assert {r for rewards, _ in outcomes for r in rewards} <= {0.0, 1.0}  # type: ignore[union-attr]
    with pytest.raises(ConfigError, match=r"success must be the name of a reward, got 'acuracy'"):
        make_trainer(tmp_path, reward=[accuracy], extra={"success": "acuracy"})


def test_such_a_function_goes_with_arguments_given_by_place(tmp_path: Path) -> None:
    made = make_trainer(tmp_path)
    given = (made.model, [length_penalty], made.args, made.train_dataset, None, made.processing_class)
    trainer = CurriculumGRPOTrainer(*given, curriculum="uniform", success=accuracy)
    assert trainer.reward_func_names == ["length_penalty", "accuracy"]
    assert trainer.reward_weights.tolist() == [1.0, 0.0]
    assert made.args.reward_weights is None
    with pytest.raises(ConfigError, match="gets its weight, 0, in args; give args, too"):
        CurriculumGRPOTrainer(
            made.model, length_penalty, train_dataset=made.train_dataset, curriculum="uniform", success=accuracy
        )


def test_of_several_rewards_the_choice_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    trainer = make_trainer(tmp_path, reward=[length_penalty, accuracy])
    assert trainer.success == 1
    assert "'accuracy' says what is solved, as its name says so" in caplog.text
