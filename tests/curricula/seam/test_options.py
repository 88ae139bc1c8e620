"""Every option of every method is checked as it is declared, described, saved, and missed where it differs."""

from __future__ import annotations

import json
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pytest

import rollwise as rw
from rollwise.curricula import CURRICULA
from rollwise.options import Count, Option, Share, options_of
from rollwise.testing.play import make_pool
from rollwise.testing.prompt_lengths import PromptLengths

METHODS = {name: kind for name, kind in CURRICULA.items() if name not in ("mixture", "nested")}

# Another value than the default, where it can't be found by its type; with what else it takes.
OTHERS: dict[tuple[str, str], dict[str, Any]] = {
    ("adarft", "column"): {"column": "score"},
    ("adcl", "column"): {"column": "score"},
    ("ordered", "column"): {"column": "score"},
    ("embedding-judge", "column"): {"column": "vectors"},
    ("sec", "category"): {"category": "kind"},
    ("sec", "within"): {"within": "exhaust"},
    ("dump", "category"): {"category": "kind"},
    ("gaussian-target", "category"): {"category": "kind"},
    ("gaussian-target", "column"): {"column": "score"},
    ("gaussian-target", "shares"): {"shares": {"c0": 1.0}},
    ("pac", "category"): {"category": "kind"},
    ("frontier", "embedding"): {"embedding": "vectors"},
    ("frontier", "key_column"): {"key_column": "kind"},
    ("frontier", "goldilocks_range"): {"goldilocks_range": (0.3, 0.7)},
    ("frontier", "taxonomy_weights"): {"taxonomy_weights": {"wrong": 2.0}},
    ("frontier", "memory_size"): {"memory_size": 77},
    ("frontier", "least_memory"): {"least_memory": 7},
    ("empirical-bayes", "category"): {"category": ["kind"]},
    ("recommended", "category"): {"category": ["kind"]},
    ("bots", "prior"): {"prior": (2.0, 1.0)},
    ("dots", "prior"): {"prior": (2.0, 1.0)},
    ("bots", "levels"): {"levels": (0.0, 0.5, 1.0), "belief": "dirichlet"},
    ("bots", "reward_sd"): {"reward_sd": 0.3, "belief": "gaussian"},
    ("mopps", "prior"): {"prior": (2.0, 1.0)},
    ("mapp", "prior"): {"prior": (2.0, 1.0)},
    ("selector", "estimator_options"): {"estimator_options": {"prior": (2.0, 1.0)}, "estimator": "beta"},
    ("selector", "acquisition"): {"acquisition": "target"},
    ("metis", "format"): {"format": "boxed"},
    ("metis", "answers"): {"answers": "expected", "format": "digit"},
    ("metis", "default"): {"default": 0.125},
    ("pcl", "reward"): {"reward": "continuous"},
    ("pcl", "judge"): {"judge": "frozen"},
    ("pcl", "judge_options"): {"judge_options": {"hidden": 512}},
    ("pcl", "default"): {"default": 0.25},
    ("actor-curator", "column"): {"column": "vectors"},
    ("gps", "column"): {"column": "vectors"},
    ("gps", "hidden"): {"hidden": 64},
    ("actor-curator", "hidden"): {"hidden": 64},
    ("embedding-judge", "default"): {"default": 0.25},
    ("embedding-judge", "hidden"): {"hidden": 128},
    ("embedding-judge", "predicts"): {"predicts": "variance"},
    ("bots", "implicit_shares"): {"implicit": ["interpolation", "kernel"], "implicit_shares": (3.0, 1.0)},
    ("bots", "references"): {"references": ["weak", "strong"]},
    ("dots", "references"): {"references": ["weak", "strong"], "implicit": "interpolation"},
    ("bots", "prior_strength"): {"prior": "difficulty", "prior_strength": 8.0},
    ("bots", "capability_by"): {"capability_by": "kind"},
    ("frontier", "belief"): {"belief": "frozen"},
    ("frontier", "belief_options"): {"belief": "frozen", "belief_options": {"hidden": 64}},
    ("metis", "judge_column"): {"judge_column": "kind"},
    ("pcl", "judge_column"): {"judge_column": "kind"},
}
LENGTHS = "rollwise.testing.prompt_lengths:PromptLengths"
BASE: dict[str, dict[str, Any]] = {
    "pcl": {"judge": "frozen", "judge_options": {"hidden": 64}},
    "hive": {"judge": LENGTHS},
    "prepo": {"judge": LENGTHS},
}
for _name, _measure in (("hive", "entropy"), ("prepo", "perplexity")):
    OTHERS |= {
        (_name, "history"): {"history": rw.BOTS()},
        (_name, "judge"): {"judge": PromptLengths(predicts=_measure, characters=2.0)},  # type: ignore[arg-type]
        (_name, "judge_options"): {"judge_options": {"characters": 2.0}},
    }
CASES = [(name, option) for name, kind in METHODS.items() for option in options_of(kind)]


def pool() -> rw.PromptPool:
    plain = make_pool(20)
    columns = {name: plain.columns[name] for name in plain.columns}
    rng = np.random.default_rng(0)
    columns |= {"score": rng.random(20), "vectors": rng.random((20, 3)), "kind": [f"k{i % 2}" for i in range(20)]}
    columns |= {"weak": rng.random(20) / 2, "strong": 0.5 + rng.random(20) / 2}
    return rw.PromptPool(ids=list(plain.ids), prompts=[f"prompt {i}" for i in range(20)], columns=columns)


def another(option: Option) -> Any:
    """A value that the type allows and that is not the default."""
    for kind in (option.type, *get_args(option.type)):
        if get_origin(kind) is Literal and (choices := [c for c in get_args(kind) if c != option.default]):
            return choices[0]
    if isinstance(option.default, bool):
        return not option.default
    for value in (0.375, 7, 0.25):
        try:
            if option.check(value) != option.default:
                return value
        except rw.ConfigError:
            continue
    raise AssertionError(f"give another value of {option.name!r} in OTHERS")


@pytest.mark.parametrize(("name", "option"), CASES)
def test_a_strict_load_refuses_another_value(name: str, option: str) -> None:
    base = BASE.get(name, {})
    given = OTHERS.get((name, option)) or {option: another(options_of(METHODS[name])[option])}
    if (name, option) == ("pcl", "judge_column"):
        base = {"judge": "text"}
        pytest.importorskip("sklearn")
    if (name, option) == ("pcl", "judge"):
        base, given = {"judge": "frozen", "judge_options": {}}, {"judge": "text"}
        pytest.importorskip("sklearn")
    saved = rw.make_curriculum(name, **{**base, **given})
    saved.bind(pool())
    state = json.loads(json.dumps(saved.state_dict()))
    now = rw.make_curriculum(name, **{**base, **{k: v for k, v in given.items() if k != option}})
    now.bind(pool())
    with pytest.raises(rw.StateError, match="options differ"):
        now.load_state_dict(state)
    rw.make_curriculum(name, **{**base, **given}).bind(pool())


def test_an_option_that_is_none_and_not_the_default_is_named() -> None:
    saved = rw.DOTS(pool(), reference_set=None)
    with pytest.raises(rw.StateError, match=r"\{'reference_set': \(None, 'not given'\)\}"):
        rw.DOTS(pool()).load_state_dict(json.loads(json.dumps(saved.state_dict())))


def test_every_option_is_described() -> None:
    found = {(name, option): options_of(METHODS[name])[option] for name, option in CASES}
    assert [case for case, option in found.items() if not option.help] == []  # lines in docstrings' Args
    assert [case for case, option in found.items() if not option.describe()] == []


def test_a_name_that_only_type_checkers_import_is_not_checked() -> None:
    class Method(rw.Uniform):
        def __init__(self, *, names: OnlyForTypeCheckers = (), share: Share = 0.5) -> None:  # type: ignore[name-defined]  # noqa: F821
            self.names = names
            super().__init__()

    assert Method(names=["a"]).names == ["a"]
    assert options_of(Method)["names"].type is Any
    with pytest.raises(rw.ConfigError, match="share must be"):
        Method(share=2)


def test_rollwise_has_its_own_names_alone() -> None:
    assert rw.BOTS is CURRICULA["bots"]
    assert not hasattr(rw, "check_name")  # which the package of methods imports


def test_bounds_are_checked_before_the_constructor_runs() -> None:
    class Method(rw.Uniform):
        def __init__(self, *, share: Share = 0.5, times: Count | None = None, loud: bool = False) -> None:
            self.share, self.times = share, times
            super().__init__()

    for wrong, text in [
        ({"share": 1.5}, r"share must be a number in \[0, 1\], got 1.5"),
        ({"share": "a"}, r"share must be a number in \[0, 1\], got 'a'"),
        ({"times": 0}, "times must be a whole number >= 1 or None, got 0"),
        ({"loud": "yes"}, "loud must be True or False, got 'yes'"),
    ]:
        with pytest.raises(rw.ConfigError, match=text):
            Method(**wrong)
    method = Method(share=1, times=np.int64(3))
    assert (method.share, method.times) == (1.0, 3)
    assert type(method.times) is int
    assert {k: method.options[k] for k in ("share", "times", "loud")} == {"share": 1.0, "times": 3, "loud": False}


@pytest.mark.parametrize(("kind", "old"), [(rw.SEC, "columns"), (rw.DUMP, "columns"), (rw.Recommended, "group_by")])
def test_the_category_has_one_name_and_its_old_ones_warn(kind: type[rw.Curriculum], old: str) -> None:
    now = kind(pool(), category="kind")
    assert now.grouped_by == ("kind",)
    with pytest.warns(FutureWarning, match=f"option {old} is called category now"):
        before = kind(pool(), **{old: "kind"})
    assert before.options == now.options
    with pytest.warns(FutureWarning, match="category now"):
        assert rw.make_curriculum(str(kind.method_name), **{old: "kind"}).options == now.options
    with pytest.raises(rw.ConfigError, match=f"{old} is the old name of category: give category alone"):
        kind(pool(), **{old: "kind", "category": "kind"})
    with pytest.warns(FutureWarning, match="category now"):
        assert rw.SEC.metis(columns="kind").options["quantiles"] is None


def test_states_with_an_old_name_are_loaded() -> None:
    lanes = {"arms": (1.0, rw.SEC(category="kind")), "rest": (1.0, rw.Recommended(category="kind"))}
    mixture = rw.Mixture(pool(), lanes=lanes)
    state = json.loads(json.dumps(mixture.state_dict()))
    for child, old in (("arms", "columns"), ("rest", "group_by")):
        options = state["options"]["children"][child]["options"]
        options[old] = options.pop("category")
    mixture.load_state_dict(state)
    state["options"]["children"]["arms"]["options"]["columns"] = ["category"]
    with pytest.raises(rw.StateError, match="options differ"):
        mixture.load_state_dict(state)


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        (rw.SEC, {"catgory": "type"}, "SEC has no option 'catgory' .did you mean 'category'.*; it has category, learn"),
        (rw.Recommended, {"optimsm": 1.0}, "Recommended has no option 'optimsm' .did you mean 'optimism'"),
        (rw.Uniform, {"expire": 3}, "Uniform has no option 'expire' .did you mean 'expire_after'"),
    ],
)
def test_an_unknown_keyword_names_the_nearest(kind: type[rw.Curriculum], given: dict[str, Any], said: str) -> None:
    with pytest.raises(rw.ConfigError, match=said):
        kind(**given)
