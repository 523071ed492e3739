//! Columns of numbers, truth values, dates and times. Each distinct term is parsed once.

use super::{RowPlaces, Texts};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Float64Array, Int64Array, TimestampMicrosecondArray,
};
use arrow_buffer::{BooleanBuffer, ScalarBuffer};
use oxsdatatypes::{Boolean, Date, DateTime, Decimal, Double, Float, Integer};
use std::str::FromStr;
use std::sync::Arc;

/// Codes of datatypes in canonical terms (see `jindou_model::term`): `xsd:integer`, the types derived from it, and
/// others.
const INTEGER: u8 = 0x80;
const DECIMAL: u8 = 0x81;
const DOUBLE: u8 = 0x82;
const FLOAT: u8 = 0x83;
const LAST_INTEGER: u8 = 0x8F;
const BOOLEAN: u8 = 0x90;
const DATE_TIME: u8 = 0x91;
const DATE: u8 = 0x92;

fn is_integer(tag: u8) -> bool {
    tag == INTEGER || (FLOAT < tag && tag <= LAST_INTEGER)
}

/// The column as a typed array. `None` if its terms are of several kinds or of a kind without such a type, or if a
/// value cannot be represented exactly. (Decimals are an exception: they become the nearest `float64`.)
pub fn array(texts: &Texts, places: &RowPlaces) -> Option<ArrayRef> {
    let tags = &texts.tags;
    let all = |wanted: fn(u8) -> bool| tags.iter().all(|tag| wanted(*tag));
    let first = *tags.first()?;
    let nulls = || places.nulls.clone();
    if all(is_integer) {
        let values = values(texts, |_, text| {
            Some(i64::from(Integer::from_str(text).ok()?))
        })?;
        let rows = ScalarBuffer::from(places.gather(&values, 0));
        return Some(Arc::new(Int64Array::try_new(rows, nulls()).ok()?));
    }
    if all(|tag| (INTEGER..=LAST_INTEGER).contains(&tag)) {
        let values = values(texts, number)?;
        let rows = ScalarBuffer::from(places.gather(&values, 0.0));
        return Some(Arc::new(Float64Array::try_new(rows, nulls()).ok()?));
    }
    if !tags.iter().all(|tag| *tag == first) {
        return None;
    }
    match first {
        BOOLEAN => {
            let values = values(texts, |_, text| {
                Boolean::from_str(text).ok().map(bool::from)
            })?;
            let rows = BooleanBuffer::from_iter(places.gather(&values, false));
            Some(Arc::new(BooleanArray::new(rows, nulls())))
        }
        DATE_TIME => {
            let values = values(texts, |_, text| instant(text))?;
            // Either all values have a time zone or none has; otherwise they are not comparable.
            let zoned = values.first()?.1;
            if values.iter().any(|value| value.1 != zoned) {
                return None;
            }
            let micros: Vec<i64> = values.into_iter().map(|value| value.0).collect();
            let rows = ScalarBuffer::from(places.gather(&micros, 0));
            let array = TimestampMicrosecondArray::try_new(rows, nulls()).ok()?;
            Some(Arc::new(if zoned {
                array.with_timezone("UTC")
            } else {
                array
            }))
        }
        DATE => {
            let values = values(texts, |_, text| day(text))?;
            let rows = ScalarBuffer::from(places.gather(&values, 0));
            Some(Arc::new(Date32Array::try_new(rows, nulls()).ok()?))
        }
        _ => None,
    }
}

/// The value of each distinct term; `None` if a term has none.
fn values<T>(texts: &Texts, read: impl Fn(u8, &str) -> Option<T>) -> Option<Vec<T>> {
    let tags = texts.tags.iter();
    tags.zip(texts.iter())
        .map(|(&tag, text)| read(tag, text))
        .collect()
}

fn number(tag: u8, text: &str) -> Option<f64> {
    match tag {
        DOUBLE => Some(Double::from_str(text).ok()?.into()),
        FLOAT => Some(f64::from(f32::from(Float::from_str(text).ok()?))),
        DECIMAL => Some(Double::from(Decimal::from_str(text).ok()?).into()),
        _ => {
            let value = i64::from(Integer::from_str(text).ok()?);
            // Beyond 2⁵³, not every integer is a `float64`.
            (value.unsigned_abs() <= 1 << 53).then_some(value as f64)
        }
    }
}

/// Microseconds since 1970, and whether the text has a time zone. `None` if the value cannot be represented exactly.
fn instant(text: &str) -> Option<(i64, bool)> {
    let value = DateTime::from_str(text).ok()?;
    let zoned = value.timezone_offset().is_some();
    let epoch = if zoned {
        "1970-01-01T00:00:00Z"
    } else {
        "1970-01-01T00:00:00"
    };
    let since = value
        .checked_sub(DateTime::from_str(epoch).ok()?)?
        .as_seconds();
    let micros = since.checked_mul(Decimal::from(1_000_000))?;
    let whole = i64::from(Integer::try_from(micros).ok()?);
    // Fractions of a microsecond would be lost.
    (Decimal::from(whole) == micros).then_some((whole, zoned))
}

/// Days since 1970; `None` for a date with a time zone, which the type cannot represent.
fn day(text: &str) -> Option<i32> {
    let value = Date::from_str(text).ok()?;
    if value.timezone_offset().is_some() {
        return None;
    }
    let since = value
        .checked_sub(Date::from_str("1970-01-01").ok()?)?
        .as_seconds();
    let seconds = i64::from(Integer::try_from(since).ok()?);
    i32::try_from(seconds / 86_400).ok()
}
