//! The page in a real browser, without a window. The page is shown unchanged inside a frame of a test page, which looks at it
//! and acts on it as a person would.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::page_of;
use crate::tape::{eventful, long};

const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// The colours the user prefers, as the browser's switch counts them.
#[derive(Clone, Copy, Debug)]
enum Scheme {
    Dark = 0,
    Light = 1,
}

/// A browser, if there is one. Continuous integration insists on it.
fn browser() -> Option<&'static str> {
    let works = |name: &&&str| {
        let version =
            Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    };
    let found = BROWSERS.iter().find(works).copied();
    if found.is_none() {
        assert!(
            std::env::var_os("CI").is_none(),
            "there is no browser, and these tests need one: install chromium"
        );
        eprintln!("SKIPPED: there is no browser; install chromium to run the tests of the page");
    }
    found
}

/// Runs the browser on a file with further arguments and gives what it printed: the document, and what it complained of.
fn run(browser: &str, folder: &Path, scheme: Scheme, arguments: &[&str]) -> (String, String) {
    let profile = folder.join("profile");
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"])
        .args([
            "--no-first-run",
            "--disable-extensions",
            "--disable-background-networking",
            "--disable-component-update",
        ])
        .args(["--disable-sync", "--enable-logging=stderr", "--v=0", "--virtual-time-budget=4000"])
        // Whatever is looked for outside is not found, and that is complained of.
        .arg("--host-resolver-rules=MAP * ~NOTFOUND")
        .arg(format!("--blink-settings=preferredColorScheme={}", scheme as u8))
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}", text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

/// What pages said on the console: errors of scripts, refused loads, broken policies.
fn console(complaints: &str) -> Vec<&str> {
    complaints.lines().filter(|line| line.contains(":CONSOLE")).collect()
}

/// Shows the page in a frame of this width, runs `probe` (the body of a function of the frame's window `w` and document `d`)
/// and gives what it returns.
fn ask(page: &str, width_px: u32, scheme: Scheme, probe: &str) -> Option<Value> {
    let browser = browser()?;
    let folder = tempfile::tempdir().unwrap();
    let inside = page.replace('&', "&amp;").replace('"', "&quot;");
    let test = format!(
        "<!DOCTYPE html><meta charset=utf-8><meta name=color-scheme content=\"light dark\"><body style=\"margin:0\">\
         <iframe id=f width={width_px} height=900 style=\"border:0\" srcdoc=\"{inside}\"></iframe><script type=module>\
         const f = document.getElementById('f');\
         if (f.contentDocument.readyState !== 'complete' || !f.contentDocument.body.firstChild) await new Promise((go) => f.onload = go);\
         const w = f.contentWindow, d = f.contentDocument;\
         const said = await (async () => {{ {probe} }})();\
         const out = document.createElement('pre'); out.id = 'said';\
         out.textContent = encodeURIComponent(JSON.stringify(said)); f.remove(); document.body.append(out);</script>"
    );
    let file = folder.path().join("test.html");
    std::fs::write(&file, test).unwrap();
    let url = format!("file://{}", file.display());
    let (document, complaints) =
        run(browser, folder.path(), scheme, &["--window-size=1300,1000", "--dump-dom", &url]);
    assert_eq!(console(&complaints), Vec::<&str>::new(), "the page complains");
    let said = document.split("<pre id=\"said\">").nth(1).and_then(|rest| rest.split("</pre>").next());
    assert!(said.is_some(), "no answer from the page: {complaints}");
    Some(serde_json::from_str(&decoded(said?)).unwrap())
}

fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_page_shows_itself_in_light_and_dark_and_loads_nothing() {
    let page = page_of(&eventful());
    let probe = "
        const seen = (s) => { const e = d.querySelector(s), r = e.getBoundingClientRect(); return r.width > 0 && r.height > 0; };
        const parts = ['h1', '.facts', '.split i', '.runs a', '.track .q', '.track .k-read', '.track .late i', '.track .odd', '.track .m',
            '.plot.context svg path', '.plot.cost path.line', '#rows tr.q', '#rows tr.long', '.said li', '.controls button'];
        return { unseen: parts.filter((s) => !seen(s)), ground: w.getComputedStyle(d.body).backgroundColor,
            loaded: w.performance.getEntriesByType('resource').map((e) => e.name) };";
    for (scheme, ground) in [(Scheme::Light, "rgb(252, 251, 248)"), (Scheme::Dark, "rgb(19, 24, 27)")] {
        let Some(said) = ask(&page, 1280, scheme, probe) else { return };
        assert_eq!(said, serde_json::json!({ "unseen": [], "ground": ground, "loaded": [] }), "{scheme:?}");
    }
}

#[test]
fn bars_stand_where_their_times_are() {
    let page = page_of(&eventful());
    let probe = "
        const track = d.querySelector('#run1 .track'), all = track.getBoundingClientRect();
        const place = (s) => { const r = d.querySelector(s).getBoundingClientRect(); return [r.left - all.left, r.right - all.left].map((x) => Math.round(x / all.width * 16197)); };
        const top = (s) => d.querySelector(s).getBoundingClientRect().top;
        return { request: place('.track [href=\"#q1\"]'), call: place('.track [href=\"#c3\"]'), waits: place('.track [href=\"#c3\"] i'),
            lanes: new Set(['c1', 'c2', 'c3'].map((c) => top(`.track [href=\"#${c}\"]`))).size };";
    let Some(said) = ask(&page, 1280, Scheme::Light, probe) else { return };
    let near = |name: &str, from: i64, to: i64| {
        let (seen_from, seen_to) = (said[name][0].as_i64().unwrap(), said[name][1].as_i64().unwrap());
        // A pixel is about 15 ms.
        assert!((seen_from - from).abs() < 30 && (seen_to - to).abs() < 30, "{name}: {said}");
    };
    near("request", 6_186, 8_750);
    near("call", 1_806, 6_186);
    near("waits", 1_806, 2_286);
    assert_eq!(said["lanes"], 3);
}

#[test]
fn details_come_by_pointer_and_by_key_and_go_with_escape() {
    let page = page_of(&eventful());
    let probe = "
        const details = d.getElementById('details'), text = () => details.hidden ? '' : details.textContent;
        const key = (k) => d.activeElement.dispatchEvent(new w.KeyboardEvent('keydown', { key: k, bubbles: true, cancelable: true }));
        const said = { before: text() };
        d.querySelector('.track [href=\"#c3\"]').dispatchEvent(new w.PointerEvent('pointerover', { bubbles: true }));
        said.pointer = text();
        key('Escape');
        said.escaped = text();
        const stops = d.querySelectorAll('#run1 .track a[tabindex=\"0\"]');
        said.stops = stops.length;
        stops[0].focus();
        said.first = d.activeElement.hash;
        key('ArrowRight'); said.right = d.activeElement.hash;
        key('ArrowDown'); said.down = d.activeElement.hash;
        key('End'); said.end = d.activeElement.hash;
        key('Home'); said.home = d.activeElement.hash;
        said.focused = text();
        const area = d.querySelector('.area').getBoundingClientRect();
        d.querySelector('.series').dispatchEvent(new w.PointerEvent('pointermove', { bubbles: true, clientX: area.left + area.width * 5.5 / 11 }));
        said.column = text();
        return said;";
    let Some(said) = ask(&page, 1280, Scheme::Light, probe) else { return };
    let text = |name: &str| said[name].as_str().unwrap();
    assert_eq!((text("before"), text("escaped")), ("", ""));
    assert!(
        text("pointer").contains("cargo test -p checkout") && text("pointer").contains("3.90 s"),
        "{said}"
    );
    assert_eq!(said["stops"], 1);
    assert_eq!(["first", "right", "down", "home"].map(text), ["#q0", "#c0", "#c2", "#q0"]);
    assert_eq!(text("end"), "#m1");
    assert!(text("focused").contains("request, turn 1"), "{said}");
    assert!(text("column").contains("turn 5, attempt 2") && text("column").contains("118,000"), "{said}");
}

#[test]
fn zoom_and_filters_work() {
    let page = page_of(&eventful());
    let probe = "
        const track = d.querySelector('#run1 .track'), shown = () => [...d.querySelectorAll('#rows tbody tr:not(.of)')].filter((r) => r.offsetParent).length;
        const said = { all: shown(), fit: track.clientWidth, ticks: track.querySelectorAll('.t').length };
        d.querySelector('[data-zoom=in]').click(); d.querySelector('[data-zoom=in]').click();
        said.wide = Math.round(track.clientWidth / said.fit); said.moreTicks = track.querySelectorAll('.t').length;
        d.querySelector('[data-zoom=fit]').click(); said.back = track.clientWidth <= track.parentElement.clientWidth;
        for (const kind of ['q', 'c', 'bad', 'long']) { d.getElementById(`f-${kind}`).click(); said[kind] = shown(); }
        d.getElementById('f-all').click();
        const find = d.getElementById('find'); find.value = 'GIFT.rs'; find.dispatchEvent(new w.Event('input'));
        said.found = shown();
        w.location.hash = 'q3'; await new Promise((go) => setTimeout(go, 50));
        said.again = shown();
        return said;";
    let Some(said) = ask(&page, 1280, Scheme::Dark, probe) else { return };
    let number = |name: &str| said[name].as_u64().unwrap();
    assert!(number("wide") == 4 && number("moreTicks") > number("ticks") * 2, "{said}");
    assert_eq!(said["back"], true);
    assert_eq!(
        ["all", "q", "c", "bad", "long", "found", "again"].map(number),
        [33, 11, 12, 5, 3, 1, 33],
        "{said}"
    );
}

#[test]
fn a_phone_scrolls_only_what_is_wide() {
    let probe = "return { page: d.documentElement.scrollWidth, window: w.innerWidth };";
    for page in [page_of(&eventful()), page_of(&long(40))] {
        let Some(said) = ask(&page, 360, Scheme::Light, probe) else { return };
        assert_eq!(said, serde_json::json!({ "page": 360, "window": 360 }));
    }
}

#[test]
fn pictures_of_the_page_are_no_blank_sheets() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    std::fs::write(&file, page_of(&eventful())).unwrap();
    let pictures = [Scheme::Light, Scheme::Dark].map(|scheme| {
        let picture = folder.path().join(format!("{scheme:?}.png"));
        let shot = format!("--screenshot={}", picture.display());
        let url = format!("file://{}", file.display());
        let (_, complaints) = run(browser, folder.path(), scheme, &["--window-size=1280,1600", &shot, &url]);
        assert_eq!(console(&complaints), Vec::<&str>::new());
        std::fs::read(picture).unwrap()
    });
    assert!(
        pictures.iter().all(|picture| picture.len() > 50_000),
        "{:?}",
        pictures.map(|picture| picture.len())
    );
}

#[test]
fn a_long_session_opens() {
    let probe = "return { bars: d.querySelectorAll('.track a').length, rows: d.querySelectorAll('#rows tr.q').length };";
    let Some(said) = ask(&page_of(&long(2_000)), 1280, Scheme::Light, probe) else { return };
    assert_eq!(said, serde_json::json!({ "bars": 6_011, "rows": 2_000 }));
}
