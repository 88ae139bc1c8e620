"""k-means against small cases worked out by hand and against its definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.estimators.clusters import _means, kmeans, nearest


def sorted_rows(points: np.ndarray) -> list[list[float]]:
    return sorted(points.tolist())


@pytest.mark.parametrize("seed", range(10))
def test_two_pairs_by_hand(seed: int) -> None:
    """0, 2 and 10, 12: centroids 1 and 11, whichever points are the seeds.

    Even from seeds 0 and 2: to 2 belong 2, 10, 12, mean 8; then 2 is nearer to 0, and the means are 1 and 11.
    """
    points = np.array([[0.0], [2.0], [10.0], [12.0]])
    assert sorted_rows(kmeans(points, 2, np.random.default_rng(seed))) == [[1.0], [11.0]]


def test_fewer_distinct_points_than_clusters() -> None:
    points = np.array([[1.0], [1.0], [4.0], [1.0]])
    assert sorted_rows(kmeans(points, 10, np.random.default_rng(0))) == [[1.0], [4.0]]
    assert kmeans(points[:2], 3, np.random.default_rng(0)).tolist() == [[1.0]]


def test_an_empty_cluster_moves_to_the_farthest_point() -> None:
    """Owners 0, 0, 0 of 0, 3, 9: mean 4, distances 4, 1, 5; so the empty second cluster goes to 9."""
    moved = _means(np.array([[0.0], [3.0], [9.0]]), np.array([0, 0, 0]), np.array([[3.0], [100.0]]))
    assert moved.tolist() == [[4.0], [9.0]]


def test_of_equally_near_centroids_the_lowest_wins_wherever_the_row_lies() -> None:
    centroids = np.array([[0.1, 0.7], [0.3, 0.7], [0.1, 0.5], [0.3, 0.5]])
    middle = np.tile([0.2, 0.6], (1001, 1))
    assert not nearest(middle, centroids).any()


@given(st.integers(1, 8), st.integers(1, 40), st.integers(0, 1000))
def test_lloyd_ends_where_every_centroid_is_the_mean_of_its_points(k: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 6, (n, 2)).astype(float)
    centroids = kmeans(points, k, np.random.default_rng(seed), iterations=200)
    owner = nearest(points, centroids)
    assert len(centroids) <= min(k, len(np.unique(points, axis=0)))
    assert sorted(set(owner.tolist())) == list(range(len(centroids)))  # none is empty
    for i, centroid in enumerate(centroids):
        assert centroid == pytest.approx(points[owner == i].mean(axis=0), abs=1e-9)


def test_nearest_is_nearest_far_from_the_origin_and_in_pieces() -> None:
    rng = np.random.default_rng(0)
    points, centroids = 1e4 + rng.standard_normal((2000, 3)), 1e4 + rng.standard_normal((7, 3))
    slow = ((points[:, None] - centroids[None]) ** 2).sum(axis=2).argmin(axis=1)
    assert nearest(points, centroids).tolist() == slow.tolist()
    one_by_one = [int(nearest(p[None], centroids)[0]) for p in points[:50]]
    assert one_by_one == slow[:50].tolist()
