//! The same question again and again.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, stdout};
use std::pin::pin;
use std::time::Duration;

use anyhow::Context as _;
use roost_supervise::Chain;
use roost_views::foreign::escaped_json;
use tokio::time::sleep;

use super::client::AskError;
use super::words::page as in_lines;
use super::{Answer, Page};
use crate::interruption::interruption;
use crate::output::{complain, say};

/// Until Ctrl-C. Only the first answer must come: a service that is restarted while it is watched comes back.
pub(super) async fn run(
    every: Duration,
    answer: impl AsyncFn() -> Result<Answer, AskError>,
) -> anyhow::Result<()> {
    let mut interrupted = pin!(interruption()?);
    let mut has_answered = false;
    let mut is_lost = false;
    let watched = loop {
        let answered = tokio::select! {
            biased;
            () = &mut interrupted => break Ok(()),
            answered = answer() => answered,
        };
        match answered {
            Ok(answer) => {
                show(&answer, every, !has_answered)?;
                (has_answered, is_lost) = (true, false);
            }
            Err(error) if !has_answered => break Err(error.into()),
            Err(error) => {
                // Once, however long it lasts; what was said before it stays on the screen.
                if !is_lost {
                    complain(format_args!(
                        "roost: {}; asking again every {}",
                        Chain(&error),
                        seconds(every)
                    ));
                }
                is_lost = true;
            }
        }
        tokio::select! {
            biased;
            () = &mut interrupted => break Ok(()),
            () = sleep(every) => {}
        }
    };
    if has_answered && stdout().is_terminal() {
        // What comes next begins below it.
        say("\n");
    }
    watched
}

fn show(answer: &Answer, every: Duration, is_first: bool) -> anyhow::Result<()> {
    match answer {
        Answer::Data(json) => {
            let text = serde_json::to_string(json).context("writing JSON")?;
            say(&format!("{}\n", escaped_json(&text)));
        }
        Answer::Page(page) if stdout().is_terminal() => {
            let height = terminal_size::terminal_size().map_or(24, |(_, height)| height.0.into());
            // What stands there is not written over, but goes up to where it can be found again.
            let room = if is_first { "\n".repeat(height) } else { String::new() };
            say(&format!("{room}{}", frame(page, height, every)));
        }
        Answer::Page(page) => say(&format!("{}\n", in_lines(&page.lines))),
    }
    Ok(())
}

fn seconds(every: Duration) -> String {
    format!("{} s", every.as_secs_f64())
}

/// From the upper left corner over what stood there before, so that nothing flickers; no more lines than the terminal has.
fn frame(page: &Page, height: usize, every: Duration) -> String {
    let mut frame = String::from("\u{1b}[H");
    for line in in_lines(&page.fitted(height.saturating_sub(2).max(1))).lines() {
        let _ = write!(frame, "{line}\u{1b}[K\r\n");
    }
    let _ = write!(frame, "\u{1b}[K\r\nevery {}; Ctrl-C ends it\u{1b}[J", seconds(every));
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_never_scrolls_and_says_what_it_leaves_out() {
        let lines: Vec<String> = (0..30).map(|line| format!("line {line}")).collect();
        let (first, last) = (Page::new(lines.clone()), Page { ends_with_news: true, lines });
        let two = Duration::from_secs(2);
        for (page, height, kept) in [
            (&first, 24, "line 20"),
            (&first, 10, "line 6"),
            (&first, 40, "line 29"),
            (&last, 10, "line 29"),
            (&last, 40, "line 0"),
        ] {
            let frame = frame(page, height, two);
            assert!(frame.matches("\r\n").count() < height, "{height}: {frame:?}");
            assert!(frame.contains(&format!("{kept}\u{1b}[K")), "{height}: {frame:?}");
            assert!(frame.contains("line 0\u{1b}[K"), "the titles stay: {frame:?}");
        }
        assert!(frame(&first, 10, two).contains("... and 23 more lines"));
        assert!(frame(&last, 10, two).contains("... 23 earlier lines"));
        assert!(!frame(&first, 40, two).contains("..."));
        for height in 0..5 {
            frame(&Page::new(Vec::new()), height, two);
            frame(&last, height, two);
        }
    }
}
