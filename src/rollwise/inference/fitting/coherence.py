"""Whether a failure is coherent, by any function: a rule, or a language model as in Table 7's setting.

Source: `frontier-and-zip-rc-lite`, Table 7: a judge of failures alone, its answers cached.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.errors import ConfigError, RewardError
from rollwise.inference.files.rollout_set import BoolArray, RolloutSet
from rollwise.plugins import load_object


def solved_of(rollouts: RolloutSet) -> BoolArray:
    """(N,) whether each rollout is solved: it has no kind of failure, or its reward is that of a success."""
    if rollouts.failures:
        return np.array([name is None for name in rollouts.failures])
    config = rollouts.configs[0] if rollouts.configs else {}
    least = config.get("solved_at")
    return np.asarray(rollouts.rewards >= float(config.get("reward_high", 1.0) if least is None else least))


def coherent_by(
    rollouts: RolloutSet,
    where: str,
    kept: str | Path,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> BoolArray:
    """(N,) what a function says of each failure; False for solved rollouts, of which it is not asked.

    Args:
        rollouts: N rollouts with their texts.
        where: `file.py:function`, (prompt, completion) -> bool.
        kept: A file of the answers, a JSON line each, so that no pair is asked twice, also after a kill; a function
            whose file has changed is asked anew.
        progress: Called with pairs answered, and all.

    Raises:
        ConfigError: it names no function, or the rollouts have no texts.
        RewardError: the function fails, or gives something else than true or false.
    """
    function, digest = load_object(where, what="coherent")
    if not callable(function):
        raise ConfigError(f"coherent {where!r} can't be called, it is {function!r:.80}; name a function")
    if len(rollouts.texts) != len(rollouts):
        raise ConfigError("coherent judges texts, and a folder has none; roll out with `rollwise rollouts`")
    failed = np.flatnonzero(~solved_of(rollouts)).tolist()
    path, found = Path(kept), np.zeros(len(rollouts), dtype=bool)
    known = _read(path)
    with path.open("a", encoding="utf-8") as file:
        for done, i in enumerate(failed):
            prompt, text = rollouts.prompts[rollouts.prompt[i]], rollouts.texts[i]
            key = hashlib.sha256(json.dumps([where, digest, prompt, text]).encode()).hexdigest()[:24]
            if key not in known:
                known[key] = _asked(function, where, prompt, text)
                file.write(json.dumps({"key": key, "coherent": known[key]}) + "\n")
                file.flush()
            found[i] = known[key]
            if progress:
                progress(done + 1, len(failed))
    return found


def _read(path: Path) -> dict[str, bool]:
    if not path.exists():
        return {}
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:  # torn by a kill
        path.write_text(whole, encoding="utf-8")
    return {line["key"]: bool(line["coherent"]) for line in map(json.loads, whole.splitlines())}


def _asked(function: Callable[[Any, str], Any], where: str, prompt: Any, text: str) -> bool:
    try:
        said = function(prompt, text)
    except Exception as error:
        raise RewardError(f"coherent {where!r} raised {error!r} for the completion {text!r:.80}; fix it") from error
    if not isinstance(said, bool | np.bool_):
        raise RewardError(f"coherent {where!r} gave {said!r:.80} for the completion {text!r:.80}; give true or false")
    return bool(said)
