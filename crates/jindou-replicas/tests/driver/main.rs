//! Drivers of several servers in one process, over buckets that fail.

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
