"""METIS's questions through an engine's client, with a stand-in for both."""

from types import SimpleNamespace
from typing import Any

import pytest

import rollwise as rw
from rollwise.engines.verl.judging import judge


class Tokenizer:
    chat_template = None

    def __call__(self, text: str, **options: Any) -> dict[str, list[int]]:
        return {"input_ids": list(text.encode())}

    def decode(self, ids: list[int], **options: Any) -> str:
        return bytes(ids).decode()


class Chat(Tokenizer):
    chat_template = "a template"

    def apply_chat_template(self, messages: list[dict[str, str]], **options: Any) -> dict[str, list[int]]:
        mark = "no thinking: " if options.get("enable_thinking") is False else ""
        return {"input_ids": list((mark + messages[-1]["content"]).encode())}


class Client:
    asked = 0

    async def generate(self, request: str, *, prompt_ids: list[int], sampling_params: dict[str, Any]) -> Any:
        self.asked += 1
        self.sampling, self.prompt = sampling_params, bytes(prompt_ids)
        return SimpleNamespace(token_ids=list(rb"\boxed{0.10}"), extra_fields=None)


def metis() -> rw.METIS:
    return rw.METIS(rw.PromptPool(ids=[f"p{i}" for i in range(40)]), seed=0)


def test_the_live_policy_is_asked() -> None:
    curriculum, client = metis(), Client()
    curriculum.advance(1)
    judge(curriculum, 4, tokenizer=Tokenizer(), client=client, window=8000)
    assert client.asked > 0
    assert not any(ticket.lane == "unjudged" for ticket in curriculum.ask(4))


def test_the_live_policy_is_asked_as_its_rollouts_are() -> None:
    """Temperature, top_p and top_k of the rollouts, and the chat template's arguments; 1 where nothing is given."""
    client, curriculum = Client(), metis()
    curriculum.advance(1)
    sampling = {"temperature": 0.6, "top_p": 0.9, "top_k": 20}
    given: dict[str, Any] = {"window": 8000, "sampling": sampling, "template_options": {"enable_thinking": False}}
    judge(curriculum, 4, tokenizer=Chat(), client=client, **given)
    assert client.sampling == {**sampling, "max_tokens": 512}
    assert client.prompt.startswith(b"no thinking: ")
    judge(curriculum, 8, tokenizer=Chat(), client=client, window=8000)
    assert client.sampling == {"temperature": 1.0, "top_p": 1.0, "max_tokens": 512}
    assert not client.prompt.startswith(b"no thinking: ")


def test_contexts_too_short_for_any_question_are_refused() -> None:
    curriculum = metis()
    curriculum.advance(1)
    with pytest.raises(rw.ConfigError, match=r"max_model_len"):
        judge(curriculum, 4, tokenizer=Tokenizer(), client=Client(), window=60)


def test_no_client_names_the_manager() -> None:
    with pytest.raises(rw.ConfigError, match=r"agent_loop_manager_class"):
        judge(metis(), 4, tokenizer=Tokenizer(), client=None, window=8000)
