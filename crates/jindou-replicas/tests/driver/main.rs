//! Tests of drivers: several servers in one process over a bucket with faults.

mod bases;
mod bucket;
mod faulty;
mod lost;
mod net;
mod node;
mod raw;
#[cfg(feature = "s3")]
mod relay;
#[cfg(feature = "s3")]
mod s3;
mod servers;
mod store;
mod strangers;
mod world;
