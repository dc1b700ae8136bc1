#!/usr/bin/env bash
# A small zoo from nothing: register two contingencies, train one mixture of experts, deploy its heads, ask them.
# Called by `make quickstart`; run again, it keeps what is deployed. Delete the folder `quickstart` to begin anew.
set -euo pipefail

export CCT_ZOO_HOME="${CCT_ZOO_HOME:-quickstart}"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
bus=ieee30-bus-7-remove-4-6    # stays in step however late it is cleared: right-censored at every severity
line=ieee30-line-3-4-remove    # has a stability boundary
figure="$CCT_ZOO_HOME/boundary.png"

run() { # show a command, then run it
    printf '\n$ cct-zoo %s\n' "$*"
    cct-zoo "$@"
}

run register-contingency "$bus" "$line"

if cct-zoo cct "$bus" "$line" --alpha 0.9 >/dev/null 2>&1; then
    printf '\nHeads are deployed already; %s is kept as it is.\n' "$CCT_ZOO_HOME"
else
    run train-moe --fraction 0.1 --budget quick

    # Boundaries become heads, both at once: one process per core.
    printf '\n$ cct-zoo distill %s --source latest --strict 6\n' "$bus"
    cct-zoo distill "$bus" --source latest --strict 6 >"$CCT_ZOO_HOME/distill.txt" &
    other=$!
    run distill "$line" --source latest --strict 6
    wait "$other"
    cat "$CCT_ZOO_HOME/distill.txt"

    run deploy "$bus" --reason quickstart
    run deploy "$line" --reason quickstart
    printf '\n$ cct-zoo boundary %s --reference fast --plot %s\n' "$line" "$figure"
    cct-zoo boundary "$line" --reference fast --plot "$figure" | tail -n 5
fi

run cct "$bus" "$line" --alpha 0.7 --alpha 0.85 --alpha 0.95

printf '\nThe same answers beside the strict ODE, which takes seconds for each:\n'
run compare "$line" --alpha 0.7 --alpha 0.85 --alpha 0.95
run compare "$bus" --alpha 0.95

printf '\nFigure: %s\n' "$figure"
