//! Drivers of several servers in one process, over buckets that fail.

mod bucket;
mod faulty;
mod net;
mod raw;
mod servers;
mod store;
mod world;
