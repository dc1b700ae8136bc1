#!/usr/bin/env bash
# A small zoo from nothing: register three contingencies, train one mixture of experts, deploy its heads, ask them.
# Called by `make quickstart`; run again, it keeps what is deployed. Delete the folder `quickstart` to begin anew.
set -euo pipefail

export CCT_ZOO_HOME="${CCT_ZOO_HOME:-quickstart}"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
restore=ieee30-line-3-4-restore   # both have a stability boundary: cleared by itself,
remove=ieee30-line-3-4-remove     # or by opening the line
bus=ieee30-bus-7-remove-4-6       # stays in step however late it is cleared: right-censored at every severity
figure="$CCT_ZOO_HOME/boundary.png"

run() { # show a command, then run it
    printf '\n$ cct-zoo %s\n' "$*"
    cct-zoo "$@"
}

run register-contingency "$restore" "$remove" "$bus"

if cct-zoo cct "$restore" "$remove" "$bus" --alpha 0.9 >/dev/null 2>&1; then
    printf '\nHeads are deployed already; %s is kept as it is.\n' "$CCT_ZOO_HOME"
else
    # One training; then boundary, head, gate and deployment of each, one process per core.
    run pipeline "$restore" "$remove" "$bus" --fraction 0.1 --budget quick --required-ms 150 --reason quickstart
    printf '\n$ cct-zoo boundary %s --alpha 0.6:1:0.02 --reference fast --plot %s\n' "$remove" "$figure"
    cct-zoo boundary "$remove" --alpha 0.6:1:0.02 --reference fast --plot "$figure" | tail -n 5
fi

run cct "$restore" "$remove" "$bus" --alpha 0.7 --alpha 0.85 --alpha 0.95 --required-ms 150

printf '\nThe same beside the strict ODE, which searches for seconds:\n'
run compare "$restore" "$remove" "$bus" --alpha 0.85

cat <<NEXT

Figure: $figure
What next:
  export CCT_ZOO_HOME=$CCT_ZOO_HOME     so that the commands below find this zoo
  cct-zoo serve                         these answers over HTTP and as a page (or: make demo)
  cct-zoo advise $restore               whether a surrogate pays, or the simulator suffices
  cct-zoo screen ieee39 --fault line --clearing remove-line --required-ms 120
                                        which line faults of a grid are critical: docs/screening.md
  docs/own-network.md                   your own network
NEXT
