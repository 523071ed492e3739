//! Bases in the bucket.

use crate::bucket::{EPOCH, list, put};
use crate::faulty::Faulty;
use crate::world::limits;
use jindou_replicas::{Base, BaseFiles, Bucket, Failure, Incoming, KnownKey, Name, RequestKey};
use object_store::memory::InMemory;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

struct Files(Vec<(String, Vec<u8>)>);

impl BaseFiles for Files {
    fn files(&self) -> Vec<(String, u64)> {
        let files = self.0.iter();
        files
            .map(|(name, bytes)| (name.clone(), bytes.len() as u64))
            .collect()
    }

    fn read(&self, file: &str, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let (_, content) = self.0.iter().find(|(name, _)| name == file).unwrap();
        bytes.copy_from_slice(&content[at as usize..][..bytes.len()]);
        Ok(())
    }
}

/// Names and contents of the received files, in order of arrival.
type Came = Vec<(String, Vec<u8>)>;

#[derive(Default)]
struct Taken(Arc<Mutex<Came>>);

impl Incoming<usize> for Taken {
    fn write(&mut self, file: &str, bytes: &[u8]) -> io::Result<()> {
        let mut files = self.0.lock().unwrap();
        match files.last_mut() {
            Some((name, content)) if name == file => content.extend_from_slice(bytes),
            _ => files.push((file.to_owned(), bytes.to_vec())),
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _: &Base) -> io::Result<usize> {
        Ok(self.0.lock().unwrap().len())
    }
}

pub async fn check_bases(bucket: &Bucket) {
    let (faulty, bucket) = Faulty::between(bucket, 9);
    assert_eq!(bucket.bases(EPOCH).await, Ok(vec![]));
    let large: Vec<u8> = (0..20_000_000_u32)
        .map(|i| (i.wrapping_mul(i) >> 7) as u8)
        .collect();
    let files = vec![
        ("large".to_owned(), large),
        ("none".to_owned(), Vec::new()),
        ("a folder/small".to_owned(), b"small".to_vec()),
    ];
    let base = |number| Base {
        number,
        hash: number * 11,
        keys: vec![KnownKey {
            key: RequestKey(5),
            fingerprint: number % 2 * 9,
            number: 2,
            report: b"done".as_slice().into(),
        }],
    };
    faulty.bad.store(100, Ordering::SeqCst);
    let source: Arc<dyn BaseFiles> = Arc::new(Files(files.clone()));
    bucket
        .upload(EPOCH, 1, &base(3), source.clone())
        .await
        .unwrap();
    faulty.bad.store(0, Ordering::SeqCst);
    let newest = *bucket.bases(EPOCH).await.unwrap().last().unwrap();
    let document = bucket.base(EPOCH, newest).await.unwrap();
    let taken = Taken::default();
    let came = taken.0.clone();
    let (there, count) = bucket.download(&document, Box::new(taken)).await.unwrap();
    assert_eq!((there, count), (base(3), 3));
    assert_eq!(*came.lock().unwrap(), files);
    // Another process uploads a base with the same number: the first upload stays in use.
    let small: Arc<dyn BaseFiles> = Arc::new(Files(files[1..].to_vec()));
    bucket
        .upload(EPOCH, 2, &base(3), small.clone())
        .await
        .unwrap();
    assert_eq!(bucket.base(EPOCH, newest).await, Ok(document.clone()));
    // `forget` removes all bases but the newest two, with the parts of older uploads.
    for number in [6, 9] {
        bucket
            .upload(EPOCH, 2, &base(number), small.clone())
            .await
            .unwrap();
    }
    bucket
        .forget(EPOCH, (0, 0), 0, Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(bucket.bases(EPOCH).await, Ok(vec![6, 9]));
    let gone = bucket.download(&document, Box::new(Taken::default())).await;
    let part = format!("parts/{EPOCH:016x}-{newest:016x}-");
    assert!(
        matches!(&gone, Err(Failure::Lost(why)) if why.starts_with(&part) && why.ends_with("is missing")),
        "{gone:?}"
    );
    let newest = *bucket.bases(EPOCH).await.unwrap().last().unwrap();
    let document = bucket.base(EPOCH, newest).await.unwrap();
    bucket
        .download(&document, Box::new(Taken::default()))
        .await
        .unwrap();
    // Damage is detected, both in a base document and in a part.
    let part = format!("parts/{EPOCH:016x}-{:016x}-{:016x}/000002-00000000", 9, 2);
    assert_eq!(bucket.get(&part).await.unwrap(), "small");
    bucket.replace(&part, "smell".into()).await.unwrap();
    let damaged = bucket.download(&document, Box::new(Taken::default())).await;
    assert!(matches!(damaged, Err(Failure::Lost(_))), "{damaged:?}");
    let name = Name::Base(9).text(EPOCH);
    let text = bucket.get(&name).await.unwrap();
    let text = String::from_utf8(text.to_vec()).unwrap();
    bucket
        .replace(&name, text.replace("none", "nine").into())
        .await
        .unwrap();
    let damaged = bucket.base(EPOCH, 9).await;
    assert!(matches!(damaged, Err(Failure::Lost(_))), "{damaged:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bases() {
    check_bases(&Bucket::new(Arc::new(InMemory::new()), "", limits())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_last_day_needs_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = Bucket::directory(folder.path(), limits()).unwrap();
    let small: Arc<dyn BaseFiles> = Arc::new(Files(vec![("small".to_owned(), b"small".to_vec())]));
    let now = SystemTime::now();
    // Uploads a base and sets the age of its document.
    let upload = async |number: u64, hours: u64| {
        let base = Base {
            number,
            ..Base::default()
        };
        bucket.upload(EPOCH, 1, &base, small.clone()).await.unwrap();
        let path = folder.path().join(Name::Base(number).text(EPOCH));
        let file = std::fs::File::options().append(true).open(&path).unwrap();
        let age = Duration::from_secs(hours * 3600);
        file.set_modified(now - age).unwrap();
        path
    };
    let groups = async || {
        let listing = list(&bucket, 0).await;
        let names = listing.log.iter().map(|name| Name::parse(EPOCH, name));
        let groups = names.filter_map(|name| match name {
            Some(Name::Group(number)) => Some(number),
            _ => None,
        });
        groups.collect::<Vec<u64>>()
    };
    for number in 1..=60 {
        put(&bucket, Name::Group(number)).await;
    }
    put(&bucket, Name::Span(1, 20)).await;
    put(&bucket, Name::Span(11, 21)).await;
    let day = Duration::from_secs(24 * 3600);
    // No base is older than a day: no group may be trimmed.
    upload(10, 20).await;
    assert_eq!(bucket.forget(EPOCH, (60, 0), 99, day).await, Ok(0));
    upload(12, 10).await;
    upload(14, 0).await;
    upload(16, 0).await;
    assert_eq!(bucket.forget(EPOCH, (60, 0), 99, day).await, Ok(0));
    assert_eq!(bucket.bases(EPOCH).await, Ok(vec![10, 14, 16]));
    assert_eq!(groups().await, (1..=60).collect::<Vec<u64>>());
    for (number, hours) in [(14, 50), (10, 60), (16, 40)] {
        upload(number, hours).await;
    }
    upload(20, 30).await;
    upload(30, 20).await;
    upload(40, 10).await;
    upload(50, 0).await;
    // Base 25 is an upload without a document; base 28 is older than base 50, but its document was written last.
    for number in [25, 28] {
        let path = upload(number, 0).await;
        if number == 25 {
            std::fs::remove_file(path).unwrap();
        }
    }
    // Trims at most up to the number that the server passes.
    assert_eq!(bucket.forget(EPOCH, (5, 0), 60, day).await, Ok(5));
    assert_eq!(bucket.bases(EPOCH).await, Ok(vec![20, 40, 50]));
    assert_eq!(groups().await, (6..=60).collect::<Vec<u64>>());
    assert_eq!(bucket.forget(EPOCH, (45, 20), 60, day).await, Ok(20));
    assert_eq!(groups().await, (6..=60).collect::<Vec<u64>>());
    assert_eq!(bucket.forget(EPOCH, (45, 5), 60, day).await, Ok(20));
    assert_eq!(bucket.bases(EPOCH).await, Ok(vec![20, 40, 50]));
    assert_eq!(groups().await, (21..=60).collect::<Vec<u64>>());
    let is_there = |name: Name| folder.path().join(name.text(EPOCH)).exists();
    assert!(!is_there(Name::Span(1, 20)));
    assert!(is_there(Name::Span(11, 21)));
    let uploads = std::fs::read_dir(folder.path().join("parts")).unwrap();
    assert_eq!(uploads.count(), 3);
    for number in [20, 40, 50] {
        let document = bucket.base(EPOCH, number).await.unwrap();
        let taken = Box::new(Taken::default());
        bucket.download(&document, taken).await.unwrap();
    }
}
