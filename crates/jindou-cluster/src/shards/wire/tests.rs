use super::*;
use jindou_model::random::splitmix64;
use proptest::prelude::*;
use proptest::sample::Index;

/// A value that can be made from random numbers.
pub(super) trait Made {
    fn made(random: &mut u64) -> Self;
}

impl Made for u64 {
    fn made(random: &mut u64) -> Self {
        splitmix64(random)
    }
}

impl Made for u32 {
    fn made(random: &mut u64) -> Self {
        splitmix64(random) as Self
    }
}

impl Made for u8 {
    fn made(random: &mut u64) -> Self {
        splitmix64(random) as Self
    }
}

impl Made for bool {
    fn made(random: &mut u64) -> Self {
        splitmix64(random) & 1 == 1
    }
}

impl Made for [u32; 2] {
    fn made(random: &mut u64) -> Self {
        [u32::made(random), u32::made(random)]
    }
}

impl<T: Made> Made for Vec<T> {
    fn made(random: &mut u64) -> Self {
        (0..splitmix64(random) % 9)
            .map(|_| T::made(random))
            .collect()
    }
}

fn some_requests(mut seed: u64) -> Vec<(u32, ShardRequest)> {
    let requests = Vec::made(&mut seed);
    (0..).map(|_| u32::made(&mut seed)).zip(requests).collect()
}

fn some_replies(mut seed: u64) -> Vec<Reply> {
    Vec::made(&mut seed)
}

proptest! {
    #[test]
    fn requests_come_back(seed: u64, cut: Index) {
        let all = some_requests(seed);
        let mut bytes = message(7, &all.iter().collect::<Vec<_>>());
        prop_assert_eq!(requests(&bytes), Some((7, all)));
        prop_assert_eq!(requests(&bytes[..cut.index(bytes.len())]), None);
        bytes.push(0);
        prop_assert_eq!(requests(&bytes), None);
    }

    #[test]
    fn replies_come_back(seed: u64, cut: Index) {
        let all = some_replies(seed);
        let mut bytes = Vec::new();
        put_replies(&all, &mut bytes);
        prop_assert_eq!(replies(&bytes), Some(all));
        prop_assert_eq!(replies(&bytes[..cut.index(bytes.len())]), None);
        bytes.push(0);
        prop_assert_eq!(replies(&bytes), None);
    }

    /// Damaged bytes are rejected, or decode to a value whose encoding is exactly these bytes.
    #[test]
    fn damage_is_refused_or_means_itself(seed: u64, at: Index, byte: u8) {
        let all = some_requests(seed);
        let mut bytes = message(7, &all.iter().collect::<Vec<_>>());
        let place = at.index(bytes.len());
        bytes[place] = byte;
        if let Some((base, read)) = requests(&bytes) {
            let again = message(base, &read.iter().collect::<Vec<_>>());
            prop_assert_eq!(again, bytes);
        }
        let mut bytes = Vec::new();
        put_replies(&some_replies(seed), &mut bytes);
        let place = at.index(bytes.len());
        bytes[place] = byte;
        if let Some(read) = replies(&bytes) {
            let mut again = Vec::new();
            put_replies(&read, &mut again);
            prop_assert_eq!(again, bytes);
        }
    }

    #[test]
    fn noise_is_no_message_that_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = (requests(&bytes), replies(&bytes));
    }
}

/// Lengths that far exceed the available bytes, up to those that overflow.
#[test]
fn lengths_are_not_trusted() {
    for length in [5, 1 << 40, u64::MAX / 4, u64::MAX / 4 + 1, u64::MAX] {
        for tag in (0..7).chain(8..12) {
            let mut bytes = vec![1, 0, 0, 0, tag];
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(&[0; 4]);
            assert_eq!(replies(&bytes), None, "{length} {tag}");
        }
    }
    assert_eq!(replies(&[255; 4]), None);
    assert_eq!(requests(&[255; 20]), None);
}
