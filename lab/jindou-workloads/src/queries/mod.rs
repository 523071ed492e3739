//! Query sets: [`lubm`] with known row counts and templates, [`watdiv`] and [`bsbm`] with templates, [`sp2b`], [`ted`],
//! and [`ugly`] with random basic graph patterns, which measure planning time.

/// The queries of a folder by their names, each after the same declarations of prefixes.
macro_rules! queries {
    ($folder:literal, $prefixes:literal, $($name:literal)*) => {
        [$(super::lubm::LubmQuery {
            name: $name,
            text: concat!(
                $prefixes,
                include_str!(concat!("../../queries/", $folder, "/", $name, ".rq"))
            ),
        }),*]
    };
}

pub mod bsbm;
pub mod lubm;
pub mod lubm_official;
pub mod sp2b;
pub mod ted;
pub mod ugly;
pub mod watdiv;

pub use watdiv::Instance;
