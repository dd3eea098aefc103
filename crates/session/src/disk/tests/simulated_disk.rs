//! A disk that fails on demand, and that tells what may be left of a file when the power is lost.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;

use crate::disk::{Disk, FileRefusal, FileStatus, LogFile, OpenMode};

/// One file on a disk, as this machine sees it and as it is on the disk.
#[derive(Clone, Default)]
pub(crate) struct SimulatedDisk(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    file: Option<Contents>,
    /// Which file is open under the name; one that was removed has an older number.
    generation: u64,
    operations: u64,
    faults: BTreeMap<u64, DiskFault>,
    has_failed: bool,
    syncs: u64,
    writes: u64,
    sync_takes: Duration,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DiskFault {
    /// Nothing is done.
    Fails(Errno),
    /// A write does only so many bytes, and the operation after it fails. Other operations are done.
    Short(usize, Errno),
}

/// What is in a file, and how much of it would be there after a loss of power.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    /// What readers see.
    pub bytes: Vec<u8>,
    /// How much of it a sync has covered.
    pub synced: usize,
    /// Pieces that a failed sync has given up: nobody knows whether they are on the disk.
    pub doubtful: Vec<Range<usize>>,
    /// Whether the name is on the disk.
    pub named: bool,
}

impl SimulatedDisk {
    /// Has an operation fail, counted from 0.
    pub(crate) fn fail(&self, operation: u64, fault: DiskFault) {
        self.state().faults.insert(operation, fault);
    }

    /// Whether anything failed so far that trying again does not cure.
    pub(crate) fn has_failed(&self) -> bool {
        self.state().has_failed
    }

    /// Whether no fault is to come any more.
    pub(crate) fn is_well(&self) -> bool {
        let state = self.state();
        state.faults.range(state.operations..).next().is_none()
    }

    pub(crate) fn operations(&self) -> u64 {
        self.state().operations
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.state().syncs
    }

    pub(crate) fn writes(&self) -> u64 {
        self.state().writes
    }

    pub(crate) fn slow_down(&self, sync_takes: Duration) {
        self.state().sync_takes = sync_takes;
    }

    /// What is in the file now; nothing if there is none.
    pub(crate) fn contents(&self) -> Option<Contents> {
        self.state().file.clone()
    }

    /// Somebody else writes.
    pub(crate) fn write_by_others(&self, bytes: &[u8]) {
        self.state().file.as_mut().unwrap().bytes.extend_from_slice(bytes);
    }

    /// Somebody else removes the file.
    pub(crate) fn remove(&self) {
        self.state().file = None;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts an operation, and has it fail where that was asked for.
    fn operation(&mut self) -> io::Result<Option<DiskFault>> {
        let fault = self.faults.get(&self.operations).copied();
        self.operations += 1;
        match fault {
            Some(DiskFault::Fails(error)) => {
                self.has_failed |= error != Errno::INTR;
                Err(error.into())
            }
            fault => Ok(fault),
        }
    }
}

impl Disk for SimulatedDisk {
    fn open(&self, _path: &Path, how: OpenMode) -> io::Result<Arc<dyn LogFile>> {
        let mut state = self.state();
        state.operation()?;
        match (&state.file, how) {
            (None, OpenMode::Existing) => return Err(Errno::NOENT.into()),
            (Some(file), OpenMode::New) if !file.bytes.is_empty() => return Err(FileRefusal::Taken.into()),
            (None, _) => {
                state.generation += 1;
                state.file = Some(Contents::default());
            }
            _ => {}
        }
        Ok(Arc::new(SimulatedFile { disk: self.clone(), generation: state.generation }))
    }
}

struct SimulatedFile {
    disk: SimulatedDisk,
    generation: u64,
}

impl SimulatedFile {
    /// Does something with the contents, unless it fails or the file is not there any more.
    fn with<T>(&self, act: impl FnOnce(Option<&mut Contents>, Option<DiskFault>) -> T) -> io::Result<T> {
        let mut state = self.disk.state();
        let fault = state.operation()?;
        let current = state.generation == self.generation;
        Ok(act(state.file.as_mut().filter(|_| current), fault))
    }
}

impl LogFile for SimulatedFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.state().writes += 1;
        let (written, fault) = self.with(|contents, fault| {
            let written = match fault {
                Some(DiskFault::Short(at, _)) => at.clamp(1, bytes.len() - 1),
                _ => bytes.len(),
            };
            if let Some(contents) = contents {
                contents.bytes.extend_from_slice(&bytes[..written]);
            }
            (written, fault)
        })?;
        match fault {
            Some(DiskFault::Short(_, error)) => {
                let mut state = self.disk.state();
                let next = state.operations;
                state.faults.insert(next, DiskFault::Fails(error));
                Ok(written)
            }
            _ => Ok(written),
        }
    }

    fn sync(&self) -> io::Result<()> {
        let takes = self.disk.state().sync_takes;
        std::thread::sleep(takes);
        self.disk.state().syncs += 1;
        let synced = self.with(|contents, _| {
            if let Some(contents) = contents {
                contents.synced = contents.bytes.len();
            }
        });
        let gave_up = synced.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted);
        if gave_up && let Some(contents) = self.disk.state().file.as_mut() {
            contents.doubtful.push(contents.synced..contents.bytes.len());
            contents.synced = contents.bytes.len();
        }
        synced
    }

    fn sync_name(&self) -> io::Result<()> {
        self.with(|contents, _| {
            if let Some(contents) = contents {
                contents.named = true;
            }
        })
    }

    fn look(&self) -> io::Result<FileStatus> {
        self.with(|contents, _| FileStatus {
            len: contents.as_ref().map_or(0, |contents| contents.bytes.len() as u64),
            is_named: contents.is_some(),
        })
    }

    fn read(&self, piece: Range<u64>) -> io::Result<Vec<u8>> {
        let piece = usize::try_from(piece.start).unwrap()..usize::try_from(piece.end).unwrap();
        self.with(|contents, _| contents.map(|contents| contents.bytes[piece].to_vec()).unwrap_or_default())
    }
}

impl Contents {
    /// Which bytes may be missing after a loss of power.
    fn unsafe_ranges(&self) -> Vec<Range<usize>> {
        let mut ranges = self.doubtful.clone();
        ranges.push(self.synced..self.bytes.len());
        ranges.retain(|range| !range.is_empty());
        ranges
    }

    /// The pieces of `unit` bytes, as the disk writes them, that hold bytes which may be missing.
    pub(crate) fn unsafe_units(&self, unit: usize) -> Vec<Range<usize>> {
        let pieces = |range: Range<usize>| {
            let units = range.start / unit..range.end.div_ceil(unit);
            units.map(move |n| range.start.max(n * unit)..range.end.min((n + 1) * unit))
        };
        self.unsafe_ranges().into_iter().flat_map(pieces).collect()
    }

    /// What is left if these pieces never reached the disk: holes, and with `cut` a file that ends where the last piece that did ends.
    pub(crate) fn without(&self, lost: &[Range<usize>], cut: bool) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for range in lost {
            bytes[range.clone()].fill(0);
        }
        if cut {
            let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            bytes.truncate(end.max(self.synced));
        }
        bytes
    }
}
