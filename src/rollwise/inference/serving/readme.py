"""How to serve an exported head, in words: the README of its folder."""

from __future__ import annotations

from typing import Any

from rollwise.inference.serving.vllm_signals import MOST_IDS


def recipe(serving: dict[str, Any]) -> str:
    """The README of what `serving_facts` describes."""
    spec, start, size = serving["spec"], serving["start"], serving["size"]
    lengths, rewards = len(spec["edges"]) - 1, len(spec["rewards"])
    return f"""# A model with a success head in its vocabulary

Ids {start} to {start + size - 1} are no tokens: their logits say how likely this rollout is to succeed, and how long it
will take. Row `bin + state * {lengths}`, reward states {spec["rewards"]}, edges of remaining tokens {spec["edges"]}.
`success_head/head.safetensors` is the same head as a file of its own, `serving.json` has all numbers of this page.

**Mask every unnamed row.** {len(serving["unnamed_ids"])} ids are no tokens and must never be drawn.
transformers masks them by `suppress_tokens` in `generation_config.json`; other servers must be told.
{_net(serving)}
## vLLM, unmodified

```python
import json
from vllm import LLM, SamplingParams

serving = json.load(open("serving.json"))
params = SamplingParams(
    logprob_token_ids=serving["vllm"]["logprob_token_ids"],                        # shows the head's rows
    logit_bias={{int(i): b for i, b in serving["vllm"]["logit_bias"].items()}},      # never draws an unnamed one
    temperature=1.0, max_tokens=1024,                                              # and leave `logprobs` unset
)
```

At each step the softmax over the first {rewards * lengths} of these {size} log-probabilities is the joint distribution;
one constant added to all of them, as the bias is, changes nothing. The others, if any, are of the verdict on a finished
candidate: `HeadSlice.of(serving)` of `rollwise.inference.serving.vllm_signals` reads both.{_limit(size)}

```python
from rollwise import inference

spec = inference.HeadSpec.from_dict(serving["spec"])
joint = spec.joint(logprobs)                       # (..., R, L)
spec.value(joint), spec.expected_length(joint)     # expected reward, expected remaining tokens
```

A bias of minus infinity would hide the head where a server biases before it takes log-probabilities: keep it finite.
"""


def _net(serving: dict[str, Any]) -> str:
    check, margin = serving["check"], serving["gauge_margin"]
    if check is None:
        return "Nothing was checked: no rollouts were given.\n"
    read = (
        f"On {check['positions']:,} positions the value read from the rows differs from the file's by at most "
        f"{check['value_error']:.1e}.\n"
    )
    forgotten = f"{check['mass']:.1e} on average, {check['greatest_mass']:.1e} at most"
    if margin is None:
        return f"Without the mask a reserved row is drawn with probability {forgotten}.\n{read}"
    return (
        f"As a safety net the rows share a vector that makes them unlikely: without the mask one is drawn with\n"
        f"probability {forgotten}, measured.\n{read}"
    )


def _limit(size: int) -> str:
    if size <= MOST_IDS:
        return ""
    return f" **vLLM shows at most {MOST_IDS} ids: fit a head with fewer bins or states than {size}.**"
