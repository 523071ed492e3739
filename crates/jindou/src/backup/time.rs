//! Times as text with a date and a zone.

use jindou_model::{Error, Resource, Result};
use oxsdatatypes::{DateTime, DayTimeDuration, Decimal, Integer};

const BEGIN: &str = "1970-01-01T00:00:00Z";

/// Parses a time with its zone, such as `2026-11-22T07:42:15Z`, into microseconds since 1970 (UTC).
///
/// # Errors
/// [`Error::Query`] for other texts, and for times before 1970.
pub fn parse_time(text: &str) -> Result<u64> {
    let bad = || {
        Error::limit(
            Resource::Form,
            format!("'{text}' is not a time with a time zone; write it like 2026-11-22T07:42:15Z"),
        )
    };
    let time: DateTime = text.parse().map_err(|_| bad())?;
    time.timezone_offset().ok_or_else(bad)?;
    let begin: DateTime = BEGIN.parse().map_err(|_| bad())?;
    let since = time.checked_sub(begin).ok_or_else(bad)?;
    let whole = (since.days() * 24 + since.hours()) * 60 + since.minutes();
    let micros = since
        .seconds()
        .checked_mul(Decimal::from(1_000_000))
        .and_then(|d| Integer::try_from(d).ok())
        .ok_or_else(bad)?;
    let micros = i64::from(micros).checked_add(whole.checked_mul(60_000_000).ok_or_else(bad)?);
    micros.and_then(|m| u64::try_from(m).ok()).ok_or_else(bad)
}

/// The text of a time; the inverse of [`parse_time`].
#[must_use]
pub fn time_text(micros: u64) -> String {
    let text = || -> Option<String> {
        let begin: DateTime = BEGIN.parse().ok()?;
        let since = DayTimeDuration::new(Decimal::new(i128::from(micros), 6).ok()?);
        Some(begin.checked_add_day_time_duration(since)?.to_string())
    };
    text().unwrap_or_else(|| format!("{micros} µs after 1970"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        // The expected text is the output of `date -u -d @1795333335 +%FT%TZ`.
        assert_eq!(time_text(1_795_333_335_000_000), "2026-11-22T07:42:15Z");
        assert_eq!(
            parse_time("2026-11-22T08:42:15.25+01:00").ok(),
            Some(1_795_333_335_250_000)
        );
        for micros in [0, 1, 999_999, 951_782_400_000_000, 4_102_444_799_999_999] {
            assert_eq!(parse_time(&time_text(micros)).ok(), Some(micros));
        }
        for bad in [
            "",
            "yesterday",
            "2026-11-22",
            "2026-11-22T07:42:15",
            "1969-01-01T00:00:00Z",
        ] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }
}
