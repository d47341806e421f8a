"""Quantiles of counts meet those of scipy.stats."""

from __future__ import annotations

import pytest
from scipy import stats

from lakh.reliability.counts import (
    binomial_quantile,
    negative_binomial_probabilities,
    negative_binomial_quantile,
    poisson_mean_bounds,
    poisson_quantile,
)

PROBABILITIES = (0.001, 0.05, 0.5, 0.99, 0.999)


@pytest.mark.parametrize("probability", PROBABILITIES)
@pytest.mark.parametrize("mean", [0.02, 1.0, 10.6, 5_000.0])
def test_poisson_and_negative_binomial_quantiles_are_the_smallest_counts_that_reach(probability, mean):
    assert poisson_quantile(probability, mean=mean) == stats.poisson.ppf(probability, mean)
    for shape in (0.7, 3.0, 400.0):
        found = negative_binomial_quantile(probability, mean=mean, shape=shape)
        assert found == stats.nbinom.ppf(probability, shape, shape / (shape + mean))


@pytest.mark.parametrize("probability", PROBABILITIES)
@pytest.mark.parametrize("success", [0.001, 0.03, 0.9, 1.0])
def test_binomial_quantiles_are_the_smallest_counts_that_reach(probability, success):
    assert binomial_quantile(probability, trial_count=400, success=success) == stats.binom.ppf(
        probability, 400, success
    )


def test_negative_binomial_probabilities_sum_to_one_and_have_their_mean():
    probabilities = negative_binomial_probabilities(mean=0.9275, shape=0.682)
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-8)
    assert (probabilities * range(len(probabilities))).sum() == pytest.approx(0.9275, rel=1e-6)
    assert probabilities[3] == pytest.approx(stats.nbinom.pmf(3, 0.682, 0.682 / (0.682 + 0.9275)))


def test_garwoods_interval_of_a_count_comes_from_chi_square():
    low, high = poisson_mean_bounds(30)
    assert low == pytest.approx(stats.chi2.ppf(0.05, 60) / 2)
    assert high == pytest.approx(stats.chi2.ppf(0.95, 62) / 2)
    assert poisson_mean_bounds(0)[0] == 0.0
