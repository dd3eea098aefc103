//! Changes of the permissions that are to outlast the session, written where they belong.

use windlass_engine::Update;
use windlass_protocol::{PermissionChange, PermissionUpdate};

use crate::complain;
use crate::guard::Keeper;
use crate::watched::Watch;

/// What becomes of the changes is said on standard error.
pub(crate) struct Keeping {
    pub(crate) keeper: Keeper,
}

impl Watch for Keeping {
    fn heed(&mut self, update: &Update) {
        let Update::Permissions(changes) = update else { return };
        for change in changes {
            match self.keeper.keep(change) {
                Ok(notice) => notice.into_iter().for_each(|notice| complain(&notice)),
                Err(error) => complain(&unkept(change, &error)),
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
