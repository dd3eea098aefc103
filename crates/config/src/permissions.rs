//! Who may do what: rules and modes from flags and settings files, as the core takes them.

use windlass_permission::{Anchors, Answerer, PermissionMode, Permissions, RuleSource, Rules};
use windlass_protocol::Behaviour;

use crate::flags::{Flags, split_rules};
use crate::{
    ConfigError, FileSettings, ProcessContext, RunConfig, SettingOrigin, Settings, SettingsLevel,
    SourcedValue,
};

impl RunConfig {
    /// Joins flags and files. An invalid rule that forbids is an error; one that allows is left out and told.
    pub(crate) fn set_permissions(
        &mut self,
        flags: &Flags,
        files: &FileSettings,
        place: &ProcessContext,
    ) -> Result<(), ConfigError> {
        let (mode, named_by) = mode(flags, files)?;
        let settings = &self.settings;
        check_mode(mode, &named_by, settings, files, place)?;
        let bypass = PermissionMode::BypassPermissions;
        let is_bypass_refused = check_mode(bypass, "", settings, files, place).is_err();
        self.add_directories(files);
        let start = place.cwd.clone();
        let added = flags.add_directories.iter().map(|path| start.join(path));
        let added = added.chain(self.added_directories.iter().cloned());
        let anchors = Anchors {
            settings: start.clone(),
            roots: std::iter::once(start.clone()).chain(added).collect(),
            start,
            home: place.home.clone(),
        };
        self.settings.run.permissions = Permissions {
            mode,
            rules: self.rules(flags, files, &anchors)?,
            asking: Answerer::Nobody,
            anchors,
            can_bypass: mode == bypass,
            is_bypass_refused,
            can_classify: files.permissions.auto_disabled.is_none(),
            classifier: files.auto_mode.clone(),
            is_managed_only: files.permissions.managed_only.is_some(),
            sandbox: None,
        };
        Ok(())
    }

    /// Directories that are there; the others are told, since a file is not read again to see whether they came.
    fn add_directories(&mut self, files: &FileSettings) {
        for SourcedValue { value, origin } in &files.permissions.directories {
            if value.is_dir() {
                self.added_directories.push(value.clone());
            } else {
                self.warnings
                    .push(format!("{origin}: the directory {} does not exist; ignored.", value.display()));
            }
        }
    }

    fn rules(
        &mut self,
        flags: &Flags,
        files: &FileSettings,
        anchors: &Anchors,
    ) -> Result<Rules, ConfigError> {
        let mut rules = Rules::default();
        for (behaviour, list) in files.permissions.rules() {
            for rule in list {
                let anchors = Anchors { settings: rule.origin.anchor.to_path_buf(), ..anchors.clone() };
                match rules.add(behaviour, &rule.value, source(&rule.origin), &anchors) {
                    Err(error) if behaviour == Behaviour::Allow => self.lost_rules.push(error),
                    added => added?,
                }
            }
        }
        let managed_only = files.permissions.managed_only.is_some();
        let lists = [
            (Behaviour::Deny, "--disallowedTools", &flags.disallowed_tools),
            (Behaviour::Allow, "--allowedTools", &flags.allowed_tools),
        ];
        for (behaviour, flag, tokens) in lists {
            if behaviour == Behaviour::Allow && managed_only {
                if !tokens.is_empty() {
                    self.run_warnings.push(format!(
                        "{flag} has no effect: the administrator lets only managed rules allow something."
                    ));
                }
                continue;
            }
            for rule in split_rules(tokens) {
                rules.add(behaviour, rule, RuleSource::named(flag), anchors)?;
            }
        }
        for rule in rules.list(Behaviour::Allow) {
            if let Some(why) = rule.idleness() {
                let is_flag = rule.source.file.is_none();
                let told = if is_flag { &mut self.run_warnings } else { &mut self.warnings };
                told.push(format!("{}: the allow rule `{}` has no effect: {why}.", rule.source, rule.text));
            }
        }
        Ok(rules)
    }
}

fn source(origin: &SettingOrigin) -> RuleSource {
    let level = if origin.level == SettingsLevel::Flags { "--settings" } else { origin.level.name() };
    RuleSource {
        place: format!("{level} settings").into(),
        file: origin.file.as_deref().map(Into::into),
        line: (origin.line > 0).then_some(origin.line),
    }
}

/// The mode, and what chose it.
fn mode(flags: &Flags, files: &FileSettings) -> Result<(PermissionMode, String), ConfigError> {
    const SKIP: &str = "--dangerously-skip-permissions";
    let bypass = PermissionMode::BypassPermissions;
    let Some(given) = &flags.permission_mode else {
        return Ok(match &files.permissions.mode {
            _ if flags.should_skip_permissions => (bypass, SKIP.into()),
            Some(SourcedValue { value, origin }) => {
                let mode = PermissionMode::from_name(value).unwrap_or_default();
                (mode, format!("permissions.defaultMode in {origin}"))
            }
            None => (PermissionMode::Default, String::new()),
        });
    };
    let accepts = "use default, acceptEdits, plan, dontAsk, auto or bypassPermissions";
    let mode = PermissionMode::from_name(given)
        .ok_or_else(|| ConfigError::flag("--permission-mode", given, accepts))?;
    if flags.should_skip_permissions && mode != bypass {
        return Err(ConfigError::Unusable(format!(
            "{SKIP} contradicts --permission-mode {given}. Give only one of the two."
        )));
    }
    let by = if flags.should_skip_permissions { SKIP } else { "--permission-mode bypassPermissions" };
    Ok((mode, by.into()))
}

/// Modes that are refused where they would give too much.
fn check_mode(
    mode: PermissionMode,
    named_by: &str,
    settings: &Settings,
    files: &FileSettings,
    place: &ProcessContext,
) -> Result<(), ConfigError> {
    let disabled = match mode {
        PermissionMode::BypassPermissions => files.permissions.bypass_disabled.as_ref(),
        PermissionMode::Auto => files.permissions.auto_disabled.as_ref(),
        _ => None,
    };
    if let Some(origin) = disabled {
        let mode = mode.name();
        return Err(ConfigError::Unusable(format!(
            "the permission mode {mode} is switched off in {origin}. Use another --permission-mode."
        )));
    }
    if mode == PermissionMode::BypassPermissions && place.is_root && !settings.is_in_sandbox {
        return Err(ConfigError::Unusable(format!(
            "{named_by} is refused for the root user: every command would run unasked with full rights. \
             Use another user, another --permission-mode, or set IS_SANDBOX=1 inside a sandbox."
        )));
    }
    Ok(())
}
