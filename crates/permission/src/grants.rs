//! What a session has changed of who may do what, on top of its configuration.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use windlass_protocol::{Behaviour, PermissionChange, PermissionUpdate, SettingsDestination};

use crate::rules::{Rule, RuleSource};
use crate::settings::{PermissionMode, Permissions};

/// The permissions of a session. Nothing here means: as configured.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    permissions: Option<Arc<Permissions>>,
    roots: Option<Arc<[PathBuf]>>,
}

impl Grants {
    /// The permissions that hold, where these are configured.
    pub fn permissions<'a>(&'a self, configured: &'a Permissions) -> &'a Permissions {
        self.permissions.as_deref().unwrap_or(configured)
    }

    /// The permissions, if they are other than configured.
    pub fn changed_permissions(&self) -> Option<Arc<Permissions>> {
        self.permissions.clone()
    }

    /// The working directories that hold, where these are configured.
    pub fn roots<'a>(&'a self, configured: &'a Arc<[PathBuf]>) -> &'a Arc<[PathBuf]> {
        self.roots.as_ref().unwrap_or(configured)
    }

    /// Makes a change hold on top of what is configured, or says why it cannot; nothing has changed then.
    pub fn apply(
        &mut self,
        update: &PermissionUpdate,
        configured: &Permissions,
        roots: &Arc<[PathBuf]>,
    ) -> Result<(), String> {
        let mut permissions = self.permissions(configured).clone();
        let source = source(update.destination);
        match &update.change {
            PermissionChange::AddDirectories(added) => {
                let roots = self.roots(roots);
                let new = added.iter().filter(|path| !roots.contains(path));
                self.roots = Some(roots.iter().chain(new).cloned().collect());
                return Ok(());
            }
            PermissionChange::RemoveDirectories(gone) => {
                let roots = self.roots(roots).iter().enumerate();
                // The project's own directory stays.
                let left = roots.filter(|(place, root)| *place == 0 || !gone.contains(root));
                self.roots = Some(left.map(|(_, root)| root.clone()).collect());
                return Ok(());
            }
            PermissionChange::SetMode(name) => permissions.mode = mode(name, &permissions)?,
            PermissionChange::AddRules(behaviour, rules) => permissions.add(*behaviour, rules, &source)?,
            PermissionChange::ReplaceRules(behaviour, rules) => {
                permissions.rules.retain(*behaviour, |rule| rule.source.place != source.place);
                permissions.add(*behaviour, rules, &source)?;
            }
            PermissionChange::RemoveRules(behaviour, rules) => {
                let gone: BTreeSet<&str> = rules.iter().map(|rule| rule.trim()).collect();
                let named = |text: &str| gone.contains(text);
                // A permission can be given up wherever it came from; what restricts is taken back only where it stands.
                let meant = |at: &RuleSource| *behaviour == Behaviour::Allow || at.place == source.place;
                // What the administrator wrote is not taken back by anybody.
                let is_lasting = |at: &RuleSource| &*at.place == "managed settings";
                let goes =
                    |rule: &Rule| named(&rule.text) && meant(&rule.source) && !is_lasting(&rule.source);
                permissions.rules.retain(*behaviour, |rule| !goes(rule));
            }
        }
        self.permissions = Some(Arc::new(permissions));
        Ok(())
    }
}

impl Permissions {
    fn add(&mut self, behaviour: Behaviour, rules: &[String], source: &RuleSource) -> Result<(), String> {
        if behaviour == Behaviour::Allow && self.is_managed_only {
            return Err("only rules in managed settings can allow something".into());
        }
        for rule in rules {
            self.rules
                .add(behaviour, rule, source.clone(), &self.anchors)
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

fn source(destination: SettingsDestination) -> RuleSource {
    RuleSource::named(match destination {
        SettingsDestination::Session => "this session",
        SettingsDestination::Local => "local settings",
        SettingsDestination::Project => "project settings",
        SettingsDestination::User => "user settings",
    })
}

fn mode(name: &str, permissions: &Permissions) -> Result<PermissionMode, String> {
    match PermissionMode::from_name(name) {
        None => Err(format!("unknown permission mode {name}")),
        Some(PermissionMode::BypassPermissions) if !permissions.can_bypass => {
            Err("the mode bypassPermissions can only be chosen when the session starts".into())
        }
        Some(PermissionMode::Auto) if !permissions.can_classify => {
            Err("the mode auto is not available in this session".into())
        }
        Some(mode) => Ok(mode),
    }
}
