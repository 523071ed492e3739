//! Tests of the log: its format, real and faulty disks, object stores.

mod faulty;
mod format;
mod objects;
mod real;
