"""What people are shown of a network, of compiled operators and of an answer: plain values, rounded."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from contingencies.admittance import islands
from contingencies.network import Network
from contingencies.ode import rk4_step
from contingencies.operators import PhaseOperators
from contingencies.stability import CCT


def describe_network(network: Network) -> dict[str, Any]:
    """Size and machines of a solved network."""
    return {
        "buses": network.n_buses,
        "lines": int(network.branches.is_line.sum()),
        "transformers": int((~network.branches.is_line).sum()),
        "base_mva": network.base_mva,
        "frequency_hz": round(network.omega_b / (2 * np.pi), 6),
        "machines": [
            {
                "bus": int(network.bus_numbers[network.machine_bus[k]]),
                "H_s": round(float(network.H[k]), 6),
                "x_d_pu": round(float(network.x_d[k]), 6),
                "D_pu": round(float(network.D[k]), 6),
                "E_pu": round(float(network.E[k]), 6),
                "delta_0_deg": round(float(np.rad2deg(network.delta_0[k])), 4),
            }
            for k in range(network.n_machines)
        ],
    }


def describe_operators(operators: PhaseOperators) -> dict[str, Any]:
    """What a contingency compiled to."""
    branches, network = operators.network.branches, operators.network
    removed = [
        [
            int(network.bus_numbers[branches.start[k]]),
            int(network.bus_numbers[branches.end[k]]),
            int(branches.circuit[k]),
        ]
        for k in operators.removed_branches
    ]
    return {
        "machines_at": list(operators.machine_buses),
        "P_m_pre_pu": _rounded(operators.P_m_pre),
        "P_m_post_pu": _rounded(operators.P_m_post),
        "thevenin_impedance_pu": None if operators.fault_point is None else _pair(operators.fault_z_th),
        **_fault(operators, 1.0),
        "removed_branches": removed,
        "tripped_generators": [operators.machine_buses[k] for k in operators.tripped_machines],
        "islanded_buses": _islanded(operators),
        "largest_change_of_Y": {
            "fault_on_at_full_severity": round(
                float(np.abs(operators.Y_fault(operators.severity[1]) - operators.Y_pre).max()), 6
            ),
            "post_clearing": round(float(np.abs(operators.Y_post - operators.Y_pre).max()), 6),
        },
        "rk4_step_s": rk4_step(operators),
    }


def _islanded(operators: PhaseOperators) -> list[int]:
    """Printed numbers of the buses (never generators) that clearing cuts off from the machines."""
    labels = islands(operators.network, operators.removed_branches)
    main = labels[operators.network.machine_bus[operators.counted_machines[0]]]
    return sorted(operators.network.bus_numbers[labels != main].tolist())


def describe_cct(operators: PhaseOperators, answer: CCT) -> dict[str, Any]:
    """One CCT with everything it depends on: a CCT without its window and criterion means nothing."""
    window = operators.window
    return {
        "contingency": operators.name,
        "alpha": answer.alpha,
        "status": answer.status,
        "cct_s": None if answer.cct is None else round(answer.cct, 9),
        "duration_s": None if answer.duration is None else round(answer.duration, 9),
        "restabilises": answer.restabilises,
        "reference": answer.reference,
        "in_domain": in_domain(operators, answer.alpha),
        "t_f_s": window.t_f,
        "window_t_c_s": list(window.t_c),
        "T_s": window.T,
        "max_separation_rad": operators.max_separation,
        "resolution_s": answer.resolution,
        "D_pu": _rounded(operators.D),
        **_fault(operators, answer.alpha),
        **({} if answer.stable is None else {"stable_t_c_s": [_rounded(interval) for interval in answer.stable]}),
        **({"at": operators.point.to_dict()} if operators.point.names else {}),
    }


def cct_sentence(operators: PhaseOperators, answer: CCT) -> str:
    """One CCT as people read it: how long the fault may last, then the instant, and what was assumed."""
    return _sentence(operators, [answer])


def boundary_sentences(operators: PhaseOperators, answers: Sequence[CCT]) -> list[str]:
    """A boundary as people read it: a sentence for each finite severity and one for each run of censored ones."""
    runs = groupby(answers, key=lambda answer: answer.alpha if answer.cct is not None else answer.status)
    return [_sentence(operators, list(run)) for _, run in runs]


def _sentence(operators: PhaseOperators, run: Sequence[CCT]) -> str:
    """What is said of one severity, or of several neighbours that are censored alike."""
    window, answer = operators.window, run[0]
    if answer.cct is not None and answer.duration is not None:
        text = f"fault may last {answer.duration * 1e3:.2f} ms (CCT {answer.cct:.5f} s, t_f = {window.t_f} s)"
    elif answer.status == "right-censored":
        text = f"right-censored: stable for every clearing instant up to {window.t_c[1]} s"
    else:
        text = f"left-censored: unstable already when cleared at {window.t_c[0]} s"
    again = "; some later clearing instants are stable again" if any(each.restabilises for each in run) else ""
    outside = domain_remark(operators, *(each.alpha for each in run))
    at = f"  at {operators.point}" if operators.point.names else ""
    where = f"alpha {answer.alpha:g}" if len(run) == 1 else f"alpha {answer.alpha:g} to {run[-1].alpha:g}"
    return f"{operators.name}  {where}{at}  {text}{again}{outside}  [{answer.reference}]"


def interval_sentence(operators: PhaseOperators, answer: CCT) -> str:
    """The stable clearing instants of an answer that was asked for its intervals, and how narrow ones are found."""
    t_f, promise = operators.window.t_f, 1e3 * (answer.resolution or 0.0)
    pieces = [f"{1e3 * (start - t_f):.2f} to {1e3 * (end - t_f):.2f} ms" for start, end in answer.stable or ()]
    return (
        f"  stable when the fault lasts {', '.join(pieces) or 'no time in the window'}; "
        f"intervals wider than {promise:g} ms are found"
    )


def in_domain(operators: PhaseOperators, alpha: float) -> bool:
    """Whether a severity is among those the contingency's description studies."""
    return operators.severity[0] <= alpha <= operators.severity[1]


def domain_remark(operators: PhaseOperators, *alphas: float) -> str:
    """What a reader must know of severities that the contingency's description does not study; mostly nothing."""
    if all(in_domain(operators, alpha) for alpha in alphas):
        return ""
    low, high = operators.severity
    point = operators.fault_point
    beyond = max(alphas) > 1 and point is not None and point.z_f is not None
    whole = ", and 1 is the whole of a fault given by its impedance" if beyond else ""
    return f"; outside the studied severities {low:g} to {high:g}{whole}"


def _fault(operators: PhaseOperators, alpha: float) -> dict[str, Any]:
    """The fault of a severity as an admittance, or the impedance that severity 1 stands for, pu."""
    point = operators.fault_point
    if point is None or point.y is not None:
        return {"fault_admittance_pu": None if point is None or point.y is None else _pair(alpha * point.y)}
    assert point.z_f is not None
    return {"fault_impedance_pu": _pair(point.z_f)}


def _rounded(values: Any) -> list[float]:
    return [round(float(value), 9) for value in values]


def _pair(value: complex) -> list[float]:
    return [round(value.real, 9), round(value.imag, 9)]
