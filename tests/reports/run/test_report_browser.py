"""The report in a real browser, from disk: no console error, its controls work, and it fits a phone and paper."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lighter import empty_files

Open = Callable[..., Any]
RunMaker = Callable[..., Path]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run of six steps: a toy policy on TRL's trainer, with beliefs."""
    toys = pytest.importorskip("toys")
    import rollwise as rw
    from rollwise.reports import write_report
    from rollwise.training import Recorder, RunFolder

    folder = RunFolder(tmp_path_factory.mktemp("runs") / "toy-mopps")
    trainer = toys.make_trainer(folder.path / "trainer", curriculum=rw.MoPPS(seed=3))
    Recorder(folder).attach(trainer)
    trainer.train()
    with empty_files():
        write_report(folder.path)
    return folder.path


@pytest.fixture(scope="module")
def own_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two steps of the command on a user's own file, with two rewards of different scale."""
    own = pytest.importorskip("own")
    from rollwise.cli import main

    folder: Path = tmp_path_factory.mktemp("own")
    own.maths_file(folder)
    own.tiny_model(folder / "tiny")
    (folder / "r.py").write_text(own.REWARDS)
    rewards = ["--reward", f"{folder / 'r.py'}:starts", f"{folder / 'r.py'}:brevity", "--success", "starts"]
    words = ["train", "--data", str(folder / "maths.jsonl"), "--prompt_column", "problem", "--category", "type"]
    sizes = ["--steps", "2", "--prompts_per_step", "6", "--num_generations", "4", "--eval_prompts", "0"]
    short = ["--max_completion_length", "2", "--model", str(folder / "tiny"), "--out", str(folder / "run")]
    with empty_files():
        assert main([*words, *rewards, *sizes, *short]) == 0
    return folder / "run"


def test_own_data_rewards_and_prompts_are_on_the_page(own_data: Path, open_page: Open) -> None:
    page = open_page(own_data / "report.html")
    text = page.inner_text("body")
    assert "maths.jsonl" in text
    assert "solved by starts" in text
    curves = page.locator("figure", has_text="reward").all_inner_texts()
    assert any("starts" in curve and "brevity" in curve for curve in curves), curves
    asked = {line["prompt"][-1]["content"] if isinstance(line["prompt"], list) else line["prompt"]
             for line in rollouts_of(own_data)}  # fmt: skip
    shown = page.content()
    assert sum(prompt[:20] in shown for prompt in asked) == len(asked)


def rollouts_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "rollouts.jsonl").read_text().splitlines()]


def outcome(rewards: list[float]) -> str:
    return "mixed" if len(set(rewards)) > 1 else "all solved" if rewards[0] == 1 else "all failed"


def status(page: Any) -> str:
    return str(page.locator("#rollouts .status").text_content())


def count_shown(page: Any) -> int:
    return int(page.locator("#rollouts article").count())


def test_axis_buttons_switch_all_curves_at_once(whole_run: Path, open_page: Open) -> None:
    page = open_page(whole_run / "report.html")
    for figure in ("score", "effective_task_ratio"):
        assert page.locator(f"#{figure} .panel:visible").count() == 1
        assert "training step" in page.locator(f"#{figure} .panel:visible").inner_text()
    for name, axis in [("rollouts", "rollouts"), ("tokens", "generated tokens"), ("wall-clock", "training time")]:
        page.locator("#score .tabs button", has_text=name).click()
        for figure in ("score", "effective_task_ratio"):
            assert page.locator(f"#{figure} .panel:visible").count() == 1
            assert axis in page.locator(f"#{figure} .panel:visible").inner_text()
            assert page.locator(f"#{figure} [aria-pressed=true]").inner_text() == name


def test_keyboard_reaches_the_axis_buttons(whole_run: Path, open_page: Open) -> None:
    page = open_page(whole_run / "report.html")
    page.locator("#score .tabs button").first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator("#score [aria-pressed=true]").inner_text() == "rollouts"


def test_search_finds_a_known_completion(trained: Path, open_page: Open) -> None:
    groups = rollouts_of(trained)
    text = next(t for g in reversed(groups) for t in g["texts"] if len(t) > 3)
    page = open_page(trained / "report.html")
    assert status(page) == f"1\u2013{min(25, len(groups))} of {len(groups)} groups"
    page.locator("#rollouts [name=search]").fill(text.upper())
    hits = [g for g in groups if text.lower() in "\n".join([g["prompt_id"], g["prompt"], *g["texts"]]).lower()]
    page.wait_for_function(f"document.querySelector('.status').textContent.endsWith(' of {len(hits)} ' + "
                           f"({len(hits)} === 1 ? 'group' : 'groups'))")  # fmt: skip
    assert text.lower() in [mark.lower() for mark in page.locator("#rollouts mark").all_text_contents()]
    page.locator("#rollouts [name=search]").fill("no such text anywhere")
    page.wait_for_function("document.querySelector('.status').textContent === '0 groups'")
    assert count_shown(page) == 0


def test_filters_count_as_the_file_does(trained: Path, open_page: Open) -> None:
    groups = rollouts_of(trained)
    page = open_page(trained / "report.html")
    kinds = [outcome(g["rewards"]) for g in groups]
    for kind in set(kinds):
        page.locator("#rollouts [name=outcome]").select_option(kind)
        page.wait_for_function(
            f"document.querySelector('.status').textContent.includes('of {kinds.count(kind)} group')"
        )
        shown = page.locator("#rollouts .outcome").all_text_contents()
        assert shown
        assert set(shown) == {kind}
    page.locator("#rollouts [name=outcome]").select_option("")
    page.locator("#rollouts [name=from]").fill("2")
    page.locator("#rollouts [name=to]").fill("3")
    wanted = sum(g["step"] in (2, 3) for g in groups)
    page.wait_for_function(f"document.querySelector('.status').textContent.includes('of {wanted} groups')")
    steps = {text.split()[1] for text in page.locator("#rollouts .facts span:first-child").all_text_contents()}
    assert steps == {"2", "3"}


def test_rollouts_open_and_say_their_rewards(trained: Path, open_page: Open) -> None:
    last = rollouts_of(trained)[-1]
    page = open_page(trained / "report.html")
    first = page.locator("#rollouts article").first
    first.locator("summary").click()
    first.locator(".rollout").first.wait_for()
    assert first.locator(".rollout .text").all_text_contents() == list(dict.fromkeys(last["texts"]))


def test_pages_turn_and_the_order_reverses(whole_run: Path, open_page: Open) -> None:
    page = open_page(whole_run / "report.html")
    assert status(page) == "1\u201325 of 2,000 groups"
    assert page.locator(".turn button").first.is_disabled()
    page.locator(".turn button", has_text="Next").click()
    assert status(page) == "26\u201350 of 2,000 groups"
    assert count_shown(page) == 25
    page.locator("#rollouts [name=order]").select_option("earliest")
    page.wait_for_function("document.querySelector('.status').textContent.startsWith('1\u2013')")
    assert page.locator("#rollouts .facts").first.inner_text().startswith("step 1 ")


@pytest.mark.usefixtures("page_alone")
def test_hostile_texts_stay_texts(make_run: RunMaker, open_page: Open) -> None:
    from rollwise.reports import write_report

    attack = "</script><script>console.log('run')</script><img src=x onerror=console.log(1)>\u2028\ud800"
    row = {"step": 1, "prompt_id": attack, "prompt": attack, "rewards": [1, 0], "failures": [attack, None]}
    rows = [{**row, "lane": name, "category": attack + name, "texts": [attack, name]} for name in (attack, "b")]
    page = open_page(write_report(make_run([{"step": 1, "frac_mixed": 0.5}], rows)))
    page.locator("#rollouts [name=search]").fill("</script>")
    page.locator("#rollouts mark").first.wait_for()
    assert count_shown(page) == 2
    assert page.locator("#rollouts img, main script:not([type])").count() == 0


@pytest.mark.usefixtures("page_alone")
@pytest.mark.parametrize("width", [1280, 800])
def test_numbers_beside_names_of_categories_are_whole(make_run: RunMaker, open_page: Open, width: int) -> None:
    """MATH's names broke `0.375` in two, and cut the table off at the edge of its half of the page."""
    from rollwise.reports import write_report

    names = ["Counting & Probability", "Intermediate Algebra", "Precalculus"]
    folder = make_run([{"step": step, "eval/pass@1": 0.5} for step in (0, 10)])
    (folder / "evaluation_sets.json").write_text(json.dumps({"": {"ids": names, "categories": names}}))
    lines = [{"step": step, "set": None, "generations": 8, "reward": [0.5] * 3, "successes": [3, 2, 1]}
             for step in (0, 10)]  # fmt: skip
    (folder / "evaluations.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    table = open_page(write_report(folder), width=width).locator("#score_by_category table")
    assert table.evaluate("t => t.offsetWidth <= t.parentElement.clientWidth - 32")
    rows = """cells => cells.map(cell => { const range = document.createRange(); range.selectNodeContents(cell);
                                          return range.getClientRects().length; })"""
    assert set(table.locator("td:nth-child(n+3)").evaluate_all(rows)) == {1}


@pytest.mark.parametrize("width", [360, 768])
def test_no_sideways_scrolling(whole_run: Path, open_page: Open, width: int) -> None:
    page = open_page(whole_run / "report.html", width=width)
    page.locator("#rollouts summary").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    texts = page.evaluate("[...document.querySelectorAll('.panel:not([data-tab]) svg text, .chosen svg text')]"
                          ".map(t => t.getBoundingClientRect().height)")  # fmt: skip
    assert min(texts) > 8


def test_prints_to_paper_with_all_axes_and_the_last_groups(whole_run: Path, open_page: Open, tmp_path: Path) -> None:
    page = open_page(whole_run / "report.html")
    pdf = page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    page.emulate_media(media="print")
    assert page.locator("#score .panel:visible").count() == 4
    assert not page.locator("#rollouts").is_visible()
    assert not page.locator(".tabs").first.is_visible()
    assert page.get_by_text("Last rollout groups").is_visible()


def test_without_script_all_is_there(whole_run: Path, open_page: Open) -> None:
    page = open_page(whole_run / "report.html", java_script_enabled=False)
    assert page.locator("#score .panel:visible").count() == 4
    assert page.get_by_text("Last rollout groups").is_visible()
    assert not page.locator("#rollouts").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screenshot_has_a_page_with_colours(whole_run: Path, open_page: Open, tmp_path: Path, scheme: str) -> None:
    image_module = pytest.importorskip("PIL.Image")
    shot = tmp_path / "shot.png"
    open_page(whole_run / "report.html", color_scheme=scheme).screenshot(path=str(shot), full_page=True)
    image = image_module.open(shot).convert("RGB")
    assert (sum(image.getpixel((2, 2))) < 128) == (scheme == "dark")
    colours = {colour for count, colour in image.getcolors(maxcolors=1 << 24) if count > 3000}
    mixed = (0xF0, 0x80, 0x3C) if scheme == "dark" else (0xD5, 0x5E, 0x00)
    assert mixed in colours  # the stacked outcomes are there
