//! Reading a log. It never fails but for a file that cannot be read at all: what is damaged is skipped and reported.

mod copy;
mod find;
mod foreign;
mod lines;
mod load;
mod log_items;
mod walk;

use std::path::PathBuf;

use uuid::Uuid;
use windlass_protocol::{MessageId, Record, SpendEntry};

use crate::format::{Header, Tail};

pub(crate) use find::read as read_range;

pub use copy::copy_log;
pub(crate) use lines::LineReader;
pub use load::{load, load_back};
pub use log_items::{LogItem, LogItems, log_items};

/// Up to where a log is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEnd {
    /// All of it.
    End,
    /// Up to this entry of the conversation and with it.
    Entry(Uuid),
    /// Lines that end within this many bytes.
    Offset(u64),
}

impl LogEnd {
    fn entry(self) -> Option<Uuid> {
        match self {
            Self::Entry(entry) => Some(entry),
            Self::End | Self::Offset(_) => None,
        }
    }
}

/// What a log holds.
#[derive(Debug, Default)]
pub struct LoadedLog {
    /// What the process said that opened the session last; none in a file of another program.
    pub header: Option<Header>,
    /// The records, from those on that restate everything.
    pub records: Vec<Record>,
    /// Where the log ends.
    pub tail: Tail,
    /// What could not be used.
    pub damage: Vec<Damage>,
    /// The end, if it is no line.
    pub torn: Option<TornEnd>,
    /// Whether the last line has no line feed.
    pub is_open_ended: bool,
    /// Whether another program wrote any of it.
    pub is_foreign: bool,
    /// How many bytes of the file were taken into account.
    pub length: u64,
    /// Whether more stands behind them. A writer that goes on from there leaves that out for good.
    pub is_cut: bool,
    /// The highest number of a message in what is left out, see [`load_back`].
    pub last_left_out: MessageId,
    /// What models took in what is left out. Going back does not bring it back.
    pub spent_left_out: Vec<SpendEntry>,
    /// How many bytes stand behind the line that restates everything; all, if there is none.
    pub since_snapshot: u64,
}

/// Something in a log that could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where it begins.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
}

/// A last line that was not written to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TornEnd {
    /// Where it begins.
    pub offset: u64,
    /// How many bytes it has.
    pub length: u64,
}

/// Why a log cannot be read or copied.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read the session log {}: {}", .0.display(), .1)]
    Read(PathBuf, #[source] std::io::Error),
    /// The copy cannot be written.
    #[error("cannot write the session log {}: {}", .0.display(), .1)]
    Write(PathBuf, #[source] std::io::Error),
    /// The entry up to which the log is to be read is not in it.
    #[error(
        "there is no message {} in the session log {}. `windlass sessions export --format json` shows \
         all message ids",
        .1,
        .0.display()
    )]
    NoSuchEntry(PathBuf, Uuid),
}
