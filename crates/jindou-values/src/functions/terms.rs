//! Functions that create, test or decompose terms.

use super::{Cost, Definition, Row, Scalar, Type, Val};

/// Fields that most definitions in this file have in common.
const BASE: Definition = Definition {
    arguments: &[("term", Type::Term)],
    gives: Type::Boolean,
    group: "Terms",
    ..Definition::DEFAULT
};

/// `IRI`. Its values are computed in the engine's `machine.rs`.
pub mod iri {
    use super::{BASE, Definition, Type};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["IRI", "URI"],
        arguments: &[("text", Type::Term)],
        gives: Type::Iri,
        summary: "The IRI of a string, resolved against the base IRI of the query; an IRI as it is.",
        errors: "unless the argument is an IRI or a string without a language tag, and for a text that is not an IRI",
        examples: &[(r#"IRI("http://example.org/a")"#, "<http://example.org/a>")],
        ..BASE
    };
}

/// `BNODE`. Its values are computed in the engine's `make.rs`.
pub mod bnode {
    use super::{BASE, Definition, Type};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["BNODE"],
        arguments: &[("label", Type::Simple)],
        least: 0,
        gives: Type::Blank,
        deterministic: false,
        summary: "A blank node: a new one in each call, or one that calls with the same label in one solution share.",
        errors: "for a label that is not a string without a language tag",
        examples: &[],
        ..BASE
    };
}

/// `UUID`. Its values are computed in the engine's `make.rs`.
pub mod uuid {
    use super::{BASE, Cost, Definition, Type};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["UUID"],
        arguments: &[],
        least: 0,
        gives: Type::Iri,
        deterministic: false,
        cost: Cost::Little,
        summary: "A new IRI of the scheme `urn:uuid:` in each call.",
        examples: &[],
        ..BASE
    };
}

/// `STRUUID`. Its values are computed in the engine's `make.rs`.
pub mod struuid {
    use super::{BASE, Cost, Definition, Type};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["STRUUID"],
        arguments: &[],
        least: 0,
        gives: Type::Simple,
        deterministic: false,
        cost: Cost::Little,
        summary: "A new UUID as a string in each call.",
        examples: &[],
        ..BASE
    };
}

/// `STRLANG`. Its values are computed in the engine's `make.rs`.
pub mod strlang {
    use super::{BASE, Definition, Type};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["STRLANG"],
        arguments: &[("text", Type::Simple), ("tag", Type::Simple)],
        least: 2,
        gives: Type::Text,
        summary: "The string with a language tag.",
        errors: "unless both are strings without a language tag, the second a valid language tag",
        examples: &[(r#"STRLANG("chat", "en")"#, r#""chat"@en"#)],
        ..BASE
    };
}

/// `STRDT`. Its values are computed in the engine's `make.rs`.
pub mod strdt {
    use super::{BASE, Definition, Type};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["STRDT"],
        arguments: &[("text", Type::Simple), ("datatype", Type::Iri)],
        least: 2,
        gives: Type::Literal,
        summary: "The literal with a text and a datatype.",
        errors: "unless the first is a string without a language tag and the second an IRI",
        examples: &[(
            r#"STRDT("123", <http://www.w3.org/2001/XMLSchema#integer>)"#,
            "123",
        )],
        ..BASE
    };
}

/// `isIRI`. Its values are computed in the engine's `machine.rs`.
pub mod is_iri {
    use super::{BASE, Cost, Definition};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["isIRI", "isURI"],
        cost: Cost::Little,
        summary: "True for an IRI.",
        examples: &[
            ("isIRI(<http://example.org/a>)", "true"),
            (r#"isIRI("a")"#, "false"),
        ],
        ..BASE
    };
}

/// `isBLANK`. Its values are computed in the engine's `machine.rs`.
pub mod is_blank {
    use super::{BASE, Cost, Definition};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["isBLANK"],
        cost: Cost::Little,
        summary: "True for a blank node.",
        examples: &[("isBLANK(<http://example.org/a>)", "false")],
        ..BASE
    };
}

/// `isLITERAL`. Its values are computed in the engine's `machine.rs`.
pub mod is_literal {
    use super::{BASE, Cost, Definition};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["isLITERAL"],
        cost: Cost::Little,
        summary: "True for a literal.",
        examples: &[(r#"isLITERAL("a")"#, "true")],
        ..BASE
    };
}

/// `TRIPLE`. Its values are computed in the engine's `make.rs`.
pub mod triple {
    use super::{BASE, Definition, Type};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["TRIPLE"],
        arguments: &[
            ("subject", Type::Term),
            ("predicate", Type::Term),
            ("object", Type::Term),
        ],
        least: 3,
        gives: Type::Triple,
        summary: "The triple term of three terms.",
        errors: "unless the subject is an IRI or blank node and the predicate an IRI",
        examples: &[],
        ..BASE
    };
}

/// `SUBJECT`.
pub mod subject {
    use super::{BASE, Definition, Row, Scalar, Type, Val};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["SUBJECT"],
        arguments: &[("triple", Type::Triple)],
        gives: Type::Term,
        row: Some(Scalar::Subject),
        summary: "The subject of a triple term.",
        errors: "for anything but a triple term",
        examples: &[],
        ..BASE
    };

    /// The function's value for one row, from the values of its arguments; `None` for an error.
    #[inline]
    pub fn row<R: Row>(row: &mut R, values: &[Val]) -> Option<Val> {
        row.part_of_triple(*values.first()?, 0)
    }
}

/// `PREDICATE`.
pub mod predicate {
    use super::{BASE, Definition, Row, Scalar, Type, Val};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["PREDICATE"],
        arguments: &[("triple", Type::Triple)],
        gives: Type::Iri,
        row: Some(Scalar::Predicate),
        summary: "The predicate of a triple term.",
        errors: "for anything but a triple term",
        examples: &[],
        ..BASE
    };

    /// The function's value for one row, from the values of its arguments; `None` for an error.
    #[inline]
    pub fn row<R: Row>(row: &mut R, values: &[Val]) -> Option<Val> {
        row.part_of_triple(*values.first()?, 1)
    }
}

/// `OBJECT`.
pub mod object {
    use super::{BASE, Definition, Row, Scalar, Type, Val};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["OBJECT"],
        arguments: &[("triple", Type::Triple)],
        gives: Type::Term,
        row: Some(Scalar::Object),
        summary: "The object of a triple term.",
        errors: "for anything but a triple term",
        examples: &[],
        ..BASE
    };

    /// The function's value for one row, from the values of its arguments; `None` for an error.
    #[inline]
    pub fn row<R: Row>(row: &mut R, values: &[Val]) -> Option<Val> {
        row.part_of_triple(*values.first()?, 2)
    }
}

/// `isTRIPLE`.
pub mod is_triple {
    use super::{BASE, Definition, Row, Scalar, Val};
    use jindou_model::term;

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["isTRIPLE"],
        row: Some(Scalar::IsTriple),
        summary: "True for a triple term.",
        examples: &[(r#"isTRIPLE("a")"#, "false")],
        ..BASE
    };

    /// The function's value for one row, from the values of its arguments; `None` for an error.
    #[inline]
    pub fn row<R: Row>(row: &mut R, values: &[Val]) -> Option<Val> {
        Some((row.tag(*values.first()?) == term::TRIPLE).into())
    }
}

/// `STRLANGDIR`. Its values are computed in the engine's `make.rs`.
pub mod strlangdir {
    use super::{BASE, Definition, Type};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["STRLANGDIR"],
        arguments: &[
            ("text", Type::Simple),
            ("tag", Type::Simple),
            ("direction", Type::Simple),
        ],
        least: 3,
        gives: Type::Text,
        summary: "The string with a language tag and a base direction, `ltr` or `rtl`.",
        errors: "unless all are strings without a language tag, the second a valid language tag, the third `ltr` or `rtl`",
        examples: &[],
        ..BASE
    };
}
