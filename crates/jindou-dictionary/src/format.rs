//! Names of files.

/// The terms in lexicographic order, in a store directory.
pub const STRINGS_FILE: &str = "strings.jd";
/// Ids, hash table and value columns, in a store directory.
pub const DICTIONARY_FILE: &str = "dictionary.jd";
