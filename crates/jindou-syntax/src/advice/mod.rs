//! Texts of error messages: descriptions and remedies.

mod dialects;
mod foreign;
mod nearest;
mod place;

pub use dialects::{Extension, extension_of_iri, extensions};
pub(crate) use dialects::{
    QUAD_TEMPLATE, REPEATED_PATH, TAGGED_PREDICATE, extension_of_name, extension_of_word,
};
pub(crate) use foreign::foreign;
pub use nearest::distance;
pub(crate) use nearest::nearest;
pub(crate) use place::FaultPlace;
