//! How a model is reached: through a proxy of the environment, or not at all because a script stands in for it.

use windlass_testkit::{Project, Script, Server, ServerOptions};

use crate::support::WINDLASS;

/// A proxy that answers "Hello." itself. What it is asked names another host, which the real API would refuse.
fn proxy() -> Server {
    let script = Script::parse(r#"{"responses": [{"blocks": [{"text": "Hello."}]}]}"#).unwrap();
    Server::start_with(script, ServerOptions { should_check_requests: false, ..ServerOptions::default() })
        .unwrap()
}

#[test]
fn requests_go_through_the_proxy_of_the_environment() {
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        let (project, proxy) = (Project::new().unwrap(), proxy());
        let command = project.command(WINDLASS).args(["-p", "go"]).env(name, proxy.url());
        let command = command.env("ANTHROPIC_BASE_URL", "http://model.invalid").env("ANTHROPIC_API_KEY", "k");
        let finished = command.run().unwrap();
        assert_eq!(
            (finished.code(), finished.stdout.as_str()),
            (Some(0), "Hello.\n"),
            "{name}: {finished:?}"
        );
        let exchanges = proxy.exchanges();
        assert_eq!(exchanges.len(), 1, "{name}");
        assert_eq!(exchanges[0].target, "http://model.invalid/v1/messages", "{name}");
        assert_eq!(exchanges[0].header("host"), Some("model.invalid"), "{name}");
    }
}

#[test]
fn no_proxy_is_used_for_hosts_that_need_none() {
    let (project, proxy, server) = (Project::new().unwrap(), proxy(), proxy());
    let command = project.command(WINDLASS).args(["-p", "go"]).server(&server);
    let finished = command.env("HTTP_PROXY", proxy.url()).env("NO_PROXY", "127.0.0.1").run().unwrap();
    assert_eq!((finished.code(), finished.stdout.as_str()), (Some(0), "Hello.\n"), "{finished:?}");
    assert_eq!((proxy.exchanges().len(), server.exchanges().len()), (0, 1));
    assert_eq!(server.exchanges()[0].target, "/v1/messages");
}

#[test]
fn a_script_stands_in_for_a_model_without_any_key() {
    let project = Project::new().unwrap();
    project.write("a.txt", "forty-two\n").unwrap();
    let script = r#"{"responses": [
        {"blocks": [{"tool": "Read", "input": {"file_path": "a.txt"}}]},
        {"expect": {"contains": "forty-two"}, "blocks": [{"text": "It says so."}]}
    ]}"#;
    project.write("script.json", script).unwrap();
    let command = project.command(WINDLASS).args(["-p", "go"]).env("WINDLASS_SCRIPT", "script.json");
    let finished = command.run().unwrap();
    assert_eq!((finished.code(), finished.stdout.as_str()), (Some(0), "It says so.\n"), "{finished:?}");
    assert_eq!(finished.stderr, "");
}
