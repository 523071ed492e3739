//! Days of the proleptic Gregorian calendar in the years 0 to 9999.

use crate::decimal;

/// A day, as the number of days since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(pub i32);

/// Number of days in 400 years, and from 0000-03-01 to 1970-01-01.
const ERA: i32 = 146_097;
const EPOCH: i32 = 719_468;

impl Day {
    /// The day of a calendar date; `None` if the date does not exist in the years 0 to 9999.
    pub fn from_date(year: i32, month: i32, day: i32) -> Option<Self> {
        if !(0..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        // Years are taken to begin in March, so that a leap day is the last day of its year.
        let (y, m) = if month > 2 {
            (year, month - 3)
        } else {
            (year - 1, month + 9)
        };
        let days = y.div_euclid(400) * ERA + y.rem_euclid(400) * 365 + y.rem_euclid(400) / 4
            - y.rem_euclid(400) / 100
            + (153 * m + 2) / 5
            + day
            - 1;
        let found = Self(days - EPOCH);
        (found.date() == (year, month, day)).then_some(found)
    }

    /// Parses a date such as `2013-06-21`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let mut next = |width: usize| {
            let part = parts.next()?;
            (part.len() == width && part.bytes().all(|b| b.is_ascii_digit()))
                .then(|| part.parse().ok())?
        };
        let (year, month, day) = (next(4)?, next(2)?, next(2)?);
        parts
            .next()
            .is_none()
            .then(|| Self::from_date(year, month, day))?
    }

    /// Year, month and day.
    pub fn date(self) -> (i32, i32, i32) {
        let z = self.0 + EPOCH;
        let of_era = z.rem_euclid(ERA);
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let m = (5 * of_year + 2) / 153;
        let day = of_year - (153 * m + 2) / 5 + 1;
        let month = if m < 10 { m + 3 } else { m - 9 };
        let year = year + z.div_euclid(ERA) * 400 + i32::from(month <= 2);
        (year, month, day)
    }

    /// Appends a date such as `2013-06-21`.
    pub(crate) fn push(self, out: &mut Vec<u8>) {
        let (year, month, day) = self.date();
        decimal::push_padded(out, year.unsigned_abs().into(), 4);
        out.push(b'-');
        decimal::push_padded(out, month.unsigned_abs().into(), 2);
        out.push(b'-');
        decimal::push_padded(out, day.unsigned_abs().into(), 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use by_counting::days;

    /// Computes days since 1970-01-01 by counting years and months one by one.
    mod by_counting {
        fn leap(y: i32) -> bool {
            y % 4 == 0 && (y % 100 != 0 || y % 400 == 0)
        }

        pub fn length(y: i32, m: i32) -> i32 {
            match m {
                2 => 28 + i32::from(leap(y)),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            }
        }

        pub fn days(y: i32, m: i32, d: i32) -> i32 {
            let years: i32 = if y >= 1970 {
                (1970..y).map(|y| 365 + i32::from(leap(y))).sum()
            } else {
                -(y..1970).map(|y| 365 + i32::from(leap(y))).sum::<i32>()
            };
            years + (1..m).map(|m| length(y, m)).sum::<i32>() + d - 1
        }

        #[test]
        fn counting_is_right() {
            assert_eq!(days(2000, 3, 1), 11_017);
        }
    }

    #[test]
    fn days_are_numbered_as_counting_gives() {
        for (year, month) in (0..=9999)
            .step_by(7)
            .flat_map(|y| (1..=12).map(move |m| (y, m)))
        {
            let last = by_counting::length(year, month);
            for day in [1, last] {
                let found = Day::from_date(year, month, day).unwrap();
                assert_eq!(found.0, days(year, month, day), "{year}-{month}-{day}");
                assert_eq!(found.date(), (year, month, day));
            }
            assert_eq!(Day::from_date(year, month, last + 1), None);
        }
    }

    #[test]
    fn texts_are_read_and_written() {
        for text in ["1970-01-01", "2012-02-29", "0000-01-01", "9999-12-31"] {
            let mut out = vec![];
            Day::parse(text).unwrap().push(&mut out);
            assert_eq!(out, text.as_bytes());
        }
        for text in [
            "",
            "2013-02-29",
            "2013-13-01",
            "13-01-01",
            "2013-1-1",
            "2013-01-01-",
            "+013-01-01",
        ] {
            assert_eq!(Day::parse(text), None, "{text}");
        }
    }
}
