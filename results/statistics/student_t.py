"""Student's t distribution from scipy.special: the digits of `scipy.stats.t`, which takes long to import."""

from scipy import special


def t_quantile(p: float, degrees: float) -> float:
    """Return the value that a t variable stays below with probability `p`, as `scipy.stats.t.ppf`.

    Args:
        p: The probability.
        degrees: Degrees of freedom, more than 0.
    """
    return float(special.stdtrit(degrees, p))


def t_tail(t: float, degrees: float) -> float:
    """Return the probability that a t variable is above `t`, as `scipy.stats.t.sf`.

    Args:
        t: The value.
        degrees: Degrees of freedom, more than 0.
    """
    return float(special.stdtr(degrees, -t))
