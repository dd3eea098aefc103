//! The prompt: from the command line, from standard input, or both.

use std::io::{IsTerminal as _, Read as _};
use std::time::Duration;

use anyhow::{anyhow, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::complain;

/// The most that is read from standard input.
const INPUT_BYTES_MAX: u64 = 10_000_000;

/// How long a prompt on the command line waits for standard input: pipes are often open and never written.
const INPUT_WAIT: Duration = Duration::from_secs(3);

const NO_PROMPT: &str = "there is no prompt. Give one as an argument (`windlass -p \"your prompt\"`) \
     or on standard input.";

/// The texts of the prompt: the argument, then standard input. There is at least one, or no prompt.
pub(crate) fn read(argument: Option<&str>) -> anyhow::Result<Vec<String>> {
    let input = if std::io::stdin().is_terminal() { String::new() } else { read_input(argument.is_some())? };
    let input = Some(input).filter(|input| !input.trim().is_empty());
    Ok(argument.map(str::to_owned).into_iter().chain(input).collect())
}

/// What to say where there is no prompt. `lost` says what may have become of it.
pub(crate) fn missing(lost: Option<String>) -> String {
    lost.map_or_else(|| NO_PROMPT.into(), |lost| format!("there is no prompt. {lost}"))
}

fn read_input(has_argument: bool) -> anyhow::Result<String> {
    if has_argument && !arrives_soon() {
        let seconds = INPUT_WAIT.as_secs();
        complain(&format!(
            "nothing came on standard input within {seconds} s; going on without it. \
             Redirect it from /dev/null if nothing is to come."
        ));
        return Ok(String::new());
    }
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| anyhow!("cannot read standard input: {error}."))?;
    ensure!(
        bytes.len() as u64 <= INPUT_BYTES_MAX,
        "standard input is longer than {INPUT_BYTES_MAX} bytes. Put the text into a file and name it in the prompt."
    );
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let byte = error.as_bytes().get(at).copied().unwrap_or_default();
        anyhow!(
            "Standard input is not UTF-8 text: byte {at} (0x{byte:02x}) is invalid. Convert the text, such as with \
             `iconv -f LATIN1 -t UTF-8`, or save it as a file and name the file in the prompt."
        )
    })
}

/// Whether text or the end of standard input comes soon.
fn arrives_soon() -> bool {
    let stdin = std::io::stdin();
    let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
    let Ok(wait) = Timespec::try_from(INPUT_WAIT) else { return true };
    // An error here shows again, with its reason, when the input is read.
    poll(&mut watched, Some(&wait)).map_or(true, |ready| ready > 0)
}
