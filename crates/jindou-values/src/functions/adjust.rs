//! `ADJUST`.

use super::{Cost, Definition, Row, Scalar, Type, Val};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["ADJUST"],
    arguments: &[("time", Type::Time), ("zone", Type::Duration)],
    least: 2,
    repeats: false,
    gives: Type::Time,
    deterministic: true,
    cost: Cost::Text,
    row: Some(Scalar::Adjust),
    number: None,
    group: "Dates and times",
    summary: "The same time in another time zone; without a time zone for an empty string.",
    errors: "unless the first is a date or time and the second an `xsd:dayTimeDuration` of whole minutes up to 14 hours, or the empty string",
    examples: &[],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, second, _]: [Option<Val>; 3]) -> Option<Val> {
    let (t, zone) = (row.time(first?)?, second?);
    let to = match row.duration(zone) {
        Some(d) => Some(d),
        None => {
            let text = row.simple(zone)?;
            if text.start != text.end {
                return None;
            }
            None
        }
    };
    t.adjust(to).map(Val::Time)
}
