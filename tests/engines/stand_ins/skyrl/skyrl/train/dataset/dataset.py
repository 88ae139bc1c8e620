"""Stands in for SkyRL 0.3.0 and 0.4.0: rows with a uid."""


class PromptDataset:
    prompt_key = "prompt"

    def __init__(self, datasets, tokenizer, max_prompt_length, num_workers=8):
        self.dataframe = datasets

    def __getitem__(self, item):
        row = dict(self.dataframe[item])
        return row.pop("prompt"), row.pop("env_class", None), row, str(item)

    def collate_fn(self, item_list):
        names = ("prompt", "env_class", "env_extras", "uid")
        return [dict(zip(names, one, strict=True)) for one in item_list]

    def __len__(self):
        return len(self.dataframe)
