//! Functions of numbers.

use super::{Cost, Definition, Type};

/// Fields that most definitions in this file have in common.
const BASE: Definition = Definition {
    arguments: &[("number", Type::Number)],
    gives: Type::Number,
    cost: Cost::Little,
    group: "Numbers",
    errors: "for anything but a number",
    ..Definition::DEFAULT
};

functions! {
    /// Its values are computed in the engine's `machine.rs`.
    rand "RAND" {
        arguments: &[],
        least: 0,
        deterministic: false,
        summary: "A random double, from 0 up to but without 1; another one in each call.",
        errors: "",
    }

    abs "ABS" {
        row: Some(Scalar::Abs),
        number: Some(Num::abs),
        summary: "The absolute value, in the argument's type.",
        examples: &[("ABS(-1.5)", "1.5")],
    } |row, values| {
        row.each_number(*values.first()?, Num::abs, Number::abs)
    }

    ceil "CEIL" {
        row: Some(Scalar::Ceil),
        number: Some(Num::ceil),
        summary: "The smallest whole number that is not less, in the argument's type.",
        examples: &[(
            "CEIL(10.5)",
            r#""11"^^<http://www.w3.org/2001/XMLSchema#decimal>"#,
        )],
    } |row, values| {
        row.each_number(*values.first()?, Num::ceil, Number::ceil)
    }

    floor "FLOOR" {
        row: Some(Scalar::Floor),
        number: Some(Num::floor),
        summary: "The largest whole number that is not greater, in the argument's type.",
        examples: &[(
            "FLOOR(-10.5)",
            r#""-11"^^<http://www.w3.org/2001/XMLSchema#decimal>"#,
        )],
    } |row, values| {
        row.each_number(*values.first()?, Num::floor, Number::floor)
    }

    round "ROUND" {
        row: Some(Scalar::Round),
        number: Some(Num::round),
        summary: "The nearest whole number, in the argument's type; of two that are as near, the greater.",
        examples: &[
            (
                "ROUND(2.5)",
                r#""3"^^<http://www.w3.org/2001/XMLSchema#decimal>"#,
            ),
            (
                "ROUND(-2.5)",
                r#""-2"^^<http://www.w3.org/2001/XMLSchema#decimal>"#,
            ),
        ],
    } |row, values| {
        row.each_number(*values.first()?, Num::round, Number::round)
    }

    /// Its values are computed in the engine's `machine.rs`.
    is_numeric "isNUMERIC" {
        arguments: &[("term", Type::Term)],
        gives: Type::Boolean,
        summary: "True for a literal of a numeric datatype whose text is a number of it.",
        errors: "",
        examples: &[("isNUMERIC(12)", "true"), (r#"isNUMERIC("12")"#, "false")],
    }
}
