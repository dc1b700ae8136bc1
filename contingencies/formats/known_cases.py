"""Which cases that pandapower ships are MATPOWER's, compared when they are read.

pandapower made its cases with a converter that puts ratios on the wrong side of a transformer, makes its charging
inductive, and turns the second unit of a bus into a load. A wrong case is refused; when a later pandapower
mends it, it passes. The comparison needs no copy of the data: sums over the bus matrix Y of the network in service
that do not depend on the numbering, per unit on 100 MVA, worked out from the files of MATPOWER 8.1.
"""

from typing import NamedTuple

import numpy as np

from contingencies.errors import SpecError
from contingencies.formats.case import Case
from contingencies.formats.energised import energised
from contingencies.formats.stamps import bus_matrix

RELATIVE = 1e-6  # pandapower keeps impedances in ohm and percent; a right case agrees to 1e-12


class Sums(NamedTuple):
    """What of a case is compared."""

    units: int  # in service
    self_admittance: complex  # sum of Y_ii
    self_squared: complex  # sum of Y_ii^2
    shunt_squared: complex  # sum over rows of (sum of the row)^2: charging, ratios and shifts


KNOWN = {
    "case4gs": Sums(2, 34.35691582 - 171.3995791j, -7064.505068 - 2950.671674j, -0.0372125 - 2.842170943e-16j),
    "case5": Sums(5, 76.17120503 - 761.6350903j, -125161.6336 - 25287.78507j, -0.0012908206 - 2.691180612e-17j),
    "case6ww": Sums(3, 33.44217696 - 97.2890574j, -1447.17124 - 1147.477658j, -0.0503 - 4.130029652e-16j),
    "case9": Sums(3, 17.09840487 - 213.8167273j, -5729.316769 - 935.4468821j, -0.3167035 + 5.928590951e-17j),
    "case14": Sums(5, 73.57411876 - 245.0956034j, -5379.071545 - 3300.123767j, -0.2603927018 - 5.318836881e-16j),
    "case24_ieee_rts": Sums(33, 236.9052804 - 1680.679775j, -164399.4225 - 45045.41128j, -4.644892365 - 0.1117765843j),
    "case30": Sums(6, 219.1040153 - 630.1945665j, -20871.42379 - 15734.9894j, -0.00396077 + 6.012967901e-17j),
    "case_ieee30": Sums(6, 217.985285 - 615.3559689j, -19397.00079 - 14831.62183j, -0.2721964517 - 8.004959364e-16j),
    "case39": Sums(10, 627.2605879 - 7471.090444j, -2325171.803 - 386437.2857j, -164.1583413 - 10.91733899j),
    "case57": Sums(7, 600.9848938 - 1470.888459j, -47662.77491 - 48455.85786j, -11.3242376 - 4.673137052e-15j),
    "case89pegase": Sums(12, 6085.732925 - 153922.0977j, -606678965.5 - 37905358.94j, -155.5884176 - 3.2614668j),
    "case118": Sums(54, 1448.828031 - 6674.842291j, -688946.383 - 260429.3653j, -30.73913392 + 7.504754236e-15j),
    "case145": Sums(50, 2069.878179 - 38691.98135j, -48109338.91 - 4880955.758j, 23881.69377 - 1946.006298j),
    "case_illinois200": Sums(
        38, 3486.863628 - 22738.18164j, -6885369.701 - 2318387.222j, -1.259207291 - 3.746453148e-15j
    ),
    "case300": Sums(69, 6051.528411 - 39448.7858j, -33122110.25 - 11717652.08j, -1066.962657 - 170.6670155j),
    "case1354pegase": Sums(260, 274756.4862 - 1252188.973j, -3709255768 - 1863353601j, -3588.599878 - 96.08053532j),
    "case1888rte": Sums(291, 576634.0649 - 2866275.444j, -2.236049847e10 - 9284248896j, 486220.7785 + 123668.3119j),
    "case2848rte": Sums(512, 678270.3324 - 3124675.25j, -2.24935833e10 - 9588382478j, 59389.14872 + 79457.11627j),
    "case2869pegase": Sums(510, 487435.327 - 2993277.215j, -1.027187393e10 - 3110204892j, -5190.456194 - 121.3489729j),
    "case3120sp": Sums(298, 627029.2516 - 3958345.204j, -2.356548647e10 - 6969791251j, -5373.258423 + 1069.548082j),
    "case6470rte": Sums(762, 1013644.973 - 4294083.713j, -2.601465742e10 - 1.231593474e10j, 592505.9831 + 294376.6285j),
    "case6495rte": Sums(681, 1014043.722 - 4296589.01j, -2.602649369e10 - 1.232331686e10j, 592936.4358 + 294719.38j),
    "case6515rte": Sums(685, 1016769.751 - 4307287.038j, -2.606920057e10 - 1.234732765e10j, 592828.6968 + 294772.1146j),
    "case9241pegase": Sums(1445, 1064543.555 - 9592282.029j, -3.794834804e10 - 7296012148j, -10242.5398 - 274.5156736j),
}

# Read as it is although four branches (65-68, 68-81, 68-116, 86-87) have inductive charging: the operators of the
# shipped system ieee118, and the heads made for them, stay what they were.
KEPT = frozenset({"case118"})


def sums_of(case: Case) -> Sums:
    """The sums of a network that `KNOWN` lists."""
    live = energised(case.on_base(100.0))
    Y = bus_matrix(live)
    own, rows = Y.diagonal(), np.asarray(Y.sum(axis=1)).ravel()
    return Sums(len(live.units), complex(own.sum()), complex((own**2).sum()), complex((rows**2).sum()))


def check_known_case(name: str, case: Case) -> None:
    """Refuse a case of pandapower that is known not to be the case it is named after."""
    right = KNOWN.get(name)
    if right is None or name in KEPT:
        return
    read = sums_of(case)
    differs = [f"{read.units} units in service, not {right.units}"] if read.units != right.units else []
    pairs = zip(read[1:], right[1:], strict=True)
    if any(abs(ours - theirs) > RELATIVE * max(1.0, abs(theirs)) for ours, theirs in pairs):
        differs.append("other branch ratios or charging")
    if differs:
        raise SpecError(
            f"pandapower's {name} is not MATPOWER's {name} ({', '.join(differs)}); "
            f"take MATPOWER's own file: network: {{file: {name}.m}}."
        )
