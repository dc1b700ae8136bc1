"""Training the paper's readout: a small tanh network alpha -> CCT, theory.md eq. (33).

Offered for comparison with the Chebyshev head. Training needs torch; the result is plain
numpy arrays (`espinn_moe.head.TanhReadout`), so that answering does not.
"""

import itertools

import numpy as np

from espinn_moe.head import Array, TanhReadout

HIDDEN = (32, 32)  # 1,153 parameters, as small as the paper's "small network" suggests
STEPS = 3000


def train(
    alpha: Array, cct: Array, *, hidden: tuple[int, ...] = HIDDEN, steps: int = STEPS, seed: int = 0
) -> TanhReadout:
    """A network fitted to finite samples by mean squared error.

    Parameters
    ----------
    alpha, cct : (m,)
        Severities and critical clearing instants, s; all finite.
    hidden : widths of the hidden layers
    steps : int
        Adam steps on the full batch, with a cosine schedule.
    seed : int
        Initial weights.

    Returns
    -------
    TanhReadout
    """
    import torch

    scale = max(float(np.ptp(alpha)) / 2, 1e-12)
    output_scale = max(float(np.std(cct)), 1e-9)
    shift, output_shift = float(np.min(alpha) + scale), float(np.mean(cct))
    x = torch.tensor((alpha - shift) / scale, dtype=torch.float64)[:, None]
    y = torch.tensor((cct - output_shift) / output_scale, dtype=torch.float64)[:, None]
    generator = torch.Generator().manual_seed(seed)
    sizes = [1, *hidden, 1]
    weights, biases = [], []
    for before, after in itertools.pairwise(sizes):
        weights.append(torch.randn(before, after, dtype=torch.float64, generator=generator) * (1.5 / before**0.5))
        biases.append(torch.randn(after, dtype=torch.float64, generator=generator) * 0.5)
    parameters = [tensor.requires_grad_() for tensor in (*weights, *biases)]
    optimiser = torch.optim.Adam(parameters, lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        h = x
        for W, b in zip(weights[:-1], biases[:-1], strict=True):
            h = torch.tanh(h @ W + b)
        loss = ((h @ weights[-1] + biases[-1] - y) ** 2).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return TanhReadout(
        tuple(W.detach().numpy() for W in weights),
        tuple(b.detach().numpy() for b in biases),
        shift,
        scale,
        output_shift,
        output_scale,
    )
