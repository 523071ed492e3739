//! Durations, as months and seconds.

use crate::decimal::Decimal;
use crate::exact::Exact;
use crate::number::{Arithmetic, Num, Number};
use jindou_model::term::TEMPORAL_TAGS;
use std::cmp::Ordering;
use std::io::Write;

/// Units per second: a unit is 10⁻¹⁸ seconds.
pub(crate) const UNIT: i128 = 1_000_000_000_000_000_000;

/// A duration of `xsd:duration`, `xsd:dayTimeDuration` or `xsd:yearMonthDuration`, of less than 2³¹ months and 2⁶³
/// seconds, with 18 digits after the seconds' point.
#[derive(Clone, Copy, Debug)]
pub struct Duration {
    months: i32,
    /// Tag of the datatype.
    tag: u8,
    seconds: i64,
    /// Fraction of a second, in units of 10⁻¹⁸; never of the opposite sign to `seconds`.
    units: i64,
}

/// Tag of `xsd:duration`.
pub(crate) const DURATION: u8 = *TEMPORAL_TAGS.start() + 8;
/// Tag of `xsd:dayTimeDuration`.
pub(crate) const DAY_TIME: u8 = DURATION + 1;
/// Tag of `xsd:yearMonthDuration`.
pub(crate) const YEAR_MONTH: u8 = DURATION + 2;

/// A sort key that extends the partial order of durations to a total one: equal exactly if the durations are equal, and
/// less whenever a duration is definitely less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DurationKey {
    /// Sum of the seconds that the duration takes from each of XSD's four reference dates: whole seconds, and the
    /// fraction.
    whole: i128,
    rest: i128,
    months: i64,
}

/// Durations with the same value are equal, whatever their datatypes (op:duration-equal).
impl PartialEq for Duration {
    fn eq(&self, other: &Self) -> bool {
        (self.months, self.seconds, self.units) == (other.months, other.seconds, other.units)
    }
}

impl Eq for Duration {}

impl Duration {
    /// A duration of the datatype with this tag; `None` if it is out of range.
    pub(crate) fn new(tag: u8, months: i128, units: i128) -> Option<Self> {
        Some(Self {
            months: i32::try_from(months).ok()?,
            tag,
            seconds: i64::try_from(units / UNIT).ok()?,
            units: (units % UNIT) as i64,
        })
    }

    /// The value of a lexical form of the datatype with this tag (XSD 1.1 §3.3.6, §3.4.26, §3.4.27); `None` if it is
    /// invalid or out of range.
    #[must_use]
    pub fn parse(tag: u8, lexical: &str) -> Option<Self> {
        if !(DURATION..=YEAR_MONTH).contains(&tag) {
            return None;
        }
        let (negative, rest) = match lexical.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, lexical),
        };
        let mut rest = rest.strip_prefix('P')?.as_bytes();
        let (mut months, mut seconds) = (0i128, 0i128);
        let mut units = 0i128;
        // Index in "YMDHMS" of the first letter that may still follow.
        let (mut next, mut time, mut any) = (0, false, false);
        while let Some((&first, behind)) = rest.split_first() {
            if first == b'T' && !time {
                (time, next, any) = (true, 3, false);
                rest = behind;
                continue;
            }
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            let number = number(rest.get(..digits)?)?;
            rest = rest.get(digits..)?;
            if digits == 0 {
                return None;
            }
            if let Some(fraction) = rest.strip_prefix(b".") {
                let places = fraction.iter().take_while(|b| b.is_ascii_digit()).count();
                units = fraction_of(fraction.get(..places)?)?;
                rest = fraction.get(places..)?;
                if rest != b"S" {
                    return None;
                }
            }
            let (&letter, behind) = rest.split_first()?;
            rest = behind;
            let of_day = if time { "HMS" } else { "YMD" };
            let place = of_day.bytes().position(|b| b == letter)? + if time { 3 } else { 0 };
            if place < next {
                return None;
            }
            (next, any) = (place + 1, true);
            let fits = match tag {
                DAY_TIME => place > 1,
                YEAR_MONTH => place < 2,
                _ => true,
            };
            if !fits {
                return None;
            }
            let of = |each: i128| number.checked_mul(each);
            match place {
                0 => months = months.checked_add(of(12)?)?,
                1 => months = months.checked_add(number)?,
                2 => seconds = seconds.checked_add(of(86_400)?)?,
                3 => seconds = seconds.checked_add(of(3600)?)?,
                4 => seconds = seconds.checked_add(of(60)?)?,
                _ => seconds = seconds.checked_add(number)?,
            }
        }
        if !any {
            return None;
        }
        let units = seconds.checked_mul(UNIT)?.checked_add(units)?;
        if negative {
            Self::new(tag, -months, -units)
        } else {
            Self::new(tag, months, units)
        }
    }

    /// An `xsd:dayTimeDuration` of this many units of 10⁻¹⁸ seconds; `None` if it is out of range.
    #[must_use]
    pub fn of_units(units: i128) -> Option<Self> {
        Self::new(DAY_TIME, 0, units)
    }

    /// The tag of its datatype.
    #[must_use]
    pub fn tag(self) -> u8 {
        self.tag
    }

    /// The months part.
    pub(crate) fn months(self) -> i64 {
        i64::from(self.months)
    }

    /// The seconds part, in units of 10⁻¹⁸ seconds.
    pub(crate) fn units(self) -> i128 {
        i128::from(self.seconds) * UNIT + i128::from(self.units)
    }

    /// The value in another of the three types, without the parts that this type does not have (F&O 3.1 §19.1.4).
    /// `None` for the tag of any other type.
    #[must_use]
    pub fn cast(self, tag: u8) -> Option<Self> {
        match tag {
            DURATION => Some(Self { tag, ..self }),
            DAY_TIME => Some(Self {
                tag,
                months: 0,
                ..self
            }),
            YEAR_MONTH => Some(Self {
                tag,
                seconds: 0,
                units: 0,
                ..self
            }),
            _ => None,
        }
    }

    /// The sum, an `xsd:duration` if the types differ. `None` if it is out of range, or if its months and seconds would
    /// have different signs.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        let tag = if self.tag == other.tag {
            self.tag
        } else {
            DURATION
        };
        let months = i128::from(self.months) + i128::from(other.months);
        let units = self.units().checked_add(other.units())?;
        Self::of_one_sign(tag, months, units)
    }

    fn of_one_sign(tag: u8, months: i128, units: i128) -> Option<Self> {
        if months > 0 && units < 0 || months < 0 && units > 0 {
            return None;
        }
        Self::new(tag, months, units)
    }

    /// The duration with the opposite sign; `None` if it is out of range.
    #[must_use]
    pub fn negate(self) -> Option<Self> {
        Self::new(self.tag, -i128::from(self.months), -self.units())
    }

    /// The duration times a number, rounded to whole months (fn:round) and to 10⁻¹⁸ seconds. `None` if it is out of
    /// range, and for NaN and infinities.
    #[must_use]
    pub fn multiply(self, by: &Number) -> Option<Self> {
        self.scale(by, Arithmetic::Multiply)
    }

    /// The duration divided by a number, rounded as in [`Self::multiply`]. `None` also for division by zero.
    #[must_use]
    pub fn divide(self, by: &Number) -> Option<Self> {
        // Division by ±INF yields a zero duration (F&O 3.1 §8.4.4, §8.4.9).
        if by.to_f64().is_infinite() && by.exact().is_none() {
            return Self::new(self.tag, 0, 0);
        }
        self.scale(by, Arithmetic::Divide)
    }

    fn scale(self, by: &Number, op: Arithmetic) -> Option<Self> {
        // For a float or double, its shortest decimal form counts: 2.3e0 is 2.3, as the specification's example
        // requires.
        let by = match by {
            Number::Small(Num::Flt(_) | Num::Dbl(_)) => {
                let real = by.to_f64();
                Number::decimal(Exact::parse(&format!("{real}"))?)
            }
            exact => Number::decimal(exact.exact()?),
        };
        let months = Number::from(Num::Int(self.months())).compute(op, &by)?;
        let months = match months.round()? {
            Number::Small(Num::Dec(d)) => d.whole(),
            Number::Small(Num::Int(i)) => i.into(),
            _ => return None,
        };
        let seconds = Number::from(Num::Dec(Decimal::from_units(self.units()))).compute(op, &by)?;
        let units = match &seconds {
            Number::Small(Num::Dec(d)) => d.units(),
            Number::Decimal(e) => {
                // The product has more digits than a duration, so it is rounded.
                let unit = Number::from(Num::Dec(Decimal::from_units(UNIT)));
                let million = Number::from(Num::Int(UNIT as i64));
                let whole = Number::decimal(e.clone())
                    .compute(Arithmetic::Multiply, &million)?
                    .round()?
                    .compute(Arithmetic::Divide, &million)?
                    .compute(Arithmetic::Multiply, &unit)?;
                match whole.small()? {
                    Num::Dec(d) => d.units(),
                    _ => return None,
                }
            }
            _ => return None,
        };
        Self::new(self.tag, months, units)
    }

    /// The ratio of this duration to another, as a decimal. `None` unless both have only months or both have only
    /// seconds, and for division by zero.
    #[must_use]
    pub fn ratio(self, other: Self) -> Option<Number> {
        let number = |units| Number::from(Num::Dec(Decimal::from_units(units)));
        let (a, b) = if self.units() == 0 && other.units() == 0 && other.months != 0 {
            let (a, b) = (Decimal::from(self.months()), Decimal::from(other.months()));
            (a.units(), b.units())
        } else if self.months == 0 && other.months == 0 {
            (self.units(), other.units())
        } else {
            return None;
        };
        number(a).compute(Arithmetic::Divide, &number(b))
    }

    /// The partial order of XSD 1.1 §3.3.6: one duration is greater if it is after each of four reference dates;
    /// otherwise `None`.
    #[must_use]
    pub fn order(self, other: Self) -> Option<Ordering> {
        if self == other {
            return Some(Ordering::Equal);
        }
        if self.months == other.months {
            return Some(self.units().cmp(&other.units()));
        }
        if self.units() == other.units() {
            return Some(self.months.cmp(&other.months));
        }
        let mut all = DATES.iter().map(|&from| {
            let after =
                |d: Self| i128::from(days_after(from, d.months())) * 86_400 * UNIT + d.units();
            after(self).cmp(&after(other))
        });
        let first = all.next()?;
        all.all(|o| o == first).then_some(first)
    }

    /// The sort key for ORDER BY.
    #[must_use]
    pub fn key(self) -> DurationKey {
        let days: i64 = DATES
            .iter()
            .map(|&from| days_after(from, self.months()))
            .sum();
        let rest = self.units().rem_euclid(UNIT) * 4;
        let whole =
            self.units().div_euclid(UNIT) * 4 + i128::from(days) * 86_400 + rest.div_euclid(UNIT);
        DurationKey {
            whole,
            rest: rest.rem_euclid(UNIT),
            months: self.months(),
        }
    }

    /// Appends the canonical bytes of the literal.
    pub fn push(self, out: &mut Vec<u8>) {
        out.push(self.tag);
        self.push_text(out);
    }

    /// Appends the canonical lexical form (XSD 1.1 §E.3).
    pub fn push_text(self, out: &mut Vec<u8>) {
        if self.months < 0 || self.seconds < 0 || self.units < 0 {
            out.push(b'-');
        }
        out.push(b'P');
        let months = self.months.unsigned_abs();
        let seconds = self.seconds.unsigned_abs();
        let units = self.units.unsigned_abs();
        if months == 0 && seconds == 0 && units == 0 {
            out.extend_from_slice(if self.tag == YEAR_MONTH {
                b"0M"
            } else {
                b"T0S"
            });
            return;
        }
        let part = |out: &mut Vec<u8>, n: u64, letter: char| {
            if n > 0 {
                // Writing to a vector cannot fail.
                let _ = write!(out, "{n}{letter}");
            }
        };
        part(out, u64::from(months / 12), 'Y');
        part(out, u64::from(months % 12), 'M');
        part(out, seconds / 86_400, 'D');
        let of_day = seconds % 86_400;
        if of_day == 0 && units == 0 {
            return;
        }
        out.push(b'T');
        part(out, of_day / 3600, 'H');
        part(out, of_day / 60 % 60, 'M');
        if !of_day.is_multiple_of(60) || units > 0 {
            Decimal::from_units(i128::from(of_day % 60) * UNIT + i128::from(units)).push(out);
            out.push(b'S');
        }
    }
}

/// XSD's reference dates, in months since the start of year 0.
const DATES: [i64; 4] = [1696 * 12 + 8, 1697 * 12 + 1, 1903 * 12 + 2, 1903 * 12 + 6];

/// Number of days from the first day of a month to the first day of the month `months` later.
fn days_after(from: i64, months: i64) -> i64 {
    use crate::temporal::days;
    let to = from + months;
    let of = |m: i64| days(m.div_euclid(12), m.rem_euclid(12) + 1, 1);
    of(to) - of(from)
}

/// The number that these digits form; `None` if it does not fit.
fn number(digits: &[u8]) -> Option<i128> {
    digits.iter().try_fold(0i128, |n, d| {
        n.checked_mul(10)?.checked_add(i128::from(d - b'0'))
    })
}

/// The fraction that the digits after a second's point form, in units of 10⁻¹⁸. `None` without digits, and for more
/// than 18 digits, not counting trailing zeros.
pub(crate) fn fraction_of(digits: &[u8]) -> Option<i128> {
    if digits.is_empty() {
        return None;
    }
    let kept = digits.len().min(18);
    if digits[kept..].iter().any(|&d| d != b'0') {
        return None;
    }
    Some(number(&digits[..kept])? * 10i128.pow(18 - kept as u32))
}
