//! Sizes and durations as people write them in command lines and requests.

use std::time::Duration;

/// Parses a number of bytes such as `512M`, `8G`, `8GiB`, `1.5g` or `1000000`. Units are powers of 1,024.
///
/// # Errors
/// A sentence that explains how sizes are written.
pub fn parse_size(s: &str) -> Result<u64, String> {
    let lower = s.trim().to_ascii_lowercase();
    let t = lower.trim_end_matches("ib").trim_end_matches('b');
    let (number, shift) = match t.as_bytes().last() {
        Some(b'k') => (&t[..t.len() - 1], 10),
        Some(b'm') => (&t[..t.len() - 1], 20),
        Some(b'g') => (&t[..t.len() - 1], 30),
        Some(b't') => (&t[..t.len() - 1], 40),
        _ => (t, 0),
    };
    match number.trim().parse::<f64>() {
        Ok(n) if n >= 0.0 && n.is_finite() => Ok((n * (1u64 << shift) as f64) as u64),
        _ => Err(format!("'{s}' is not a size; write it like 512M or 8G")),
    }
}

/// A number with its digits in groups of three: `144,426`.
#[must_use]
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Largest number of digits in a duration. More would not matter, and with fewer, `humantime`, which adds without
/// checks, cannot overflow.
const MOST_DIGITS: usize = 15;

/// Parses a duration such as `500ms`, `30s`, `2m`, `1h30m`, `1.5s` or `10` (seconds).
///
/// # Errors
/// A sentence that explains how durations are written.
pub fn parse_duration(s: &str) -> Result<Duration, String> {
    let t = s.trim();
    let digits = || t.bytes().filter(u8::is_ascii_digit).count();
    let parsed = match t.strip_suffix('s').unwrap_or(t).parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) if digits() > MOST_DIGITS => None,
        Err(_) => humantime::parse_duration(t).ok(),
    };
    parsed.ok_or_else(|| format!("'{s}' is not a time; write it like 500ms, 30s, 2m or 1h30m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times() {
        assert_eq!(parse_size("8G"), Ok(8 << 30));
        assert_eq!(parse_size("1.5KiB"), Ok(1536));
        assert!(parse_size("-1").is_err() && parse_size("much").is_err());
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        assert!(parse_duration("1e19s").is_ok());
        assert_eq!(parse_duration(" 10 "), Ok(Duration::from_secs(10)));
        assert_eq!(parse_duration("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("250us"), Ok(Duration::from_micros(250)));
        assert_eq!(parse_duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_duration("0s"), Ok(Duration::ZERO));
        assert!(parse_duration("-1").is_err() && parse_duration("1e30").is_err());
        for wrong in [
            "",
            "s",
            "-1s",
            "1e30s",
            "NaN",
            "inf",
            "infs",
            "1 fortnight",
            "１s",
        ] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn digits_are_grouped_by_threes() {
        for (n, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (144_426, "144,426"),
            (1_272_575, "1,272,575"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(grouped(n), text);
        }
    }

    #[test]
    fn times_that_do_not_fit_are_errors_and_no_panics() {
        assert!(parse_duration("1e19").is_ok() && parse_duration("1000y").is_ok());
        for long in [
            "1e20s",
            "999999999999999y",
            "18446744073709551615s 1000000000ns",
            "584542046090y 1d 9999999999999999ns",
        ] {
            assert!(parse_duration(long).is_err(), "{long}");
        }
    }
}
