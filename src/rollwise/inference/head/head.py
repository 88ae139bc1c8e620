"""The success head: a linear read of a language model's last hidden state, kept as a file beside the model.

The matrix in this file is the truth; writing it into spare rows of a vocabulary (`export.py`) is a step for servers. As
a sidecar it needs no spare rows, no quantisation changes it, and the model generates the same with and without it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollwise.errors import ConfigError, StateFileError
from rollwise.inference.head.spec import HeadSpec
from rollwise.inference.head.verdict import Verdict
from rollwise.models.identity import model_facts
from rollwise.models.loading import need
from rollwise.state import check_no_folder, make_folder, write_atomically

if TYPE_CHECKING:
    import torch

FORMAT = "rollwise-success-head-1"
FACTS = ("architecture", "hidden_size", "num_hidden_layers", "tokenizer")
"""What a file must say of the model."""
WEIGHT = "success_head"
VERDICT, VERDICT_BIAS = "verdict", "verdict_bias"


@dataclass(frozen=True)
class SuccessHead:
    """Reads success and remaining length from hidden states.

    Args:
        weight: (R * L, H) float32.
        spec: What the rows mean.
        model: Facts of the model and tokenizer that it was fitted on (`made_by`).
        about: Anything else worth keeping, JSON-safe: how it was fitted, and on which prompts (`fitted_on`).
        verdict: What finished candidates are judged by; without one it is `value_end`, as in the paper.

    Raises:
        ConfigError: shapes that don't belong together, or numbers that are NaN or infinite.
    """

    weight: torch.Tensor
    spec: HeadSpec
    model: dict[str, Any] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    verdict: Verdict | None = None

    def __post_init__(self) -> None:
        if self.weight.ndim != 2 or self.weight.shape[0] != self.spec.size:
            raise ConfigError(
                f"weight must be ({self.spec.size}, hidden size) for {self.spec.num_rewards} reward states and "
                f"{self.spec.num_lengths} length bins, got {tuple(self.weight.shape)}"
            )
        parts = {"weight": self.weight}
        if self.verdict is not None:
            if self.verdict.weight.shape[1:] != (self.spec.num_rewards, self.hidden_size):
                raise ConfigError(
                    f"the verdict's weight must be (windows, {self.spec.num_rewards} reward states, "
                    f"{self.hidden_size} hidden units), got {tuple(self.verdict.weight.shape)}"
                )
            parts |= {"verdict's weight": self.verdict.weight, "verdict's bias": self.verdict.bias}
        for name, part in parts.items():
            if bad := int((~part.isfinite()).sum()):
                raise ConfigError(f"{bad} of the {part.numel()} numbers of its {name} are NaN or infinite")

    @property
    def states(self) -> tuple[float, ...]:
        """(R,) rewards of the states."""
        return self.spec.rewards

    @property
    def hidden_size(self) -> int:
        """H."""
        return int(self.weight.shape[1])

    @property
    def digest(self) -> str:
        """Names it by its numbers and what they mean."""
        digest = hashlib.sha256(self.weight.detach().cpu().numpy().tobytes())
        digest.update(json.dumps(self.spec.to_dict(), sort_keys=True).encode())
        if self.verdict is not None:
            for part in (self.verdict.weight, self.verdict.bias):
                digest.update(part.detach().cpu().numpy().tobytes())
            digest.update(repr(self.verdict.windows).encode())
        return digest.hexdigest()[:16]

    def to(self, device: Any) -> SuccessHead:
        """The same on a device."""
        verdict = None if self.verdict is None else self.verdict.to(device)
        return SuccessHead(self.weight.to(device), self.spec, self.model, self.about, verdict)

    def joint(self, hidden: torch.Tensor) -> torch.Tensor:
        """(..., H) hidden states -> (..., R, L) joint distributions, in float32."""
        probabilities = (hidden.to(self.weight.dtype) @ self.weight.T).softmax(-1)
        return probabilities.reshape(*hidden.shape[:-1], self.spec.num_rewards, self.spec.num_lengths)

    def read(self, hidden: torch.Tensor, logits: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """(..., H) hidden states -> (..., R) chances of the reward states, (...) expected remaining tokens."""
        joint = self.joint(hidden)
        midpoints = joint.new_tensor(self.spec.midpoints)
        return joint.sum(-1), joint.sum(-2) @ midpoints

    def value(self, hidden: torch.Tensor) -> torch.Tensor:
        """(..., H) hidden states -> (...) V, expected rewards."""
        chances = self.read(hidden)[0]
        return chances @ chances.new_tensor(self.states)

    def save(self, path: str | Path) -> Path:
        """Write `path`, a safetensors file that other programs can read too; what it says is in its metadata."""
        file = Path(path)
        make_folder(file.parent)
        facts: dict[str, Any] = {
            "format": FORMAT,
            "spec": self.spec.to_dict(),
            "model": self.model,
            "about": self.about,
        }
        tensors = {WEIGHT: self.weight}
        if self.verdict is not None:
            facts["windows"] = list(self.verdict.windows)
            tensors |= {VERDICT: self.verdict.weight, VERDICT_BIAS: self.verdict.bias}
        metadata = {name: json.dumps(value) for name, value in facts.items()}
        contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        write_atomically(file, need("safetensors.torch", "a success head").save(contiguous, metadata=metadata))
        return file

    @classmethod
    def load(cls, path: str | Path, *, without_facts: bool = False) -> SuccessHead:
        """Read what `save` wrote, checked: shapes, finite numbers, and that it says which model it belongs to.

        A file without these facts would fit any model of its width and be noise there, so it is refused unless asked
        for. Heads of an earlier version have no digest of the weights and no hashes of the prompts. They load, and the
        commands say what they can't check (`fitted_on`).

        Args:
            path: The file.
            without_facts: Take a head that does not say which model it was fitted on. `rollwise bestof` does so
                with `--transfer`.

        Raises:
            StateFileError: there is no such file, or it holds no usable success head.
        """
        need("torch", "a success head")
        from safetensors import SafetensorError, safe_open

        file = Path(path)
        if not file.is_file():
            raise StateFileError(f"success head {str(file)!r} does not exist; make one with `rollwise head fit`")
        try:
            with safe_open(str(file), framework="pt") as opened:
                facts = {name: json.loads(text) for name, text in (opened.metadata() or {}).items()}
                weight = opened.get_tensor(WEIGHT).float().clone()  # not a view of the file
                verdict = None
                if "windows" in facts:
                    rows, bias = (opened.get_tensor(name).float().clone() for name in (VERDICT, VERDICT_BIAS))
                    verdict = Verdict(rows, bias, tuple(facts["windows"]))
            if facts.get("format") != FORMAT:
                raise ValueError(f"its format is {facts.get('format')!r}, not {FORMAT!r}")
            missing = [name for name in FACTS if name not in facts["model"]]
            if missing and not without_facts:
                raise ValueError(
                    f"it does not say which model it was fitted on (no {', '.join(missing)}), and would fit any; fit "
                    "one with `rollwise head fit`"
                )
            return cls(weight, HeadSpec.from_dict(facts["spec"]), facts["model"], facts["about"], verdict)
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise StateFileError(f"{str(file)!r} holds no success head of rollwise: {error}") from error

    def check(self, model: Any, tokenizer: Any) -> None:
        """Refuse a model or tokenizer that this head was not fitted on.

        Weights may differ: a head transfers to other checkpoints of the same model (Table 6). Architecture, width,
        vocabulary and token ids may not. Of the weights see `fitted_on.check_weights`.

        Raises:
            ConfigError: they are others; the message names what differs.
        """
        found = model_facts(model, tokenizer)
        for name, value in self.model.items():
            if name in found and found[name] != value:
                raise ConfigError(
                    f"this success head was fitted on a model whose {name} is {value!r}, this one's is "
                    f"{found[name]!r}; fit a head on rollouts of this model with `rollwise head fit`"
                )
        module = output_embeddings(model)
        self.check_width(int(getattr(module, "in_features", None) or module.weight.shape[1]))  # shards may not show it

    def check_width(self, width: int) -> None:
        """`ConfigError` unless it reads hidden states of this width."""
        if width != self.hidden_size:
            raise ConfigError(
                f"this success head reads {self.hidden_size} hidden units, the model has {width}; fit a head on "
                "rollouts of this model with `rollwise head fit`"
            )


def output_embeddings(model: Any) -> Any:
    """The module that makes logits of hidden states: what a head reads the input of.

    Raises:
        ConfigError: the model has none.
    """
    module = model.get_output_embeddings()
    if module is None or getattr(module, "weight", None) is None:
        raise ConfigError(f"{type(model).__name__} has no output embeddings; a causal language model is needed")
    return module


def head_to_replace(out: str) -> SuccessHead | None:
    """The head in the file `out`, which is to be written anew; None if there is no such file.

    Raises:
        ConfigError: a folder, or a file of anything else, which must not be replaced.
    """
    check_no_folder(out, "head.safetensors")
    if not Path(out).exists():
        return None
    try:
        return SuccessHead.load(out, without_facts=True)
    except StateFileError as error:
        raise ConfigError(f"out would replace what is no head: {error}; give another --out, or delete it") from error
