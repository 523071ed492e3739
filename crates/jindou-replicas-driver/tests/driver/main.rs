//! Drivers of several servers in one process, over buckets that fail.

mod bucket;
mod faulty;
mod servers;
mod store;
mod world;
