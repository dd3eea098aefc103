use super::*;
use std::time::Duration;

/// Notes what it is given, and what was in the file by then.
#[derive(Default)]
struct Notes {
    disk: SimulatedDisk,
    seen: Mutex<Vec<(u64, u64, bool)>>,
    fails: AtomicBool,
    takes: Duration,
}

impl PreImageTaker for Notes {
    fn touches_disk(&self, records: &[Record]) -> bool {
        records.iter().any(|record| matches!(record, Record::Intended(call) if !call.changes.is_empty()))
    }

    fn take_note(&self, records: &[Record], sync: bool) -> io::Result<()> {
        std::thread::sleep(self.takes);
        if self.fails.load(Ordering::Relaxed) {
            return Err(Errno::NOSPC.into());
        }
        let hash = batches(records).first().copied().unwrap_or_default();
        self.seen.lock().unwrap().push((hash, self.disk.writes(), sync));
        Ok(())
    }
}

fn with(keeper: &Arc<Notes>) -> LogWriter {
    let disk = Arc::new(keeper.disk.clone());
    let options = LogOptions { pre_images: Some(Arc::<Notes>::clone(keeper)), ..LogOptions::default() };
    LogWriter::create_on(disk, &paths(Path::new("/nowhere")), header(), options)
}

/// The two steps of the driver.
fn checkpoint_and_append(
    log: &mut LogWriter,
    records: &[Record],
    durability: Durability,
) -> Result<(), LogError> {
    now(log.take_checkpoints(records, durability))?;
    now(log.append(records, durability))
}

#[test]
fn everything_is_told_before_it_is_written() {
    let keeper = Arc::new(Notes::default());
    let mut log = with(&keeper);
    checkpoint_and_append(&mut log, &batch(1), Durability::Written).unwrap();
    checkpoint_and_append(&mut log, &[intended(2, &["a"])], Durability::Synced).unwrap();
    checkpoint_and_append(&mut log, &batch(3), Durability::Synced).unwrap();
    assert_eq!(*keeper.seen.lock().unwrap(), [(1, 0, false), (2, 1, true), (3, 2, true)]);
    assert_eq!(batches(&load(&keeper.disk.contents().unwrap().bytes).records), [1, 2, 3]);
}

#[test]
fn a_call_whose_files_cannot_be_kept_is_not_intended() {
    let keeper = Arc::new(Notes::default());
    let mut log = with(&keeper);
    checkpoint_and_append(&mut log, &batch(1), Durability::Written).unwrap();
    keeper.fails.store(true, Ordering::Relaxed);
    let error = checkpoint_and_append(&mut log, &[intended(2, &["a"])], Durability::Synced).unwrap_err();
    assert!(error.0.contains("cannot save the files") && error.0.contains("disk is full"), "{error}");
    assert!(log.wants_snapshot());
    assert_eq!(batches(&load(&keeper.disk.contents().unwrap().bytes).records), [1]);
}

#[tokio::test]
async fn keeping_is_done_elsewhere() {
    let keeper = Arc::new(Notes { takes: Duration::from_millis(50), ..Notes::default() });
    let mut log = with(&keeper);
    let records = [intended(1, &["a"])];
    let AppendProgress::Later(mut taken) = log.take_checkpoints(&records, Durability::Written) else {
        panic!("it must not block")
    };
    assert!((&mut taken).now_or_never().is_none());
    assert_eq!(keeper.seen.lock().unwrap().len(), 0);
    taken.await.unwrap();
    assert_eq!(keeper.seen.lock().unwrap().len(), 1);
    assert_eq!(keeper.disk.writes(), 0, "nothing is written before the files are kept");
    now(log.append(&records, Durability::Written)).unwrap();
    assert_eq!(batches(&load(&keeper.disk.contents().unwrap().bytes).records), [1]);
}

/// A run that is gone does not start its call, so neither the checkpoints nor the log may say that it did.
#[test]
fn checkpoints_that_nobody_waits_for_any_more_are_left_out() {
    let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
    let keeper = Arc::new(Notes::default());
    let mut log = with(&keeper);
    runtime.block_on(async {
        let (release, held) = std::sync::mpsc::sync_channel::<()>(0);
        let busy = tokio::task::spawn_blocking(move || held.recv());
        drop(log.take_checkpoints(&[intended(1, &["a"])], Durability::Synced));
        drop(release);
        assert!(busy.await.unwrap().is_err());
        tokio::task::spawn_blocking(|| ()).await.unwrap();
    });
    assert_eq!(keeper.seen.lock().unwrap().len(), 0);
    assert_eq!(keeper.disk.writes(), 0);
    assert!(log.wants_snapshot());
}
