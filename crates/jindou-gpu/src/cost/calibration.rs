//! A device's speeds, measured or from its data sheet, and the file in which they are stored.

use super::learnt::{self, Learnt};
use serde_json::{Map, Value, json};
use std::io::Read;
use std::path::Path;

/// Largest plausible size of a calibration file in bytes; a larger one is considered damaged.
const MOST_BYTES: u64 = 16 << 20;

/// A measured figure that exceeds its physical maximum by more than this factor is reported as wrong; a smaller excess
/// is attributed to noise.
pub(super) const DOUBTFUL: f64 = 1.1;

/// A device's speeds, in bytes and seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// Bytes per second that kernels read and write sequentially.
    pub stream: f64,
    /// Bytes per second for random reads of 32-byte sectors: pairs of the size in bytes of the memory read from,
    /// ascending, and the speed.
    pub random: Vec<(f64, f64)>,
    /// Seconds per additional kernel in the queue.
    pub launch: f64,
    /// Seconds from the end of the last kernel until the host has read a number that it wrote.
    pub sync: f64,
    /// Bytes per second from the host's arrays to the device, including staging.
    pub upload: f64,
    /// Bytes per second from the device to pinned memory.
    pub download: f64,
}

impl Calibration {
    /// Figures of an H200. The sequential speed was measured; the link's speed is that of the data sheet (PCIe 5),
    /// reduced because one core copies to pinned memory; the speed of random reads and the times for launches and waits
    /// are estimates.
    #[must_use]
    pub fn h200() -> Self {
        Self {
            stream: 4.3e12,
            random: vec![(30e6, 3e12), (1e9, 1.2e12), (64e9, 0.6e12)],
            launch: 2.5e-6,
            sync: 8e-6,
            upload: 10e9,
            download: 50e9,
        }
    }

    /// A device that takes no time, so that every heavy plan is predicted to run faster there. For tests of the code
    /// that follows the decision.
    #[must_use]
    pub fn ideal() -> Self {
        let most = f64::MAX;
        Self {
            stream: most,
            random: vec![(1.0, most)],
            launch: 0.0,
            sync: 0.0,
            upload: most,
            download: most,
        }
    }

    /// Bytes per second for random reads of sectors in `footprint` bytes of memory, interpolated linearly over the
    /// logarithm of the size.
    #[must_use]
    pub fn random_in(&self, footprint: f64) -> f64 {
        let points = &self.random;
        let after = points.partition_point(|p| p.0 < footprint);
        match (
            after.checked_sub(1).and_then(|i| points.get(i)),
            points.get(after),
        ) {
            (Some(a), Some(b)) => {
                let share = (footprint / a.0).ln() / (b.0 / a.0).ln();
                a.1 + (b.1 - a.1) * share
            }
            (Some(p), None) | (None, Some(p)) => p.1,
            (None, None) => self.stream / 4.0,
        }
    }

    /// Lowers impossible figures: random reads are not faster than sequential ones, nor faster in more memory than in
    /// less, and the link is not faster than the device's memory. Returns a sentence for each figure that was more than
    /// a tenth too high, which noise does not explain.
    pub fn mend(&mut self) -> Vec<String> {
        let mut refused = Vec::new();
        let mut lower = |what: &str, figure: &mut f64, most: f64, than: &str| {
            if *figure > most * DOUBTFUL {
                refused.push(format!(
                    "{what} at {:.0} GB/s, more than {than} ({:.0} GB/s)",
                    *figure / 1e9,
                    most / 1e9
                ));
            }
            *figure = figure.min(most);
        };
        let (mut most, mut than) = (self.stream, "in order".to_owned());
        for (size, rate) in &mut self.random {
            let what = format!("sectors without order in {:.0} MB", *size / 1e6);
            lower(&what, rate, most, &than);
            (most, than) = (*rate, format!("in {:.0} MB", *size / 1e6));
        }
        let than = "the device's memory takes";
        lower("copies to the device", &mut self.upload, self.stream, than);
        lower("copies from it", &mut self.download, self.stream, than);
        refused
    }

    /// The JSON object in which the speeds are stored.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let random: Vec<Value> = self.random.iter().map(|p| json!([p.0, p.1])).collect();
        json!({
            "stream_bytes_s": self.stream, "random_bytes_s": random, "launch_s": self.launch, "sync_s": self.sync,
            "upload_bytes_s": self.upload, "download_bytes_s": self.download,
        })
    }

    /// Parses such an object; `None` unless every figure is present and plausible. Impossible figures are lowered, as
    /// by [`Self::mend`].
    #[must_use]
    pub fn from_json(v: &Value) -> Option<Self> {
        let number = |v: &Value| v.as_f64().filter(|n| n.is_finite());
        let speed = |name: &str| number(v.get(name)?).filter(|&n| n > 0.0);
        let seconds = |name: &str| number(v.get(name)?).filter(|&n| n >= 0.0);
        let mut random = Vec::<(f64, f64)>::new();
        for point in v.get("random_bytes_s")?.as_array()? {
            let size = number(point.get(0)?).filter(|&n| n > 0.0)?;
            let rate = number(point.get(1)?).filter(|&n| n > 0.0)?;
            if random.last().is_some_and(|&(before, _)| before >= size) {
                return None;
            }
            random.push((size, rate));
        }
        let mut speeds = Self {
            stream: speed("stream_bytes_s")?,
            random,
            launch: seconds("launch_s")?,
            sync: seconds("sync_s")?,
            upload: speed("upload_bytes_s")?,
            download: speed("download_bytes_s")?,
        };
        let _ = speeds.mend();
        Some(speeds)
    }

    /// Loads the speeds of the device with this `identity` from a file that maps identities to devices' objects; `None`
    /// if it has none.
    #[must_use]
    pub fn load(file: &Path, identity: &str) -> Option<Self> {
        Self::from_json(read(file).get(identity)?)
    }

    /// Stores the speeds in the file. The other devices' objects in it, and what was learned from this device's runs,
    /// stay.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn save(&self, file: &Path, identity: &str) -> std::io::Result<()> {
        change(file, identity, |member| {
            if let Value::Object(speeds) = self.to_json() {
                member.extend(speeds);
            }
        })
    }
}

/// Loads the ratios learned from runs on the device with this `identity`; empty if the file has none.
pub(super) fn load_runs(file: &Path, identity: &str) -> Learnt {
    let all = read(file);
    let runs = all.get(identity).and_then(|d| d.get(learnt::MEMBER));
    runs.map_or_else(Learnt::default, Learnt::from_json)
}

/// Stores the ratios learned from runs next to the device's speeds.
pub(super) fn save_runs(file: &Path, identity: &str, runs: &Learnt) -> std::io::Result<()> {
    change(file, identity, |member| learnt::store(member, runs))
}

/// The devices' objects in a file by identity; empty if the file is absent or damaged.
fn read(file: &Path) -> Map<String, Value> {
    let mut text = String::new();
    let whole = std::fs::File::open(file)
        .and_then(|f| f.take(MOST_BYTES).read_to_string(&mut text))
        .is_ok();
    match serde_json::from_str(&text) {
        Ok(Value::Object(all)) if whole => all,
        _ => Map::new(),
    }
}

/// Changes one device's object in the file.
fn change(
    file: &Path,
    identity: &str,
    with: impl FnOnce(&mut Map<String, Value>),
) -> std::io::Result<()> {
    let mut all = read(file);
    let member = all.entry(identity).or_insert_with(|| json!({}));
    if !member.is_object() {
        *member = json!({});
    }
    if let Value::Object(member) = member {
        with(member);
    }
    // Another process sees either the old file or the new one.
    let mut new = file.as_os_str().to_owned();
    new.push(format!(".{}", std::process::id()));
    let written = std::fs::write(&new, format!("{:#}\n", Value::Object(all)))
        .and_then(|()| std::fs::rename(&new, file));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::super::learnt::Side;
    use super::super::shape::Shape;
    use super::*;

    #[test]
    fn random_speeds_lie_between_those_measured() {
        let c = Calibration::h200();
        assert_eq!(c.random_in(1.0), 3e12);
        assert_eq!(c.random_in(30e6), 3e12);
        let mid = c.random_in((30e6f64 * 1e9).sqrt());
        assert!((mid - 2.1e12).abs() < 1e9, "{mid}");
        assert_eq!(c.random_in(1e12), 0.6e12);
        let none = Calibration {
            random: vec![],
            ..c
        };
        assert_eq!(none.random_in(5.0), none.stream / 4.0);
    }

    #[test]
    fn files_keep_the_figures_of_each_device_and_nothing_that_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("calibration.json");
        let slow = Calibration {
            upload: 1e9,
            ..Calibration::h200()
        };
        assert_eq!(Calibration::load(&file, "a"), None);
        Calibration::h200().save(&file, "a").unwrap();
        slow.save(&file, "b").unwrap();
        assert_eq!(Calibration::load(&file, "a"), Some(Calibration::h200()));
        assert_eq!(Calibration::load(&file, "b"), Some(slow));
        assert_eq!(Calibration::load(&file, "c"), None);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        for (field, bad) in [
            ("stream_bytes_s", json!(0)),
            ("sync_s", json!("soon")),
            ("random_bytes_s", json!([[2, 1], [1, 1]])),
            ("upload_bytes_s", json!(-1)),
        ] {
            let mut v = Calibration::h200().to_json();
            v[field] = bad;
            assert_eq!(Calibration::from_json(&v), None, "{v}");
        }
    }

    /// Figures that were measured on an H200 on 26 November 2026: random reads in 16 GiB appeared to be faster than
    /// sequential ones.
    #[test]
    fn impossible_speeds_are_lowered() {
        let mut v = Calibration::h200().to_json();
        v["random_bytes_s"] = json!([[3e7, 2e12], [1e9, 9e11], [17e9, 4.9e12]]);
        let c = Calibration::from_json(&v).unwrap();
        assert_eq!(c.random_in(17e9), 9e11);
        v["random_bytes_s"] = json!([[3e7, 9e12]]);
        assert_eq!(Calibration::from_json(&v).unwrap().random_in(1.0), c.stream);
    }

    /// Figures of the first run on a GPU. The last one was wrong because the lookups went to a segment of 2^32
    /// neighbours, a length that is 0 in 32 bits.
    #[test]
    fn impossible_speeds_are_refused_and_mended() {
        let mut c = Calibration {
            stream: 4.09e12,
            random: vec![(3.1e7, 2.04e12), (1.07e9, 0.86e12), (17.2e9, 6.63e12)],
            ..Calibration::h200()
        };
        let refused = c.mend();
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert!(refused[0].contains("17200 MB at 6630 GB/s"), "{refused:?}");
        assert_eq!(c.random_in(17.2e9), 0.86e12);
        assert_eq!(c.random_in(3.1e7), 2.04e12);
        assert!(c.mend().is_empty());
        // Noise is not reported; overestimates caused by it are still corrected downwards.
        c.random = vec![(1e7, 4.2e12), (1e9, 4.3e12)];
        assert!(c.mend().is_empty());
        assert!(c.random.iter().all(|p| p.1 == c.stream));
        c.upload = 2.0 * c.stream;
        let refused = c.mend();
        assert!(refused.len() == 1 && refused[0].starts_with("copies to the device"));
        assert_eq!(c.upload, c.stream);
        // The built-in calibrations need no correction.
        for v in [&mut Calibration::h200(), &mut Calibration::ideal()] {
            assert!(v.mend().is_empty());
        }
    }

    #[test]
    fn runs_are_kept_beside_speeds_and_damaged_files_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("calibration.json");
        let shape = Shape::recorded("keys expand;", "q");
        let mut runs = Learnt::default();
        runs.ran(&shape, Side::Cpu, 3.0, 1.0);
        save_runs(&file, "a", &runs).unwrap();
        Calibration::h200().save(&file, "a").unwrap();
        Calibration::h200().save(&file, "b").unwrap();
        save_runs(&file, "a", &runs).unwrap();
        let factor = |identity| {
            let runs = load_runs(&file, identity);
            runs.correction(&shape, Side::Cpu).factor
        };
        assert!((factor("a") - 3.0).abs() < 1e-9 && factor("b") == 1.0);
        assert_eq!(Calibration::load(&file, "a"), Some(Calibration::h200()));
        let good = std::fs::read(&file).unwrap();
        for damaged in [
            &good[..good.len() / 2],
            b"",
            b"[1]",
            b"{\"a\": 7}",
            b"{\"a\": {\"runs\": \"none\"}}",
            b"\xff\xfe",
        ] {
            std::fs::write(&file, damaged).unwrap();
            assert_eq!(Calibration::load(&file, "a"), None);
            assert_eq!(factor("a"), 1.0);
            save_runs(&file, "a", &runs).unwrap();
            assert!((factor("a") - 3.0).abs() < 1e-9);
        }
        // A folder in place of the file is an error, and no temporary file is left.
        let other = folder.path().join("folder");
        std::fs::create_dir(&other).unwrap();
        assert!(save_runs(&other, "a", &runs).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
