"""Roots of margins far below the usual tolerance, where the error of a step or of a sampling is to be seen alone."""

import numpy as np
from scipy.optimize import brentq

from contingencies.stability import Margins

BRACKET_S = 4e-6  # on both sides of a CCT known to a microsecond


def refined(margins: Margins, near: float) -> float:
    """The root of a margin next to a CCT known to a microsecond, s."""
    low, high = near - BRACKET_S, near + BRACKET_S
    return float(brentq(lambda t_c: margins(np.array([t_c]))[0], low, high, xtol=1e-12, rtol=1e-14))
