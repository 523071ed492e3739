//! `jindou bench`: measurements that check their answers.

mod light;
mod lookup;
pub mod lubm;
mod measure;
pub mod papers;
pub mod ugly;
pub mod watdiv;
