#!/usr/bin/env bash
# Cuts the wire between a reader and a server in a network namespace, and checks that every read ends by its
# deadline. Needs root, `ip` and libucx0; leaves nothing behind.
set -euo pipefail
cd "$(dirname "$0")/.."
export JINDOU_NETNS=jindou-partition
trap 'ip netns del "$JINDOU_NETNS" 2>/dev/null; ip link del jindou0 2>/dev/null; true' EXIT
ip netns add "$JINDOU_NETNS"
ip link add jindou0 type veth peer name jindou1
ip link set jindou1 netns "$JINDOU_NETNS"
ip addr add 10.213.7.1/24 dev jindou0
ip link set jindou0 up
ip -n "$JINDOU_NETNS" addr add 10.213.7.2/24 dev jindou1
ip -n "$JINDOU_NETNS" link set jindou1 up
ip -n "$JINDOU_NETNS" link set lo up
cargo test -p jindou-cluster --test all -- --ignored --nocapture --exact \
  failures::reads_over_a_wire_that_was_cut_end
