"""From scores to distinct prompts."""

from rollwise.draws.keys import order_of, pack, rank_of_fewest, rank_of_scores, ties, ties_below
from rollwise.draws.tree import GroupedMaxTree, MaxTree, SumTree
from rollwise.prompt_ids import hash_ids

__all__ = [
    "GroupedMaxTree",
    "MaxTree",
    "SumTree",
    "hash_ids",
    "order_of",
    "pack",
    "rank_of_fewest",
    "rank_of_scores",
    "ties",
    "ties_below",
]
