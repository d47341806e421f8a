"""How many events are likely? Quantiles of counts, from their distribution functions.

SciPy's special functions serve; its `stats` takes longer to import than a goodput report takes to compute.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import special


def _quantile(cdf: Callable[[int], float], probability: float, *, guess: float) -> int:
    """Smallest count whose distribution function reaches `probability`, by doubling and halving."""
    high = max(1, math.ceil(guess))
    while cdf(high) < probability:
        high *= 2
    low = -1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if cdf(middle) >= probability else (middle, high)
    return high


def poisson_quantile(probability: float, *, mean: float) -> int:
    """Smallest count that a Poisson variable does not exceed with that probability."""
    return _quantile(lambda count: float(special.gammaincc(count + 1, mean)), probability, guess=mean)


def negative_binomial_quantile(probability: float, *, mean: float, shape: float) -> int:
    """The same of a Poisson variable whose mean is itself gamma with that mean and shape."""
    success = shape / (shape + mean)
    return _quantile(lambda count: float(special.betainc(shape, count + 1, success)), probability, guess=mean)


def binomial_quantile(probability: float, *, trial_count: int, success: float) -> int:
    """The same of the successes among independent trials."""
    if success >= 1.0:
        return trial_count

    def cdf(count: int) -> float:
        return 1.0 if count >= trial_count else float(special.betainc(trial_count - count, count + 1, 1.0 - success))

    return _quantile(cdf, probability, guess=trial_count * success)


def negative_binomial_probabilities(*, mean: float, shape: float, cut: float = 1e-9) -> npt.NDArray[np.float64]:
    """Probabilities of 0, 1, 2, ... until no more than `cut` is left."""
    count = np.arange(negative_binomial_quantile(1.0 - cut, mean=mean, shape=shape) + 1)
    log_choose = special.gammaln(count + shape) - special.gammaln(shape) - special.gammaln(count + 1)
    success = shape / (shape + mean)
    log_pmf = log_choose + shape * math.log(success) + count * math.log1p(-success)
    return np.asarray(np.exp(log_pmf), dtype=np.float64)


def poisson_mean_bounds(count: float, *, confidence: float = 0.9) -> tuple[float, float]:
    """Interval of the mean that a Poisson count speaks for (F. Garwood, Biometrika 28, 1936)."""
    tail = (1.0 - confidence) / 2.0
    low = float(special.gammaincinv(count, tail)) if count > 0 else 0.0
    return low, float(special.gammaincinv(count + 1, 1.0 - tail))
