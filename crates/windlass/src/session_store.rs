//! The sessions on this machine: listed, found, searched, exported, drawn as a page, moved to the trash and brought back.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use windlass_config::{Home, ProcessContext, Settings};
use windlass_secrets::Redactor;
use windlass_session::{
    Catalogue, GitProgram, ListScope, LogItem, SessionFilter, SessionLayout, SessionMark, export, log_items,
    outline, remove, restore, search,
};
use windlass_trace::{SessionProcess, Trace};

pub use windlass_session::{
    Damage, ExportFormat, SearchHit, SearchSpeaker, SessionInfo, SessionOutline, SessionPreview,
};
pub use windlass_trace::is_trace;

use crate::display;
use crate::error::{Error, SessionError};
use crate::settings;

/// The sessions on this machine, seen from a directory.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let home = tempfile::tempdir()?;
/// let options = windlass::Options::new().model("opus");
/// # let options = options.cwd(home.path()).variable("WINDLASS_HOME", home.path());
/// let store = windlass::Windlass::open(options)?.store()?;
/// for session in store.project_sessions() {
///     println!("{} {:?}", session.id, session.preview.summary);
/// }
/// # Ok(())
/// # }
/// ```
pub struct SessionStore {
    catalogue: Catalogue,
    layout: SessionLayout,
    redactor: Redactor,
    cwd: PathBuf,
}

impl SessionStore {
    /// The store of this process in its directory. Settings files are read only to learn whether git may be asked.
    pub fn open() -> Result<Self, Error> {
        let settings = Settings::from_environment(std::env::vars_os())?;
        let place = settings::process_context()?;
        Self::new(&settings, &place, settings::git_if_trusted(&place))
    }

    pub(crate) fn new(
        settings: &Settings,
        place: &ProcessContext,
        git: Option<GitProgram>,
    ) -> Result<Self, Error> {
        let layout = SessionLayout::new(Home::new(&settings.home, place).require()?);
        Ok(Self {
            catalogue: Catalogue::new(layout.clone()).with_git(git),
            layout,
            redactor: Redactor::new(settings.api.secrets()),
            cwd: place.cwd.clone(),
        })
    }

    /// The directory it is seen from.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The sessions of this project, the latest first.
    pub fn project_sessions(&self) -> Vec<SessionInfo> {
        self.catalogue.list(ListScope::Project(&self.cwd))
    }

    /// The sessions of all projects, the latest first.
    pub fn all_sessions(&self) -> Vec<SessionInfo> {
        self.catalogue.list(ListScope::Everywhere)
    }

    /// The latest session of this directory, of people and of programs.
    pub fn latest(&self) -> Option<SessionInfo> {
        self.catalogue.newest(&self.cwd, SessionFilter::Any)
    }

    /// The session that these words mean: its id or the beginning of it, its title, or words of its first prompt.
    pub fn find(&self, words: &str) -> Result<SessionInfo, SessionError> {
        Ok(self.catalogue.find(&self.cwd, words)?)
    }

    /// The session with this id, or with an id that begins so.
    pub fn find_id(&self, id: &str) -> Result<SessionInfo, SessionError> {
        Ok(self.catalogue.find_id(&self.cwd, id)?)
    }

    /// Hands over each place where these words were said, until `found` breaks. Gives the logs that cannot be read.
    pub fn search<'a>(
        &self,
        sessions: &'a [SessionInfo],
        words: &str,
        found: &mut dyn FnMut(SearchHit<'a>) -> ControlFlow<()>,
    ) -> Vec<PathBuf> {
        search(sessions, words, found)
    }

    /// How much was said in a session, and what last.
    pub fn outline(&self, session: &SessionInfo) -> Result<SessionOutline, SessionError> {
        outline(session).map_err(|error| SessionError::Log { path: session.path.clone(), error })
    }

    /// Moves a session to the trash.
    pub fn move_to_trash(&self, session: &SessionInfo) -> Result<PathBuf, SessionError> {
        Ok(remove(&self.layout, session)?)
    }

    /// Brings the session with this id back from the trash, and says where it is.
    pub fn restore(&self, id: &str) -> Result<PathBuf, SessionError> {
        Ok(restore(&self.layout, id)?)
    }

    /// Writes a whole session, without secrets and without characters that steer a terminal.
    pub fn export(&self, session: &SessionInfo, format: ExportFormat, to: &mut dyn Write) -> io::Result<()> {
        let redactor = &self.redactor;
        match format {
            ExportFormat::Json => {
                export(session, format, &|text| redactor.redact_json(text), &mut EscapedWriter(to))
            }
            ExportFormat::Text | ExportFormat::Markdown => {
                export(session, format, &|text| display::paragraph(&redactor.redact_json(text)).into(), to)
            }
        }
    }

    /// Draws a session as one page for a browser, without secrets. Gives it with the number of lines that could not be read.
    pub fn trace_page(&self, session: &SessionInfo) -> Result<(String, u64), SessionError> {
        let failed = |error| SessionError::Log { path: session.path.clone(), error };
        let (trace, damaged) = read_trace(&session.path).map_err(failed)?;
        let title = match &session.preview.title {
            Some(title) => format!("{title} \u{b7} {}", session.id),
            None => format!("Session {}", session.id),
        };
        Ok((trace.page(&title, &|text: &str| self.redactor.redact(text)), damaged))
    }
}

/// Everything that the log tells, and how many of its lines tell nothing any more.
fn read_trace(log: &Path) -> io::Result<(Trace, u64)> {
    let mut trace = Trace::default();
    let mut log_items = log_items(log)?;
    for item in &mut log_items {
        match item? {
            LogItem::Opened { header, .. } => trace.on_opened(SessionProcess {
                wall_ms: header.wall_ms,
                version: format!("windlass {}", header.engine),
                entrypoint: header.entrypoint.to_string(),
                cwd: header.cwd.to_string_lossy().into_owned(),
            }),
            LogItem::Marked(SessionMark::Rewound { .. }) => {
                trace.note("rewound", "continued from an earlier message");
            }
            LogItem::Marked(SessionMark::Forked { source, .. }) => {
                trace.note("forked", &format!("copy of session {source}"));
            }
            LogItem::Told(told) => trace.take(&told.record),
            LogItem::Marked(_) | LogItem::Damaged(_) => {}
        }
    }
    Ok((trace, log_items.damage().len() as u64))
}

/// JSON on its way to whatever prints it.
struct EscapedWriter<'a>(&'a mut dyn Write);

impl Write for EscapedWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Every piece is a text of its own: it comes out of the formatter.
        self.0.write_all(display::escape_json(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
