//! Tests of this crate: plans on a device (the shim, or with `JINDOU_TEST_DEVICE=card` this machine's GPU) against the
//! CPU's rows; kernels, paging, faults, costs, and the bindings to the driver.

mod above;
mod bring;
mod caps;
mod choices;
mod common;
mod delays;
mod driver;
mod executors;
mod expected;
mod fatbin;
mod faults;
mod id_starts;
mod kernels;
mod pages;
mod plans;
mod reductions;
mod rows;
mod sweeps;
mod traffic;
mod watdiv;
