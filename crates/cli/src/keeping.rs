//! Changes of the permissions that are to outlast the session, written where they belong.

use windlass_engine::Update;
use windlass_protocol::{PermissionChange, PermissionUpdate};

use crate::guard::Keeper;
use crate::output::Aside;
use crate::screen::Screen;
use crate::watched::Watch;
use crate::{complain, display};

/// What becomes of the changes is said to the person at the terminal, or on standard error.
pub(crate) struct Keeping {
    pub(crate) keeper: Keeper,
    /// Where a person types and reads at the same time.
    pub(crate) person: Option<(Screen, Aside)>,
}

impl Keeping {
    fn say(&self, text: &str) {
        match &self.person {
            Some((screen, aside)) => {
                aside.leave(|out| screen.notice(&format!("windlass: {}", display::line(text)), out));
            }
            None => complain(text),
        }
    }
}

impl Watch for Keeping {
    fn heed(&mut self, update: &Update) {
        let Update::Permissions(changes) = update else { return };
        for change in changes {
            match self.keeper.keep(change) {
                Ok(notice) => notice.into_iter().for_each(|notice| self.say(&notice)),
                Err(error) => self.say(&unkept(change, &error)),
            }
        }
    }
}

/// What is said where a change of the permissions holds and could not be kept.
fn unkept(update: &PermissionUpdate, error: &str) -> String {
    let what = match &update.change {
        PermissionChange::AddRules { rules, .. } => rules.join(", "),
        _ => "the change of the permissions".into(),
    };
    format!("{what} was NOT kept and holds for this session only: {error}")
}
