//! The log of a session on disk: append, read, list, repair, copy.
//!
//! One JSONL file per session holds everything that was said, decided and done. It is only ever appended to, and it can always
//! be read: what is damaged is skipped and reported, never fatal. This crate never interprets what it stores.

mod catalogue;
mod checkpoints;
mod disk;
mod export;
mod format;
mod glance;
mod history;
mod index;
mod layout;
mod lease;
mod outline;
mod read;
mod repository;
mod search;
mod sync;
mod time;
mod title;
mod trash;
mod turns;
mod writer;

pub use catalogue::{Catalogue, FindError, Scope, SessionInfo, Wanted};
pub use checkpoints::{
    Action, Change, Checkpoints, Command, Failed, Point, PointInfo, RewindError, RewindPlan, Rewound,
    Skipped, copy_checkpoints,
};
pub use export::{ExportFormat, Redact, export};
pub use format::{At, Encoder, Entry, EntryKind, Flaw, Header, Line, Mark, OwnLine, Tail, Told, decode_line};
pub use history::Who;
pub use layout::{Layout, SessionPaths, create_private};
pub use lease::{Busy, Lease, LeaseError};
pub use outline::{Outline, outline};
pub use read::{
    Copied, Damage, Lines, LoadError, Loaded, Located, Records, Scene, Story, Torn, Upto, copy_log, lines,
    load, load_back, records, story,
};
pub use repository::{GitProgram, Identity, Repository};
pub use search::{Hit, search};
pub use sync::{SyncPolicy, UnknownSyncPolicy};
pub use title::rename;
pub use trash::{TrashError, Trashed, remove, restore, trashed};
pub use turns::{PromptLine, check_dropped, prompts};
pub use writer::{Keeper, LogOptions, LogWriter, Marker};
