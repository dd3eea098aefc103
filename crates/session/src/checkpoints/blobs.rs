//! Contents of files, each stored once under its hash, and never changed afterwards.

use std::fs::File;
use std::io::{self, Read, Seek as _, Write as _};
use std::os::fd::AsFd;
use std::path::PathBuf;

use ring::digest::{Context, SHA256, digest};
use tempfile::NamedTempFile;

use super::manifest::Digest;
use crate::create_private;
use crate::disk::{if_there, retry_interrupted, sync_directory};

/// Up to this size a content is held in memory; larger ones go from file to file.
const SMALL_BYTES: u64 = 256 << 10;
const BUFFER_BYTES: usize = 64 << 10;

/// More files than this are not waited for one by one, but with everything else on their file systems.
pub(crate) const FLUSHED_ALONE_MAX: usize = 64;

/// Makes everything on a file system survive a loss of power.
pub(crate) fn flush_system(directory: impl AsFd) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(directory)?;
    #[cfg(not(target_os = "linux"))]
    {
        let _ = directory;
        rustix::fs::sync();
    }
    Ok(())
}

pub(crate) struct Blobs {
    directory: PathBuf,
    /// What has been stored and not been flushed.
    unflushed: Vec<PathBuf>,
    /// The name of the directory is on the disk.
    is_named: bool,
}

impl Blobs {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory, unflushed: Vec::new(), is_named: false }
    }

    pub(crate) fn path(&self, sum: &Digest) -> PathBuf {
        self.directory.join(&sum.0)
    }

    pub(crate) fn open(&self, sum: &Digest) -> io::Result<File> {
        File::open(self.path(sum))
    }

    /// Stores the content of a file that says it has this size. The inner error says why the file cannot be read.
    pub(crate) fn store(&mut self, file: &mut File, size: u64) -> io::Result<io::Result<(Digest, u64)>> {
        if size > SMALL_BYTES {
            return self.store_large(file).map(Ok);
        }
        let mut content = Vec::new();
        if let Err(error) = file.take(SMALL_BYTES + 1).read_to_end(&mut content) {
            return Ok(Err(error));
        }
        let length = content.len() as u64;
        if length > SMALL_BYTES {
            file.rewind()?;
            return self.store_large(file).map(Ok);
        }
        let sum = Digest::of(digest(&SHA256, &content));
        if !self.has(&sum, length) {
            let mut draft = self.draft()?;
            draft.as_file_mut().write_all(&content)?;
            self.keep(draft, &sum)?;
        }
        Ok(Ok((sum, length)))
    }

    fn store_large(&mut self, file: &mut File) -> io::Result<(Digest, u64)> {
        let mut draft = self.draft()?;
        let copy = draft.as_file_mut();
        // The kernel shares the blocks where the file system can, else it copies them by itself.
        let copied = io::copy(file, copy)?;
        copy.rewind()?;
        let (sum, length) = digest_of(copy)?;
        if length != copied {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if !self.has(&sum, length) {
            self.keep(draft, &sum)?;
        }
        Ok((sum, length))
    }

    /// A content whose size is wrong was cut off by a loss of power.
    fn has(&self, sum: &Digest, size: u64) -> bool {
        std::fs::symlink_metadata(self.path(sum)).is_ok_and(|meta| meta.is_file() && meta.len() == size)
    }

    fn draft(&self) -> io::Result<NamedTempFile> {
        if let Some(draft) = if_there(NamedTempFile::new_in(&self.directory))? {
            return Ok(draft);
        }
        create_private(&self.directory)?;
        NamedTempFile::new_in(&self.directory)
    }

    fn keep(&mut self, draft: NamedTempFile, sum: &Digest) -> io::Result<()> {
        let path = self.path(sum);
        draft.persist(&path)?;
        self.unflushed.push(path);
        Ok(())
    }

    /// Makes everything that was stored survive a loss of power.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.unflushed.is_empty() {
            return Ok(());
        }
        let directory = File::open(&self.directory)?;
        if self.unflushed.len() > FLUSHED_ALONE_MAX {
            flush_system(&directory)?;
        } else {
            self.unflushed.iter().try_for_each(|path| File::open(path)?.sync_data())?;
            sync_directory(&directory)?;
        }
        if let Some(parent) = self.directory.parent().filter(|_| !self.is_named) {
            sync_directory(&File::open(parent)?)?;
            self.is_named = true;
        }
        self.unflushed.clear();
        Ok(())
    }

    /// Copies a content into a file, and refuses one that is not what it was.
    pub(crate) fn restore(&self, sum: &Digest, to: &mut File) -> io::Result<()> {
        let mut from = self.open(sum)?;
        io::copy(&mut from, to)?;
        to.rewind()?;
        let (found, _) = digest_of(to)?;
        if found == *sum {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "the saved content is damaged"))
    }
}

/// The hash of what is left to read, and its length.
pub(crate) fn digest_of(reader: &mut impl Read) -> io::Result<(Digest, u64)> {
    let mut context = Context::new(&SHA256);
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut length = 0;
    loop {
        let read = retry_interrupted(|| reader.read(&mut buffer))?;
        if read == 0 {
            return Ok((Digest::of(context.finish()), length));
        }
        context.update(&buffer[..read]);
        length += read as u64;
    }
}
