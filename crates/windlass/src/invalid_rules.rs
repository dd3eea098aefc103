//! Rules of settings that cannot be read, with the setting they stand in.

use std::collections::BTreeSet;
use std::path::Path;

use windlass_config::SourcedValue;
use windlass_engine::{Anchors, Behaviour, RuleSource, Rules};

use crate::error::Error;
use crate::options::Options;
use crate::settings::{self, LoadedSettings};

/// A rule that cannot be read.
pub struct InvalidRule {
    /// The setting, with its place in the list.
    pub key: String,
    /// The rule, and where it stands.
    pub rule: SourcedValue<String>,
    /// Why.
    pub problem: String,
}

impl LoadedSettings {
    /// The rules in force that cannot be read.
    pub fn invalid_rules(&self) -> Vec<InvalidRule> {
        let lists = self.effective.settings.permissions.rules();
        lists.into_iter().flat_map(|(behaviour, rules)| self.invalid_among(behaviour, rules)).collect()
    }

    /// The same for allow rules that wait until the project is trusted.
    pub fn invalid_waiting_rules(&self, options: &Options) -> Result<Vec<InvalidRule>, Error> {
        let (files, _) = settings::files(options, &self.place)?;
        let place_of =
            |rule: &SourcedValue<String>| (rule.value.clone(), rule.origin.file.clone(), rule.origin.line);
        let holding: BTreeSet<_> = self.effective.settings.permissions.allow.iter().map(place_of).collect();
        let trusted = files.effective(true).settings.permissions.allow;
        let invalid = self.invalid_among(Behaviour::Allow, &trusted);
        Ok(invalid.filter(|invalid| !holding.contains(&place_of(&invalid.rule))).collect())
    }

    fn invalid_among<'a>(
        &'a self,
        behaviour: Behaviour,
        rules: &'a [SourcedValue<String>],
    ) -> impl Iterator<Item = InvalidRule> + 'a {
        rules.iter().enumerate().filter_map(move |(position, rule)| {
            let problem = problem(behaviour, rule, self.place.home.as_deref())?;
            let key = format!("permissions.{}[{position}]", behaviour.name());
            Some(InvalidRule { key, rule: rule.clone(), problem })
        })
    }
}

/// Why a rule cannot be read, if so.
fn problem(behaviour: Behaviour, rule: &SourcedValue<String>, home: Option<&Path>) -> Option<String> {
    let settings = rule.origin.anchor.to_path_buf();
    let anchors = Anchors {
        start: settings.clone(),
        roots: vec![settings.clone()],
        settings,
        home: home.map(Path::to_owned),
    };
    let added = Rules::default().add(behaviour, &rule.value, RuleSource::named("settings"), &anchors);
    added.err().map(|error| error.problem)
}
