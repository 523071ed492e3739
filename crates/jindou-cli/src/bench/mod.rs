//! `jindou bench`: measurements that check their answers.

pub mod commits;
pub mod files;
mod light;
pub mod live;
mod lookup;
pub mod lubm;
mod measure;
pub mod merge;
pub mod mix;
pub mod mixed;
pub mod operators;
pub mod papers;
pub mod parallel;
pub mod peers;
pub mod stream;
mod svg;
pub mod ugly;
pub mod updates;
pub mod watdiv;
