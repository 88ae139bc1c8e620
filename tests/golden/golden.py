"""Golden runs: hashes of what the commands write, clocks left out. They tell a change of shape from one of behaviour.

    python tests/golden/golden.py record              writes hashes.json beside this file
    python tests/golden/golden.py check [CASE ...]    runs the cases again and names what differs

Floating point differs between machines and versions of torch: record at the commit before a change, check after it, on
one machine. `make golden` checks. What is made once (a small policy) is kept in the folder --work.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
HASHES = HERE / "hashes.json"
SOURCE = HERE.parents[1] / "src"
sys.path.insert(0, str(SOURCE))  # this checkout, whatever is installed
Hashes = dict[str, str]
CASES: dict[str, Callable[[Path], Hashes]] = {}

CLOCKED = re.compile(
    r"(^|[_/])(time|wall|cpu|seconds|elapsed|duration|date|started|throughput)([_/]|$)|_s$|per_second|version|commit"
)
WRITTEN = (
    "rollouts.jsonl", "prompts.jsonl", "metrics.jsonl", "evaluations.jsonl", "rollwise_state.json", "results.json",
    "answers.jsonl", "samples.jsonl", "evaluation.json", "scores.jsonl", "profile.json", "head.json",
)  # fmt: skip


def case(function: Callable[[Path], Hashes]) -> Callable[[Path], Hashes]:
    CASES[function.__name__] = function
    return function


def digest(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()[:16]


def timeless(value: Any) -> Any:
    """A JSON value without what a clock, a version or the place of a folder says."""
    if isinstance(value, dict):
        return {key: timeless(v) for key, v in value.items() if not CLOCKED.search(key)}
    if isinstance(value, list):
        return [timeless(v) for v in value]
    if isinstance(value, str):
        return re.sub(r"/\S*/golden-\w+/", "", value)
    return value


def hash_file(path: Path, *, any_order: bool = False) -> str:
    """Of a file's content; the lines sorted where the order of work is not fixed."""
    if path.name == "rollwise_state.json":  # a header with a checksum, then the state
        return digest(json.dumps(timeless(json.loads(path.read_text().split("\n", 1)[1])), sort_keys=True))
    if path.suffix == ".jsonl":
        lines = [json.dumps(timeless(json.loads(line)), sort_keys=True) for line in path.read_text().splitlines()]
        return digest("\n".join(sorted(lines) if any_order else lines))
    if path.suffix == ".json":
        return digest(json.dumps(timeless(json.loads(path.read_text())), sort_keys=True))
    return digest(path.read_bytes())


def hash_folder(folder: Path, *, any_order: bool = False) -> Hashes:
    found = {
        str(path.relative_to(folder)): hash_file(path, any_order=any_order)
        for path in sorted(folder.rglob("*"))
        if path.name in WRITTEN or (path.suffix == ".json" and path.parent.name == "runs")
    }
    assert found, f"nothing was written into {folder}"
    return found


ENVIRONMENT = {
    **os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true", "PYTHONPATH": str(SOURCE),
    "HF_HUB_OFFLINE": "1",
}  # fmt: skip


def command(*arguments: Any, processes: int = 1, status: int = 0) -> str:
    launch = (
        ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)] if processes > 1 else []
    )
    done = subprocess.run(
        [sys.executable, *launch, "-m", "rollwise", *map(str, arguments)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == status, f"{arguments}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    return done.stdout


# ---------------------------------------------------------------- methods


def curricula() -> Iterable[tuple[str, Any]]:
    import rollwise as rw

    extra: dict[str, dict[str, Any]] = {
        "mixture": {
            "lanes": {
                "main": {"weight": 0.7, "curriculum": "prioritized"},
                "rest": {"weight": 0.3, "curriculum": "uniform"},
            }
        },
        "nested": {"categories": {"curriculum": "sec"}, "prompts": {"curriculum": "bots"}},
        "frontier": {"replay_ratio": 0.4, "memory_size": 4, "least_memory": 1, "candidates": 3},
        "pcl": {"judge": "frozen", "judge_options": {"hidden": 8}},
        "embedding-judge": {"hidden": 8},
        "hive": {"judge": "rollwise.testing.prompt_lengths:PromptLengths"},
        "prepo": {"judge": "rollwise.testing.prompt_lengths:PromptLengths"},
    }
    for name in rw.CURRICULA:
        yield name, extra.get(name, {})


@case
def methods(work: Path) -> Hashes:
    """Each method for 50 steps of asks, probes and tells, late and partial ones too; saved and loaded half-way."""
    import rollwise as rw
    from rollwise.testing.play import make_pool, play, snapshot

    script = [("probe", 4), ("ask", 6), ("tell", 5), ("ask", 4), ("tell-newest", 3), ("tell-partial", 1), ("lose", 1)]
    found = {}
    for name, options in curricula():
        asked, curriculum = [], rw.make_curriculum(name, seed=3, **options)
        curriculum.bind(make_pool(60))
        for half in range(2):
            player = play(curriculum, script * 25)
            asked.append(player.asked)
            state = snapshot(curriculum)
            found[f"{name}/state{half}"] = digest(state)
            curriculum = rw.make_curriculum(name, seed=9, **options)
            curriculum.bind(make_pool(60))
            curriculum.load_state_dict(json.loads(state), new_incarnation=False)
        found[f"{name}/asked"] = digest(json.dumps(asked))
        found[f"{name}/metrics"] = digest(json.dumps(curriculum.metrics(), sort_keys=True, default=str))
    return found


@case
def simulate(work: Path) -> Hashes:
    """Methods on a simulated learner for 50 steps, by the command."""
    left_out = (
        "mixture", "nested", "metis", "frontier", "pcl", "hive", "prepo", "embedding-judge", "gps", "actor-curator",
        "oracle",
    )  # fmt: skip
    methods: dict[str, dict[str, Any]] = {n: {"curriculum": n} for n, _ in curricula() if n not in left_out}
    for name in ("speed", "pilot-commit"):  # fewer than a group
        methods[name] |= {"curriculum_options": {"screen_rollouts": 2}}
    methods |= {
        "gated": {"curriculum": "uniform", "gate": "mixed"},
        "variance": {"curriculum": "vcrl", "gate": "variance"},
    }
    config = {
        "num_prompts": 120,
        "steps": 50,
        "prompts_per_step": 8,
        "num_generations": 4,
        "seeds": [0],
        "jobs": 1,
        "methods": methods,
    }
    (work / "plan.yaml").write_text(json.dumps(config))
    command("simulate", work / "plan.yaml", "--out", work / "out")
    return hash_folder(work / "out")


# ---------------------------------------------------------------- training


def policy(work: Path, task: str, **options: Any) -> Path:
    """A small embedded policy, made once."""
    from rollwise.models import EmbeddedConfig, embedded_policy
    from rollwise.tasks import make_task

    small = EmbeddedConfig(
        hidden_size=32,
        num_layers=1,
        num_heads=2,
        intermediate_size=64,
        num_demos=2000,
        sft_steps=120,
        sft_batch_size=64,
    )
    return embedded_policy(make_task(task, **options), config=small, cache_dir=work.parent / "golden-policies")


def train_options(work: Path, *more: Any, steps: int = 6) -> list[Any]:
    return [
        "train", "--model", policy(work, "countdown", levels=(1,), demo_accuracy=0.6),
        "--task_options.style", "compact", "--task_options.levels", "[1]", "--steps", steps, "--save_every", 2,
        "--eval_every", 3, "--eval_prompts", 8, "--num_generations_eval", 2, "--prompts_per_step", 8,
        "--num_generations", 4, "--num_prompts", 60, "--learning_rate", "1e-3", "--warmup_steps", 2, *more,
    ]  # fmt: skip


def trained(work: Path, *more: Any, processes: int = 1, steps: int = 6) -> Hashes:
    command(*train_options(work, *more, steps=steps), "--out", work / "run", processes=processes)
    return hash_folder(work / "run")


@case
def train_grpo(work: Path) -> Hashes:
    return trained(work, "--curriculum", "prioritized", "--curriculum_options.retest_every", 3)


@case
def train_rloo(work: Path) -> Hashes:
    return trained(work, "--trainer", "rloo", "--curriculum", "bots")


@case
def train_gate(work: Path) -> Hashes:
    return trained(work, "--gate", "mixed", "--curriculum", "empirical-bayes")


@case
def train_screening(work: Path) -> Hashes:
    return trained(work, "--curriculum", "speed", "--curriculum_options.screen_rollouts", 2)


@case
def train_metis(work: Path) -> Hashes:
    """METIS by expected answers: the policy judges, and its judgments train."""
    judging = ["--model", "embedded-judging"]
    return trained(work, *judging, "--curriculum", "metis", "--curriculum_options.candidate_multiplier", 2, steps=2)


@case
def train_tools(work: Path) -> Hashes:
    command(
        "train", "--task", "boxes", "--steps", 2, "--save_every", 1, "--eval_every", 2, "--eval_prompts", 4,
        "--num_generations_eval", 1, "--prompts_per_step", 4, "--num_generations", 2, "--num_prompts", 20,
        "--curriculum", "sec", "--out", work / "run",
    )  # fmt: skip
    return hash_folder(work / "run")


@case
def train_two_processes(work: Path) -> Hashes:
    return trained(work, "--curriculum", "recommended", "--gate", "mixed", processes=2, steps=4)


@case
def train_killed_and_resumed(work: Path) -> Hashes:
    run = work / "run"
    arguments = [*train_options(work, "--curriculum", "sec"), "--out", run]
    process = subprocess.Popen(
        [sys.executable, "-m", "rollwise", *map(str, arguments)],
        env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while not ((run / "rollouts.jsonl").exists() and '"step": 4' in (run / "rollouts.jsonl").read_text()):
        assert process.poll() is None, "ended before it was killed"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    command("train", "--resume", run)
    return hash_folder(run)


# ---------------------------------------------------------------- inference

REWARDS = '''
def begins_low(prompts, completions, threshold, **columns):
    """1 for a digit below the threshold first, 0.1 for any other text of three characters and more."""
    return [
        None if not c else 1.0 if c[0].isdigit() and int(c[0]) < t else 0.1 * (len(c) > 2)
        for c, t in zip(completions, threshold)
    ]
'''


@case
def head(work: Path) -> Hashes:
    """`rollouts`, `head fit`, `score`, `evaluate`, and `bestof` by three policies."""
    from rollwise.models import EmbeddedConfig
    from rollwise.models.embedded import ALPHABET, build_policy

    small = EmbeddedConfig(hidden_size=32, num_layers=1, num_heads=2, intermediate_size=32, max_length=48)
    model, tokenizer = build_policy(small, seed=0, alphabet=ALPHABET)
    for part in (model, tokenizer):
        part.save_pretrained(work / "model")
    rows = [{"prompt": f"{i}+{i % 7}=", "threshold": 4 + i % 7} for i in range(40)]
    (work / "rewards.py").write_text(REWARDS)
    reward, length = ("--reward", f"{work / 'rewards.py'}:begins_low"), ("--max_completion_length", 8)
    for part, of in (("fit", rows[:24]), ("held", rows[24:])):
        (work / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in of))
        command("rollouts", work / f"{part}.jsonl", "--model", work / "model", *reward, *length, "--out", work / part)
    fitted = work / "head.safetensors"
    command("head", "fit", work / "fit", "--out", fitted)
    command("head", "score", work / "held", "--head", fitted)
    command("head", "evaluate", work / "held", "--head", fitted, "--out", work / "evaluation", "--live", "none")
    for name in ("none", "sequential", "prune"):
        command(
            "bestof", work / "held.jsonl", "--model", work / "model", "--head", fitted,
            "--policy", name, *reward, *length, "--num_generations", 4, "--out", work / "bestof" / name,
        )  # fmt: skip
    return hash_folder(work) | {"head.safetensors": _tensors(fitted)}


def _tensors(path: Path) -> str:
    from safetensors.numpy import load_file

    return digest(b"".join(name.encode() + array.tobytes() for name, array in sorted(load_file(path).items())))


@case
def consistency(work: Path) -> Hashes:
    """Adaptive self-consistency over an endpoint, one sample in flight."""
    sys.path.insert(0, str(HERE.parent / "inference"))
    from fake_openai import FakeOpenAI

    (work / "data.jsonl").write_text(
        "".join(json.dumps({"prompt": f"{i}+1=", "answer": str(i + 1)}) + "\n" for i in range(12))
    )

    def script(prompt: str, sample: int) -> str:
        right = int(prompt.split("+")[0]) + 1
        return f"The answer is {right if (sample * 7 + right) % 5 else right + 1}."

    found = {}
    with FakeOpenAI(script, by_seed=True) as server:
        for name in ("full", "esc", "adaptive"):
            command(
                "consistency", work / "data.jsonl",
                "--base_url", server.base_url, "--model", "m", "--rule", name, "--num_generations", 8,
                "--concurrency", 1, "--seed", 5, "--out", work / name / "answers.jsonl",
            )  # fmt: skip
            found |= {f"{name}/{k}": v for k, v in hash_folder(work / name, any_order=True).items()}
    return found


def run_cases(names: list[str], folder: Path) -> dict[str, Hashes]:
    found = {}
    for name in names:
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="golden-", dir=folder) as work:
            found[name] = CASES[name](Path(work))
        print(f"{name}: {len(found[name])} hashes, {time.monotonic() - started:.0f} s", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["record", "check"])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; by default all")
    parser.add_argument("--hashes", type=Path, default=HASHES)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_intermixed_args()
    unknown = sorted(set(options.cases) - set(CASES))
    if unknown:
        parser.error(f"no case {unknown[0]!r}; there are {', '.join(CASES)}")
    found = run_cases(options.cases or list(CASES), options.work)
    before: dict[str, Hashes] = json.loads(options.hashes.read_text()) if options.hashes.exists() else {}
    if options.action == "record":
        options.hashes.write_text(json.dumps(before | found, indent=1, sort_keys=True) + "\n")
        return 0
    differ = [
        f"{name}: {key}"
        for name in found
        for key in sorted(found[name].keys() | before.get(name, {}).keys())
        if found[name].get(key) != before.get(name, {}).get(key)
    ]
    print("\n".join(["differ:", *differ]) if differ else "all as recorded")
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main())
