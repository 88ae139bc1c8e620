"""SkyRL's entry point with a curriculum.

python -m skyrl.train.entrypoints.main_base trainer.override_entrypoint=rollwise.engines.skyrl_main \
        rollwise.curriculum=bots "rollwise.curriculum_options={seed: 0}" rollwise.fully_async=false ...
"""

from __future__ import annotations

import sys
from typing import Any

from rollwise.engines.hooks import check_hooks
from rollwise.errors import ConfigError
from rollwise.yaml_file import parse_yaml

_PREFIX = "rollwise."


def take_settings(argv: list[str]) -> dict[str, Any]:
    """The settings given as `rollwise.NAME=VALUE`; they and the entry point are taken out of `argv`.

    Raises:
        ConfigError: a value is not valid YAML.

    >>> take_settings(["x", "rollwise.curriculum=bots", "rollwise.curriculum_options={forgetting: 1e-1}"])
    {'curriculum': 'bots', 'curriculum_options': {'forgetting': 0.1}}
    """
    own = [word for word in argv if word.startswith(_PREFIX)]
    argv[:] = [word for word in argv if word not in own and not word.startswith("trainer.override_entrypoint=")]
    found = {}
    for word in own:
        name, _, value = word.removeprefix(_PREFIX).partition("=")
        try:
            found[name] = parse_yaml(value)
        except ValueError as error:
            raise ConfigError(f"{word} {error}; mend its value") from error
    return found


def experiment(cfg: Any, settings: dict[str, Any]) -> Any:
    """SkyRL's experiment with the curriculum's data set and trainer.

    Raises:
        ConfigError: workers in the data loader, or checkpoints in a bucket.
        SilentNoOpError: a hook of SkyRL's has moved.
    """
    from skyrl.train.entrypoints.main_base import BasePPOExp
    from skyrl.train.fully_async_trainer import FullyAsyncRayPPOTrainer
    from skyrl.train.trainer import RayPPOTrainer

    from rollwise.engines.skyrl import RELEASE, TRAINER_HOOKS, CurriculumPrompts, Telling

    check_hooks(RELEASE, TRAINER_HOOKS)
    settings = dict(settings)
    base = FullyAsyncRayPPOTrainer if settings.pop("fully_async", False) else RayPPOTrainer
    if cfg.data.dataloader.num_workers:
        raise ConfigError(f"data.dataloader.num_workers must be 0, got {cfg.data.dataloader.num_workers}")
    if "://" in str(cfg.trainer.ckpt_path):
        raise ConfigError(f"trainer.ckpt_path must be a folder on a file system, got {cfg.trainer.ckpt_path!r}")

    class Experiment(BasePPOExp):
        def get_train_dataset(self) -> CurriculumPrompts:
            prompts = CurriculumPrompts(
                datasets=cfg.data.train_data,
                tokenizer=self.tokenizer,
                max_prompt_length=cfg.trainer.max_prompt_length,
            )
            return prompts.attach(settings, cfg.generator.n_samples_per_prompt, cfg.trainer.train_batch_size)

        def get_trainer(self, *arguments: Any, **named: Any) -> Any:
            return type("CurriculumTrainer", (Telling, base), {})(*arguments, **named)

    return Experiment(cfg)


def _run(cfg: Any, settings: dict[str, Any]) -> None:
    experiment(cfg, settings).run()


def main() -> None:
    """Train as `skyrl.train.entrypoints.main_base` does, with a curriculum."""
    import ray
    from skyrl.train.config import SkyRLTrainConfig
    from skyrl.train.utils import validate_cfg
    from skyrl.train.utils.utils import initialize_ray

    settings = take_settings(sys.argv)
    cfg = SkyRLTrainConfig.from_cli_overrides(sys.argv[1:])
    validate_cfg(cfg)
    initialize_ray(cfg)
    ray.get(ray.remote(num_cpus=1)(_run).remote(cfg, settings))
