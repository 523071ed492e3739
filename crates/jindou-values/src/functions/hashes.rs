//! Hashes of texts.

use super::{Definition, Type};

/// Fields that most definitions in this file have in common.
const BASE: Definition = Definition {
    arguments: &[("text", Type::Simple)],
    gives: Type::Simple,
    group: "Hashes",
    errors: "for anything but a string without a language tag",
    ..Definition::DEFAULT
};

/// `MD5`. Its values are computed in the engine's `make.rs`.
pub mod md5 {
    use super::{BASE, Definition};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["MD5"],
        summary: "The MD5 hash of the text's UTF-8 in hexadecimal digits.",
        examples: &[(r#"MD5("abc")"#, r#""900150983cd24fb0d6963f7d28e17f72""#)],
        ..BASE
    };
}

/// `SHA1`. Its values are computed in the engine's `make.rs`.
pub mod sha1 {
    use super::{BASE, Definition};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["SHA1"],
        summary: "The SHA-1 hash of the text's UTF-8 in hexadecimal digits.",
        examples: &[(
            r#"SHA1("abc")"#,
            r#""a9993e364706816aba3e25717850c26c9cd0d89d""#,
        )],
        ..BASE
    };
}

/// `SHA256`. Its values are computed in the engine's `make.rs`.
pub mod sha256 {
    use super::{BASE, Definition};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["SHA256"],
        summary: "The SHA-256 hash of the text's UTF-8 in hexadecimal digits.",
        examples: &[(
            r#"SHA256("abc")"#,
            r#""ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad""#,
        )],
        ..BASE
    };
}

/// `SHA384`. Its values are computed in the engine's `make.rs`.
pub mod sha384 {
    use super::{BASE, Definition};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["SHA384"],
        summary: "The SHA-384 hash of the text's UTF-8 in hexadecimal digits.",
        examples: &[],
        ..BASE
    };
}

/// `SHA512`. Its values are computed in the engine's `make.rs`.
pub mod sha512 {
    use super::{BASE, Definition};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["SHA512"],
        summary: "The SHA-512 hash of the text's UTF-8 in hexadecimal digits.",
        examples: &[],
        ..BASE
    };
}
