"""PSS/E RAW files written for tests, in the layout of each version."""

import numpy as np

from contingencies.formats.case import Case

ORDER = (
    "bus", "load", "fixed shunt", "generator", "branch", "system switching device", "transformer", "area",
    "two-terminal dc", "vsc dc", "impedance correction", "multi-terminal dc", "multi-section line", "zone",
    "inter-area transfer", "owner", "facts device", "switched shunt", "gne", "induction machine", "substation",
)  # fmt: skip
FROM_34 = ("system switching device", "substation")


def raw_text(version: int = 33, base: float = 100.0, frequency: float = 60.0, **sections: list[str]) -> str:
    """A RAW file; sections by name with underscores for blanks, a record per line."""
    rows = {name.replace("_", " ").replace("two terminal", "two-terminal"): lines for name, lines in sections.items()}
    text = [f"0, {base}, {version}, 0, 1, {frequency} / written for a test", "title one", "title two"]
    if version >= 34:
        text = ["@!IC,SBASE,REV,XFRRAT,NXFRAT,BASFRQ", *text, "GENERAL, THRSHZ=0.0001", "0 / END OF SYSTEM-WIDE DATA"]
    order = [name for name in ORDER if version >= 34 or name not in FROM_34]
    for name in order:
        if version >= 34:
            text.append(f"@! {name} columns")
        text += rows.get(name, [])
        text.append(f"0 / END OF {name.upper()} DATA")
    return "\n".join([*text, "Q", ""])


def bus_row(number, kind=1, v=1.0, angle=0.0, kv=345.0, area=1, zone=1, name="BUS") -> str:
    return f"{number},'{name:12}', {kv!r}, {kind}, {area}, {zone}, 1, {v!r}, {angle!r}"


def load_row(bus, P=0.0, Q=0.0, IP=0.0, IQ=0.0, YP=0.0, YQ=0.0, status=1) -> str:
    return f"{bus},'1 ',{status},1,1,{P!r},{Q!r},{IP!r},{IQ!r},{YP!r},{YQ!r},1"


def unit_row(
    version, bus, id="1", P=0.0, Q=0.0, v=1.0, mva=100.0, z=0.2j, step_up=0j, status=1, q=9999.0, ireg=0
) -> str:
    node = "0," if version >= 35 else ""
    return (
        f"{bus},'{id}',{P!r},{Q!r},{q!r},{-q!r},{v!r},{ireg},{node}{mva!r},{z.real!r},{z.imag!r},"
        f"{step_up.real!r},{step_up.imag!r},1.0,{status},100.0,9999.0,0.0"
    )


def line_row(version, start, end, circuit="1", z=0.1j, b=0.0, rating=0.0, y_start=0j, y_end=0j, status=1) -> str:
    ratings = f"{rating!r},0.0,0.0" if version < 34 else f"'a line',{rating!r}," + ",".join(["0.0"] * 11)
    shunts = f"{y_start.real!r},{y_start.imag!r},{y_end.real!r},{y_end.imag!r}"
    return f"{start},{end},'{circuit}',{z.real!r},{z.imag!r},{b!r},{ratings},{shunts},{status},1,0.0,1,1.0"


def winding_row(version, ratio=1.0, nominal=0.0, angle=0.0, rating=0.0) -> str:
    ratings = ",".join([repr(rating)] + ["0.0"] * (2 if version < 34 else 11))
    return f"{ratio!r},{nominal!r},{angle!r},{ratings},0,0,1.1,0.9,1.1,0.9,33,0,0.0,0.0"


def two_winding_rows(
    version, start, end, circuit="1", z=(0.0, 0.1), codes=(1, 1, 1), magnetising=(0.0, 0.0), mva=100.0,
    windings=((1.0, 0.0, 0.0), (1.0, 0.0)), status=1, rating=0.0,
) -> list[str]:  # fmt: skip
    (t_1, n_1, angle), (t_2, n_2) = windings
    cw, cz, cm = codes
    return [
        f"{start},{end},0,'{circuit}',{cw},{cz},{cm},{magnetising[0]!r},{magnetising[1]!r},2,'TWO',{status},1,1.0",
        f"{z[0]!r},{z[1]!r},{mva!r}",
        winding_row(version, t_1, n_1, angle, rating),
        f"{t_2!r},{n_2!r}",
    ]


def three_winding_rows(
    version, buses, z, ratios=(1.0, 1.0, 1.0), angles=(0.0, 0.0, 0.0), status=1, codes=(1, 1, 1), mva=(100.0,) * 3
) -> list[str]:
    cw, cz, cm = codes
    pairs = ",".join(f"{part.real!r},{part.imag!r},{base!r}" for part, base in zip(z, mva, strict=True))
    return [
        f"{buses[0]},{buses[1]},{buses[2]},'1',{cw},{cz},{cm},0.0,0.0,2,'THREE',{status},1,1.0",
        f"{pairs},1.0,0.0",
        *(winding_row(version, ratio, 0.0, angle) for ratio, angle in zip(ratios, angles, strict=True)),
    ]


def text_of(case: Case, version: int) -> str:
    """A plain network as a RAW file of a version; what PSS/E has no field for (charging of a transformer) must be 0."""
    base, number = case.base_mva, case.buses.number
    angle = np.rad2deg(case.buses.angle)
    buses = [
        bus_row(int(n), int(kind), float(v), float(a), float(kv), int(area), int(zone), str(name))
        for n, kind, v, a, kv, area, zone, name in zip(
            number, case.buses.kind, case.buses.v, angle, case.buses.base_kv, case.buses.area, case.buses.zone,
            case.buses.name, strict=True,
        )
    ]  # fmt: skip
    loads = []
    for k, position in enumerate(case.loads.bus):
        S, current, z = (getattr(case.loads, key)[k] * base for key in ("S_power", "S_current", "S_impedance"))
        parts = (S.real, S.imag, current.real, current.imag, z.real, -z.imag)
        loads.append(load_row(int(number[position]), *map(float, parts)))
    shunts = [
        f"{number[at]},'1',1,{float(y.real * base)!r},{float(y.imag * base)!r}"
        for at, y in zip(case.shunts.bus, case.shunts.y, strict=True)
    ]
    units, lines, transformers = [], [], []
    for k, position in enumerate(case.units.bus):
        P, Q, v, mva = (float(getattr(case.units, key)[k]) for key in ("P", "Q", "v_set", "mva"))
        z = complex(case.units.z_source[k])
        status = int(case.units.in_service[k])
        units.append(
            unit_row(
                version, int(number[position]), str(case.units.id[k]), P * base, Q * base, v, mva, z, status=status
            )
        )
    for k in range(len(case.branches)):
        row = {key: getattr(case.branches, key)[k] for key in ("r", "x", "b", "tap", "shift", "y_start", "y_end")}
        ends = (int(number[case.branches.start[k]]), int(number[case.branches.end[k]]))
        circuit, status = str(case.branches.circuit[k]), int(case.branches.in_service[k])
        if not case.branches.is_transformer[k]:
            z = complex(row["r"], row["x"])
            y_start, y_end = complex(row["y_start"]), complex(row["y_end"])
            rating = float(case.branches.rating[k])
            lines.append(line_row(version, *ends, circuit, z, float(row["b"]), rating, y_start, y_end, status))
            continue
        y = row["y_start"]
        transformers += two_winding_rows(
            version, *ends, circuit, (float(row["r"]), float(row["x"])), (1, 1, 1), (float(y.real), float(y.imag)),
            windings=((float(row["tap"]), 0.0, float(np.rad2deg(row["shift"]))), (1.0, 0.0)), status=status,
            rating=float(case.branches.rating[k]),
        )  # fmt: skip
    return raw_text(
        version,
        base,
        bus=buses,
        load=loads,
        fixed_shunt=shunts,
        generator=units,
        branch=lines,
        transformer=transformers,
    )
