//! `TIMEZONE`.

use super::{Cost, Definition, Row, Scalar, Type, Val};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["TIMEZONE"],
    arguments: &[("time", Type::Time)],
    least: 1,
    repeats: false,
    gives: Type::Duration,
    deterministic: true,
    cost: Cost::Text,
    row: Some(Scalar::Timezone),
    number: None,
    group: "Dates and times",
    summary: "The time zone as an `xsd:dayTimeDuration`.",
    errors: "for a value without a time zone",
    examples: &[(
        r#"TIMEZONE("2011-01-10T14:45:13.815-05:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>)"#,
        r#""-PT5H"^^<http://www.w3.org/2001/XMLSchema#dayTimeDuration>"#,
    )],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, ..]: [Option<Val>; 3]) -> Option<Val> {
    row.time(first?)?.zone().map(Val::Duration)
}
