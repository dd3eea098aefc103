//! What a run writes: a buffer that is kept and reused, and lines that others leave beside it.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// From here on the buffer is written out although more is ready.
pub(crate) const BATCH_BYTES: usize = 64 * 1024;

/// Where bytes go.
pub trait OutputSink: Send + Sync {
    /// Writes as many of these bytes as there is room for, at least one, and says how many. Waits for room without blocking the
    /// thread; can be dropped at any point: nothing is written twice.
    fn write(&self, bytes: &[u8]) -> impl Future<Output = io::Result<usize>> + Send;
}

/// An output with a buffer.
pub struct Output<S> {
    /// What is to be written. Append to it, then flush.
    pub buffer: Vec<u8>,
    /// Whether everything is written at once: on a terminal, other things are written beside it and keep their order.
    pub is_unbuffered: bool,
    /// Where others leave lines.
    pub aside: SideOutput,
    written: usize,
    sink: S,
}

/// Lines for an output, from code that does not hold it. Cheap to clone.
#[derive(Clone, Default)]
pub struct SideOutput(Arc<(Mutex<Vec<u8>>, Notify)>);

impl SideOutput {
    /// Leaves whole lines to be written.
    pub fn leave(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let (lines, notify) = &*self.0;
        write(&mut lines.lock().unwrap_or_else(PoisonError::into_inner));
        notify.notify_one();
    }

    /// Waits until there is something to write.
    pub(crate) async fn wait_for_lines(&self) {
        self.0.1.notified().await;
    }
}

impl<S: OutputSink> Output<S> {
    /// An output to this sink.
    pub fn new(sink: S) -> Self {
        Self { buffer: Vec::new(), is_unbuffered: false, aside: SideOutput::default(), written: 0, sink }
    }

    /// Writes the lines that others have left; a closed output is no error here.
    pub async fn flush_aside(&mut self) {
        self.take_aside();
        let _ = self.flush().await;
    }

    /// Adds what others left to the buffer.
    pub(crate) fn take_aside(&mut self) {
        self.buffer.append(&mut self.aside.0.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Writes the buffer out. Can be dropped at any point and called again: nothing is written twice.
    pub async fn flush(&mut self) -> io::Result<()> {
        while self.written < self.buffer.len() {
            self.written += self.sink.write(&self.buffer[self.written..]).await?;
        }
        self.buffer.clear();
        self.written = 0;
        Ok(())
    }
}
