#!/usr/bin/env bash
# What the sources must not do, whatever compiles.
set -euo pipefail
cd "$(dirname "$0")/.."
# Parser and planner charge nothing by themselves: what they allocate is measured (jindou_model::scope), and a charge beside an allocation is
# one that the next allocation forgets. That trees are not copied the compiler says (`not_clone!` in both).
if grep -rnE '\b(spend|charge|charge_for)\(|\b(Charge|Meter|MemoryBudget)\b' --include='*.rs' crates/jindou-{syntax,plan}/src |
    grep -vE '/tests(/|\.rs)|:[0-9]+: *//'; then
    echo "these charge memory by hand; what parser and planner take is measured, see jindou_model::scope" >&2
    exit 1
fi
# The machine of the replicas decides without threads, clocks, files and network: the simulator plays it.
if grep -rnwE 'tokio|std::(fs|net|thread)|Instant|SystemTime' --include='*.rs' crates/jindou-replicas/src/machine; then
    echo "these are the driver's matter (crates/jindou-replicas/src/driver.rs)" >&2
    exit 1
fi
# Inputs from outside of the repository are found in one place, by which continuous integration knows the tests that read them.
if grep -rln --include='*.rs' JINDOU_SHARED crates lab | grep -v '^lab/jindou-testing/src/inputs.rs$'; then
    echo "these look for inputs by themselves; use jindou_testing::shared" >&2
    exit 1
fi
# What tests and the laboratory turn on, such as simulators and faults that are planted, is in nothing that is shipped.
if features=$(cargo tree --locked -e normal,features -p jindou-cli) && grep 'feature "testing"' <<<"$features"; then
    echo "the command is built with these" >&2
    exit 1
fi
