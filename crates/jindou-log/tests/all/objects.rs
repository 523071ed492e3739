//! Files of backups in object stores: in memory, and in a directory.

use jindou_log::{Files, Objects};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use std::io::ErrorKind;
use std::sync::Arc;

#[test]
fn objects_are_put_once_and_read_and_removed() {
    let directory = tempfile::tempdir().expect("a directory");
    let local = LocalFileSystem::new_with_prefix(directory.path())
        .expect("a directory")
        .with_fsync(true);
    let stores: [Arc<dyn ObjectStore>; 2] = [Arc::new(InMemory::new()), Arc::new(local)];
    for store in stores {
        let files = Objects::new(store, "some/store/log").expect("a thread");
        assert!(files.list().expect("list").is_empty());
        let content = |n: usize| vec![n as u8; n * 10];
        let names: Vec<String> = (0..40).map(|n| format!("file-{n:02}")).collect();
        for (n, name) in names.iter().enumerate() {
            files.put(name, &content(n)).expect("put");
        }
        let again = files.put(&names[3], b"other").expect_err("it is there");
        assert_eq!(again.kind(), ErrorKind::AlreadyExists);
        let mut there = files.list().expect("list");
        there.sort();
        assert_eq!(there, names);
        assert_eq!(files.read(&names[7], u64::MAX).expect("read"), content(7));
        assert_eq!(files.read(&names[7], 5).expect("read"), [7; 5]);
        files.remove(&names[5]).expect("remove");
        let gone = files.read(&names[5], 5).expect_err("it is gone");
        assert_eq!(gone.kind(), ErrorKind::NotFound);
        // More at a time than there are requests at the same time.
        for (n, read) in files.read_many(&names, 200).into_iter().enumerate() {
            match n {
                5 => assert_eq!(read.expect_err("it is gone").kind(), ErrorKind::NotFound),
                _ => assert_eq!(read.expect("read"), content(n)[..(n * 10).min(200)]),
            }
        }
        assert!(files.path("x").ends_with("some/store/log/x"));
        for refused in [files.create("x").err(), files.open("x").err()] {
            assert_eq!(refused.map(|e| e.kind()), Some(ErrorKind::Unsupported));
        }
        assert!(files.rename(&names[0], "x").is_err());
    }
}
