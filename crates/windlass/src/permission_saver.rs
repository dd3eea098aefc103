//! Changes of the permissions that outlive the session.

use windlass_config::{
    ChangeError, Home, SettingSources, SettingsFiles, SettingsPlaces, TrustState, TrustStore,
};
use windlass_protocol::{PermissionChange, PermissionUpdate, SettingsDestination};

/// Writes changes of the permissions where they are to be kept.
pub(crate) struct PermissionSaver {
    /// Where settings lie.
    pub(crate) places: SettingsPlaces,
    /// Where agreements lie.
    pub(crate) home: Home,
}

impl PermissionSaver {
    /// Keeps a change; gives what is to be said about it.
    fn save(&self, update: &PermissionUpdate) -> Result<Option<String>, ChangeError> {
        // Without a repository local settings wait for trust, so what the user adds to them is agreed to with it.
        let waits = update.destination == SettingsDestination::Local && !self.places.has_repository();
        let was_agreed = waits && self.is_agreed();
        let Some(saved) = self.places.keep(update)? else {
            return Ok(None);
        };
        let agreement = if waits { self.renew(was_agreed) } else { None };
        let notices: Vec<String> = saved.notice.into_iter().chain(agreement).collect();
        let kept = format!("kept in {}. {}", saved.file.display(), notices.join(" "));
        Ok(Some(kept.trim_end().to_owned()))
    }

    /// Saves a change; gives what is to be said about it, also where it could not be saved.
    pub(crate) fn save_or_explain(&self, update: &PermissionUpdate) -> Option<String> {
        let what = || match &update.change {
            PermissionChange::AddRules(_, rules) => rules.join(", "),
            _ => "the change of the permissions".into(),
        };
        let not_saved =
            |error| Some(format!("{} was NOT kept and holds for this session only: {error}", what()));
        self.save(update).unwrap_or_else(not_saved)
    }

    /// Whether the project acts as it is now, or has nothing that would.
    fn is_agreed(&self) -> bool {
        let parts = self.files().parts();
        let state = || self.store()?.state(&self.places, &parts).ok();
        parts.list.is_empty() || state() == Some(TrustState::Trusted)
    }

    /// Agrees to what the project says now, if that was so before. Says what else has to be done.
    fn renew(&self, is_agreed: bool) -> Option<String> {
        let parts = self.files().parts();
        if parts.list.is_empty() {
            return None;
        }
        let granted = self.store().filter(|_| is_agreed).map(|store| store.agree(&self.places, &parts));
        let problem = match granted {
            Some(Ok(_)) => return None,
            Some(Err(error)) => format!(" ({error})"),
            None => String::new(),
        };
        Some(format!(
            "From the next session on it waits until you agree to this project: `windlass trust add`{problem}."
        ))
    }

    fn files(&self) -> SettingsFiles {
        let flags: [&str; 0] = [];
        SettingsFiles::read(self.places.clone(), SettingSources::default(), &flags)
    }

    fn store(&self) -> Option<TrustStore> {
        self.home.directory().map(TrustStore::new)
    }
}
