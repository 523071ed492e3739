//! Encoding of a base's remembered requests and of the hash of its last group.
//!
//! The list contains, for each request, its key (16 bytes), group number (8), length of the answer (8), and answer.
//! Releases before group version 2 read only these fields. So the newer fields are stored as the answer of an
//! additional pseudo-request, with a key that no client uses:
//!
//! ```text
//! number   u64   number of the base to which the fields belong
//! hash     u64   hash of the base's last group; 0: unknown
//! then     each { key u128, fingerprint u64 }, for the requests whose fingerprint is known
//! ```
//!
//! An older release copies the pseudo-request unchanged into its own bases. The number then shows that the fields
//! belong to another base and must be ignored.

use crate::machine::{Base, KnownKey, RequestKey};
use bytes::Bytes;

/// Key of the pseudo-request that contains the newer fields.
const EXTENSION_KEY: RequestKey = RequestKey(u128::MAX);

/// Encodes the requests and the hash of a base.
pub fn write_known(base: &Base) -> Vec<u8> {
    let mut out = Vec::new();
    let mut extension = Vec::new();
    for number in [base.number, base.hash] {
        extension.extend_from_slice(&number.to_le_bytes());
    }
    for known in &base.keys {
        write_one(&mut out, known.key, known.number, &known.report);
        if known.fingerprint != 0 {
            extension.extend_from_slice(&known.key.0.to_le_bytes());
            extension.extend_from_slice(&known.fingerprint.to_le_bytes());
        }
    }
    write_one(&mut out, EXTENSION_KEY, base.number, &extension);
    out
}

fn write_one(out: &mut Vec<u8>, key: RequestKey, number: u64, report: &[u8]) {
    out.extend_from_slice(&key.0.to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&(report.len() as u64).to_le_bytes());
    out.extend_from_slice(report);
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

/// Decodes the requests and the hash of the base with this number; `None` if the bytes are damaged.
pub fn read_known(number: u64, mut bytes: &[u8]) -> Option<Base> {
    let mut base = Base {
        number,
        ..Base::default()
    };
    let mut extension: &[u8] = &[];
    while !bytes.is_empty() {
        let key = RequestKey(u128::from_le_bytes(take(&mut bytes)?));
        let number = u64::from_le_bytes(take(&mut bytes)?);
        let length = usize::try_from(u64::from_le_bytes(take(&mut bytes)?)).ok()?;
        let (report, rest) = bytes.split_at_checked(length)?;
        bytes = rest;
        match key {
            EXTENSION_KEY => extension = report,
            key => base.keys.push(KnownKey {
                key,
                fingerprint: 0,
                number,
                report: Bytes::copy_from_slice(report),
            }),
        }
    }
    if extension.is_empty() {
        return Some(base);
    }
    let of = u64::from_le_bytes(take(&mut extension)?);
    let hash = u64::from_le_bytes(take(&mut extension)?);
    if of == number {
        base.hash = hash;
    }
    let mut fingerprints = std::collections::HashMap::new();
    while !extension.is_empty() {
        let key = RequestKey(u128::from_le_bytes(take(&mut extension)?));
        fingerprints.insert(key, u64::from_le_bytes(take(&mut extension)?));
    }
    for known in &mut base.keys {
        known.fingerprint = fingerprints.get(&known.key).copied().unwrap_or(0);
    }
    Some(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(number: u64) -> Base {
        let known = |key, fingerprint| KnownKey {
            key: RequestKey(key),
            fingerprint,
            number: 3,
            report: vec![key as u8; key as usize].into(),
        };
        Base {
            number,
            hash: 77,
            keys: vec![known(1, 0), known(2, 9), known(0, 5)],
        }
    }

    #[test]
    fn what_a_base_knows_is_read_back() {
        for base in [base(8), Base::default()] {
            let bytes = write_known(&base);
            assert_eq!(read_known(base.number, &bytes), Some(base.clone()));
            for end in 0..bytes.len() {
                let cut = read_known(base.number, &bytes[..end]);
                assert!(cut.is_none_or(|cut| cut.hash == 0), "{end}");
            }
        }
    }

    /// A release before group version 2 writes the list without the newer fields, or with those of another base.
    #[test]
    fn lists_of_earlier_releases_are_read() {
        let mut of_old = Vec::new();
        for known in base(8).keys {
            write_one(&mut of_old, known.key, known.number, &known.report);
        }
        let read = read_known(8, &of_old).unwrap();
        assert_eq!((read.hash, read.keys.len()), (0, 3));
        assert!(read.keys.iter().all(|known| known.fingerprint == 0));
        let read = read_known(9, &write_known(&base(8))).unwrap();
        assert_eq!((read.hash, read.keys[1].fingerprint), (0, 9));
    }
}
