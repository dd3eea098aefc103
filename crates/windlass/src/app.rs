//! The application: settings are read once, then sessions are opened.

use crate::display;
use crate::error::Error;
use crate::explain::Explainer;
use crate::model_choice::models;
use crate::options::Options;
use crate::permission_saver::PermissionSaver;
use crate::session::Session;
use crate::session_store::SessionStore;
use crate::sessions::{FoundSession, ProcessOrigin, SessionChoice, fill_flags};
use crate::settings::{self, LoadedSettings, SettingsNotices};
use crate::wiring::wire_models;

/// Where and as what a run works: the directory, the settings that hold there, and what the caller asks for.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let project = tempfile::tempdir()?;
/// let app = windlass::Windlass::open(windlass::Options::new().cwd(project.path()).model("opus"))?;
/// assert_eq!(app.notices().all(), Vec::<String>::new());
/// # Ok(())
/// # }
/// ```
pub struct Windlass {
    options: Options,
    settings: LoadedSettings,
}

/// What is to be said before a run.
pub struct StartNotices {
    /// What of the project waits for trust. It belongs on standard error in every output format.
    pub untrusted: Option<String>,
    /// Everything else.
    pub others: Vec<String>,
}

impl Windlass {
    /// Reads what user and administrator say, asks for trust, then reads what the project says.
    pub fn open(options: Options) -> Result<Self, Error> {
        let mut place = settings::process_context()?;
        if let Some(cwd) = &options.cwd {
            place.cwd = std::path::absolute(place.cwd.join(cwd)).map_err(Error::CurrentDirectory)?;
        }
        let settings = settings::load(&options, place)?;
        Ok(Self { options, settings })
    }

    /// What the user should know about settings files.
    pub fn notices(&self) -> &SettingsNotices {
        &self.settings.notices
    }

    /// What is to be said before the first run of a session, which is taken from it. A host hears all of it each time; others what
    /// they have not heard yet.
    pub fn start_notices(&self, session: &mut Session) -> StartNotices {
        let (notices, options) = (self.notices(), &self.options);
        let mut others = std::mem::take(&mut session.wired.warnings);
        let standing = std::mem::take(&mut session.wired.standing);
        if options.audience.is_host {
            others.splice(0..0, notices.trust_notice().into_iter().chain(standing));
            others.extend(notices.all());
        } else {
            others.splice(0..0, notices.take_unreported(standing));
            others.extend(notices.news());
        }
        // Whoever was asked hears what follows from a no, each time.
        let was_asked = options.trust_question.is_some();
        let untrusted = if was_asked { notices.trust_notice() } else { notices.trust_news() };
        others.append(&mut session.notices);
        StartNotices { untrusted, others }
    }

    /// The sessions that there are.
    pub fn store(&self) -> Result<SessionStore, Error> {
        SessionStore::new(&self.settings.settings, &self.settings.place, self.settings.git.clone())
    }

    /// Says why a call would be decided so in a session of these options.
    pub fn explainer(&self) -> Result<Explainer, Error> {
        let config = self.settings.config(&self.options.flags)?;
        Ok(Explainer::with_config(config).tools(self.options.own.tools.clone()))
    }

    /// Opens a session and checks all that needs no network. Nothing is written before the first prompt.
    pub fn session(&self, choice: impl Into<SessionChoice>) -> Result<Session, Error> {
        let Self { options, settings } = self;
        let (cwd, git) = (&settings.place.cwd, settings.git.as_ref());
        let found = FoundSession::find(&choice.into(), &settings.home, cwd, git)?;
        let mut flags = options.flags.clone();
        fill_flags(&mut flags, found.saved_flags(), cwd);
        let mut config = settings.config(&flags)?;
        config.settings.run.permissions.asking = options.asking;
        let origin = ProcessOrigin::new(&config, &flags, &options.audience, settings.git.clone());
        let chosen = options.models.clone().map_or_else(|| models(&config), Ok)?;
        let mut wired =
            wire_models(config, chosen, &options.audience, &found.storage(), options.own.clone())?;
        wired.setup.untrusted_settings = display::project_parts(&settings.effective.skipped);
        let saver = PermissionSaver { places: settings.places.clone(), home: settings.home.clone() };
        found.open(wired, origin, saver, options.approver.clone())
    }
}
