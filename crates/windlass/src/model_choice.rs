//! The models that an engine asks, by the settings.

use std::sync::Arc;
use std::time::Duration;

use windlass_config::{ApiSettings, ModelSettings, RunConfig, Settings};
use windlass_models::{
    AnthropicClient, AnthropicSettings, ClientIdentity, FAMILIES, Script, ScriptModel, WatchdogLimits,
    model_card, resolve_family,
};
use windlass_ports::{BoxStream, ModelClient};
use windlass_protocol::{ModelCard, ModelEvent, ModelRequest};
use windlass_text::nearest::closest;

use crate::error::Error;

/// The models that an engine asks.
#[derive(Clone)]
pub struct ModelSet {
    pub(crate) client: Arc<dyn ModelClient>,
    /// The model that is asked first.
    pub main: ModelCard,
    pub(crate) fallbacks: Vec<ModelCard>,
    pub(crate) small: Option<ModelCard>,
}

/// The model client and what is known about its models.
pub fn models(config: &RunConfig) -> Result<ModelSet, Error> {
    let Settings { api, models, .. } = &config.settings;
    if let Some(path) = &models.script {
        let script = Script::load(config.cwd.join(path))?;
        let named = (!config.model.is_from_flag).then(|| script.model.clone());
        return model_set(config, Arc::new(ScriptModel::new(script)), named.as_deref());
    }
    if !can_reach(api) {
        return Err(Error::NoKey);
    }
    model_set(config, Arc::new(AnthropicClient::new(client_settings(api))?), None)
}

/// The models of a configuration without a client, for replay. The model is named in full, since a script may have named another.
pub fn silent_models(config: &RunConfig) -> Result<ModelSet, Error> {
    model_set(config, Arc::new(Silence), None)
}

/// What is known about the models of a configuration; `named` is the main one if a script names it.
fn model_set(
    config: &RunConfig,
    client: Arc<dyn ModelClient>,
    named: Option<&str>,
) -> Result<ModelSet, Error> {
    let models = &config.settings.models;
    let named = named.unwrap_or_else(|| resolve_family(&config.model.name, &models.families));
    // A script knows its models by whatever name.
    let is_scripted = models.script.is_some();
    let card = |name: &str| {
        let card = card(name, models);
        ModelCard { is_known: is_scripted || card.is_known, ..card }
    };
    let (main, fallbacks) = (card(named), fallbacks(config, named)?);
    let fallbacks = fallbacks.iter().map(|name| card(name)).collect();
    let small = Some(small(&main, models));
    Ok(ModelSet { client, main, fallbacks, small })
}

/// A model that says nothing.
struct Silence;

impl ModelClient for Silence {
    fn stream(&self, _: Arc<ModelRequest>) -> BoxStream<'static, ModelEvent> {
        Box::pin(futures_util::stream::empty())
    }
}

/// The ids of the models that take over. One that does so from itself, or twice, is a mistake.
fn fallbacks(config: &RunConfig, main: &str) -> Result<Vec<String>, Error> {
    let mut ids = Vec::new();
    for name in &config.fallbacks {
        let id = resolve_family(name, &config.settings.models.families).to_owned();
        if id == main || ids.contains(&id) {
            return Err(Error::Fallback { name: name.clone(), is_main: id == main });
        }
        ids.push(id);
    }
    Ok(ids)
}

/// The model for summaries in the background. Where we do not know the model, we do not know its siblings either.
fn small(main: &ModelCard, models: &ModelSettings) -> ModelCard {
    match &models.small {
        Some(name) => model_card(resolve_family(name, &models.families)),
        None if model_card(&main.id).is_known || models.families.contains_key("haiku") => {
            model_card(resolve_family("haiku", &models.families))
        }
        None => main.clone(),
    }
}

/// Whether an address or a key is set.
pub fn can_reach(api: &ApiSettings) -> bool {
    let names_credentials =
        |name: &str| name.eq_ignore_ascii_case("x-api-key") || name.eq_ignore_ascii_case("authorization");
    api.key.is_some()
        || api.token.is_some()
        || api.base_url.is_some()
        || api.headers.iter().any(|(name, _)| names_credentials(name))
}

fn card(name: &str, models: &ModelSettings) -> ModelCard {
    let card = model_card(name);
    match models.window_tokens {
        Some(window_tokens) => {
            // Strict servers count the most that an answer may take as taken: half of the window is left for the prompt.
            let half = u32::try_from(window_tokens / 2).unwrap_or(u32::MAX).max(1);
            let output_tokens_max = card.output_tokens_max.min(half);
            ModelCard { window_tokens, output_tokens_max, is_known: true, ..card }
        }
        None => card,
    }
}

fn client_settings(api: &ApiSettings) -> AnthropicSettings {
    let defaults = AnthropicSettings::default();
    let limit = |standard: Option<Duration>| match api.silence_ms {
        None => standard,
        Some(0) => None,
        Some(ms) => Some(Duration::from_millis(ms)),
    };
    AnthropicSettings {
        base_url: api.base_url.as_ref().map_or(defaults.base_url, |url| url.reveal().to_owned()),
        api_key: api.key.clone(),
        auth_token: api.token.clone(),
        custom_headers: api.headers.clone(),
        betas: api.betas.clone(),
        watchdog: WatchdogLimits {
            bytes: limit(defaults.watchdog.bytes),
            events: limit(defaults.watchdog.events),
        },
        extra_ca_file: api.extra_authorities.clone(),
        client_identity: api
            .client_certificate
            .clone()
            .zip(api.client_key.clone())
            .map(|(cert_file, key_file)| ClientIdentity { cert_file, key_file }),
        has_prompt_caching: !api.is_prompt_caching_off,
        ..defaults
    }
}

/// What is only assumed about the model, and how to correct it.
pub fn assumption(card: &ModelCard) -> Option<String> {
    (!card.is_known).then(|| {
        let families = FAMILIES.map(|(family, _)| family);
        let meant = closest(&card.id, &families).map(|family| format!(" Did you mean {family}?"));
        format!(
            "Unknown model {}.{} Windlass assumes a context window of {} tokens; \
             set CLAUDE_CODE_MAX_CONTEXT_TOKENS to correct it.",
            card.id,
            meant.unwrap_or_default(),
            crate::display::number(card.window_tokens)
        )
    })
}

#[cfg(test)]
mod tests {
    use windlass_config::VARIABLES;

    use super::*;

    #[test]
    fn every_family_is_named_where_users_look() {
        let find = |name: &str| VARIABLES.iter().find(|variable| variable.name == name).expect(name);
        for (family, _) in FAMILIES {
            assert!(find("ANTHROPIC_MODEL").accepts.contains(family), "{family}");
            let variable = find(&format!("ANTHROPIC_DEFAULT_{}_MODEL", family.to_uppercase()));
            assert!(variable.meaning.contains(&format!("`{family}`")), "{family}");
        }
    }
}
