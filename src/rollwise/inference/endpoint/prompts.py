"""Reads the prompts that `rollwise consistency` answers."""

from __future__ import annotations

from rollwise.errors import ConfigError, PoolError
from rollwise.inference.endpoint.config import EndpointConfig
from rollwise.sampling.config import DataConfig
from rollwise.sampling.data import PromptData, load_data
from rollwise.tasks import TASKS


def read_prompts(config: EndpointConfig) -> PromptData:
    """The rows of `config.data`.

    Raises:
        ConfigError: it is a task's name, or no file that can be read.
        PoolError: no rows, a row without a prompt, or chat messages for the route that takes text.
        MissingColumnError: a column that is named is not there.
    """
    if config.data in TASKS:
        raise ConfigError(
            f"consistency takes a file of prompts, and {config.data!r} is a task; write its prompts to a file: python "
            f'-c "import json, rollwise.tasks as t; [print(json.dumps(row)) for row in t.make_task({config.data!r})'
            f'.eval_records(100, 0)]" > {config.data}.jsonl'
        )
    source = DataConfig(
        data=config.data,
        prompt_column=config.prompt_column,
        answer_column=config.answer_column,
        id=config.id,
        where=config.where,
        template=config.template,
    )
    data = load_data(source, None)
    chat = next((id_ for id_, prompt in zip(data.ids, data.prompts, strict=True) if not isinstance(prompt, str)), None)
    if config.route == "completions" and chat is not None:
        raise PoolError(f"prompt {chat!r} is chat messages; --route completions takes text: use --route chat")
    return data
