"""Student's t distribution: tails and quantiles, for intervals, tests and power.

The tail is a regularised incomplete beta function, computed by its continued fraction with the
modified Lentz method (Abramowitz and Stegun 26.5.8 and 26.7.1); a quantile is found by bisection.
"""

from __future__ import annotations

import math

_TINY = 1e-300
_STEPS = 300


def t_tail(t: float, degrees: int) -> float:
    """Return P(T > t), T having Student's distribution with `degrees` degrees of freedom.

    Example:
        >>> round(t_tail(2.262157, 9), 6)
        0.025
    """
    if math.isinf(t):
        return 0.0 if t > 0 else 1.0
    square = t * t
    below = degrees / (degrees + square)
    half = 0.5 * _incomplete_beta(degrees / 2, 0.5, below, square / (degrees + square))
    return half if t >= 0 else 1.0 - half


def t_quantile(share: float, degrees: int) -> float:
    """Return the value that Student's t is below with probability `share`, between 0 and 1.

    Example:
        >>> round(t_quantile(0.975, 29), 4)
        2.0452
    """
    if share == 0.5:
        return 0.0
    if share < 0.5:
        return -t_quantile(1 - share, degrees)
    low, high = 0.0, 1.0
    while t_tail(high, degrees) > 1 - share:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if t_tail(middle, degrees) > 1 - share else (low, middle)
    return high


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b); `rest` is 1 - x, unrounded."""
    if x == 0 or rest == 0:
        return float(rest == 0)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(log_front + a * math.log(x) + b * math.log(rest))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, rest) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function."""
    c, d = 1.0, 1.0 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
