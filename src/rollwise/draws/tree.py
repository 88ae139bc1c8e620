"""Two complete binary trees over N slots, one array each: exact top-k and proportional draws in O(k log N).

Both keep, at node i, the reduction (maximum or sum) of its children 2i and 2i+1; the leaves are the slots. A maximum
tree has the heap property that the papers' binary heap has, but never moves an element, so a batch of k changes is
log N numpy operations on k numbers, removal from the middle is free, and equal keys do not fall into layout order.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from rollwise.draws.keys import order_of

_FEW = 16
_LEVELS = 3


class _Tree:
    def __init__(self, n: int, dtype: type, reduce: np.ufunc, reduce_two: Callable[[Any, Any], Any]) -> None:
        self._depth = max(1, int(n - 1).bit_length())
        self.size = 1 << self._depth  # leaves; slot i is node size + i
        self._reduce = reduce
        self._reduce_two = reduce_two
        self._array: np.ndarray = np.zeros(2 * self.size, dtype=dtype)
        self._left, self._right = self._array[0::2], self._array[1::2]  # views: the children of each node
        self._changed: list[np.ndarray] = []  # leaves that the nodes above them do not know of yet
        self._n_changed = 0

    @property
    def _nodes(self) -> np.ndarray:
        """The nodes, up to date."""
        if self._changed:
            self._update()
        return self._array

    def fill(self, values: np.ndarray) -> None:
        """Set every slot at once: `values` (N,), 0 for an absent slot. O(N)."""
        self._array[self.size : self.size + len(values)] = values
        self._rebuild(self._depth)

    def set(self, slots: np.ndarray, values: np.ndarray | float) -> None:
        """Set the values of K slots; 0 removes one. O(K), and the next look at the tree O(K log N), or O(N) if less.

        What is set several times before that, as a prompt that is taken out and comes back, costs once.
        """
        if not len(slots):
            return
        leaves = slots + self.size
        self._array[leaves] = values
        self._changed.append(leaves)
        self._n_changed += len(leaves)
        if self._n_changed * self._depth > 2 * self.size:
            self._rebuild(self._depth)

    def get(self, slots: np.ndarray) -> np.ndarray:
        """The values of K slots, (K,)."""
        values: np.ndarray = self._array[slots + self.size]
        return values

    def _update(self) -> None:
        leaves = np.sort(np.concatenate(self._changed))
        leaves = leaves[np.append(True, leaves[1:] != leaves[:-1])]  # each once
        if len(leaves) > 1:
            self._update_some(leaves)
        else:
            self._update_one(leaves.item())
        self._known()

    def _known(self) -> None:
        self._changed, self._n_changed = [], 0

    def _rebuild(self, level: int) -> None:
        """Make all nodes above a level anew; the leaves are at level `_depth`."""
        self._known()
        for above in range(level - 1, -1, -1):
            children = self._array[2 << above : 4 << above]
            self._array[1 << above : 2 << above] = self._reduce(children[0::2], children[1::2])

    def _update_some(self, node: np.ndarray) -> None:
        """Make the nodes above these K leaves anew, and where a level has no more than K nodes, all of it."""
        few = len(node) <= _FEW  # then they often change nothing from some level on
        whole = len(node).bit_length()
        for _ in range(self._depth - whole):
            node = node >> 1
            now = self._reduce(self._left[node], self._right[node])
            if few and (now == self._array[node]).all():
                return
            self._array[node] = now
        self._rebuild(min(whole, self._depth))

    def _update_one(self, node: int) -> None:
        """The same for one leaf, without arrays, and no further up than something changes."""
        nodes, reduce = self._array, self._reduce_two
        while node > 1:
            node >>= 1
            now = reduce(nodes.item(2 * node), nodes.item(2 * node + 1))
            if now == nodes.item(node):
                return
            nodes[node] = now

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_left", "_right")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._left, self._right = self._array[0::2], self._array[1::2]  # a copy has views of its own


class MaxTree(_Tree):
    """Slots with positive uint64 keys; takes out those with the greatest.

    >>> tree = MaxTree(4)
    >>> tree.fill(np.array([5, 0, 9, 7], dtype=np.uint64))
    >>> tree.pop(2).tolist(), tree.pop(9).tolist()
    ([2, 3], [0])
    """

    def __init__(self, n: int) -> None:
        super().__init__(n, np.uint64, np.maximum, max)

    def top(self, k: int, *, under: int = 1) -> np.ndarray:
        """The up to k slots with the greatest keys, greatest first, of those under a node; all are under 1. O(k log N).

        Equal keys come in slot order. Going down a level, the k best leaves can only lie below the k nodes with the
        greatest maxima. Three levels are one step, in which no more than 8k nodes are looked at; the first step goes
        down to as many nodes as there may be slots.
        """
        if k == 1:
            return self._top_one(under)
        all_nodes = self._nodes
        if k < 1 or not all_nodes[under]:
            return np.empty(0, dtype=np.int64)
        nodes = np.full(1, under, dtype=np.int64)
        keys = all_nodes[nodes]
        left, levels = self._depth + 1 - under.bit_length(), max(_LEVELS, k.bit_length())
        while left:
            levels = min(left, levels)
            nodes = ((nodes << levels)[:, None] + np.arange(1 << levels)).reshape(-1)
            keys = all_nodes[nodes]
            if len(nodes) > k:
                best = keys.argpartition(len(nodes) - k)[len(nodes) - k :]
                nodes, keys = nodes[best], keys[best]
            left, levels = left - levels, _LEVELS
        some = keys > 0
        nodes, keys = nodes[some], keys[some]
        order = order_of(~keys, lambda: nodes)  # ~ reverses the order of unsigned keys
        return np.asarray(nodes[order] - self.size)

    def _top_one(self, node: int) -> np.ndarray:
        nodes = self._nodes
        if not nodes.item(node):
            return np.empty(0, dtype=np.int64)
        for _ in range(self._depth + 1 - node.bit_length()):
            node *= 2
            node += nodes.item(node) < nodes.item(node + 1)
        return np.array([node - self.size])

    def pop(self, k: int) -> np.ndarray:
        """Take out the up to k slots with the greatest keys, greatest first."""
        slots = self.top(k)
        self.set(slots, 0)
        return slots


class GroupedMaxTree:
    """A `MaxTree` whose slots are in groups, with the greatest of all and of any one group at the same cost.

    Args:
        groups: (N,) the group of each slot, 0 to G - 1.

    >>> tree = GroupedMaxTree(np.array([0, 1, 0, 1]))
    >>> tree.set(np.arange(4), np.array([5, 6, 9, 7], dtype=np.uint64))
    >>> tree.top(2).tolist(), tree.top(2, group=0).tolist(), tree.top(1, group=1).tolist()
    ([2, 3], [2, 0], [3])
    """

    def __init__(self, groups: np.ndarray) -> None:
        sizes = np.bincount(groups)
        count = np.maximum(sizes, 1)
        levels = np.ceil(np.log2(count)).astype(np.int64)
        widest_first = np.argsort(-levels, kind="stable")  # so that every block begins at a multiple of its own width
        ends = np.cumsum(1 << levels[widest_first])
        start = np.empty_like(ends)
        start[widest_first] = ends - (1 << levels[widest_first])
        narrow = groups.astype(np.uint16) if len(sizes) <= 1 << 16 else groups  # sorted by radix, ten times as fast
        by_group = np.argsort(narrow, kind="stable")
        self._leaf = np.empty(len(groups), dtype=np.int64)
        self._leaf[by_group] = np.arange(len(groups)) + np.repeat(start - (np.cumsum(sizes) - sizes), sizes)
        self._slot = np.full(int(ends[-1]), -1, dtype=np.int64)
        self._slot[self._leaf] = np.arange(len(groups))
        self._tree = MaxTree(int(ends[-1]))
        self._root: list[int] = ((self._tree.size + start) >> levels).tolist()

    def set(self, slots: np.ndarray, values: np.ndarray | float) -> None:
        """Set the keys of K slots; 0 removes one."""
        self._tree.set(self._leaf[slots], values)

    def top(self, k: int, *, group: int | None = None) -> np.ndarray:
        """The up to k slots with the greatest keys, greatest first, of all or of one group."""
        slots: np.ndarray = self._slot[self._tree.top(k, under=1 if group is None else self._root[group])]
        return slots


class SumTree(_Tree):
    """Slots with weights >= 0; draws distinct ones with probability proportional to weight.

    >>> tree = SumTree(3)
    >>> tree.fill(np.array([0.0, 2.0, 0.0]))
    >>> slots, chances = tree.draw(np.random.default_rng(0), 3)
    >>> slots.tolist(), chances.tolist()
    ([1], [1.0])
    """

    def __init__(self, n: int) -> None:
        super().__init__(n, np.float64, np.add, operator.add)

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return float(self._nodes[1])

    def draw(self, rng: np.random.Generator, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Take out up to k distinct slots one after another, each in proportion to weight among those left.

        Drawing with replacement and skipping repeats has the same law, so a whole round is drawn at once.

        Returns:
            slots: (K,) in the order drawn.
            propensity: (K,) each one's probability at its turn, given those before it.
        """
        drawn: list[np.ndarray] = []
        propensity: list[np.ndarray] = []
        while k > 0 and self.total > 0:
            total = self.total
            leaves = self._descend(rng.random(k) * total)
            _, first = np.unique(leaves, return_index=True)
            slots = leaves[np.sort(first)]
            weights = self.get(slots)
            left = total - np.concatenate([[0.0], np.cumsum(weights)[:-1]])
            drawn.append(slots)
            propensity.append(np.minimum(1.0, weights / np.maximum(left, weights)))
            self.set(slots, 0.0)
            k -= len(slots)
        if not drawn:
            return np.empty(0, dtype=np.int64), np.empty(0)
        return np.concatenate(drawn), np.concatenate(propensity)

    def _descend(self, points: np.ndarray) -> np.ndarray:
        """The leaf under each point of [0, total); never one of weight 0, whatever rounding does."""
        if len(points) == 1:
            return self._descend_one(points.item())
        nodes, node = self._nodes, np.ones(len(points), dtype=np.int64)
        for _ in range(self._depth):
            left = nodes[2 * node]
            right = ((points >= left) & (nodes[2 * node + 1] > 0)) | (left == 0)
            points = np.where(right, points - left, points)
            node = 2 * node + right
        return node - self.size

    def _descend_one(self, point: float) -> np.ndarray:
        nodes, node = self._nodes, 1
        for _ in range(self._depth):
            left, right = nodes.item(2 * node), nodes.item(2 * node + 1)
            node *= 2
            if left == 0 or (point >= left and right > 0):
                point -= left
                node += 1
        return np.array([node - self.size])
