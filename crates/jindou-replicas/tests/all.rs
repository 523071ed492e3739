//! Tests of the machine in its simulator.

mod seeds;
