//! Changes of the permissions that are to outlast the session, written where they belong.

use std::sync::Arc;
use std::time::Duration;

use windlass_engine::Update;
use windlass_protocol::{PermissionChange, PermissionUpdate};

use crate::complain;
use crate::guard::Keeper;
use crate::view::View;

/// Any form; what becomes of the changes is said on standard error.
pub(crate) struct Keeping {
    pub(crate) inner: Box<dyn View>,
    pub(crate) keeper: Keeper,
}

impl View for Keeping {
    fn begin(&mut self, out: &mut Vec<u8>) {
        self.inner.begin(out);
    }

    fn update(&mut self, update: &Update, out: &mut Vec<u8>) {
        self.inner.update(update, out);
        let Update::Permissions(changes) = update else { return };
        for change in changes {
            match self.keeper.keep(change) {
                Ok(notice) => notice.into_iter().for_each(|notice| complain(&notice)),
                Err(error) => complain(&unkept(change, &error)),
            }
        }
    }

    fn written(&mut self, update: &Update) {
        self.inner.written(update);
    }

    fn next_tick(&self) -> Option<Duration> {
        self.inner.next_tick()
    }

    fn tick(&mut self, out: &mut Vec<u8>) {
        self.inner.tick(out);
    }

    fn refuse(&mut self, error: &str, prompt: Option<&Arc<str>>, out: &mut Vec<u8>) {
        self.inner.refuse(error, prompt, out);
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
