//! `jindou bench`: measurements that check their answers.

pub mod files;
mod light;
mod lookup;
pub mod lubm;
mod measure;
<<<<<<< HEAD
pub mod operators;
=======
pub mod mix;
>>>>>>> mixes
pub mod papers;
pub mod peers;
pub mod ugly;
pub mod watdiv;
