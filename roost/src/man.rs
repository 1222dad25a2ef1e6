//! `roost man`: the manual pages, written by the command line itself.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use clap::Command;
use clap_mangen::Man;

use crate::cli;
use roost_client::{deliver, say};

/// The page of `roost` itself, or all pages as files below `dir`.
pub(crate) fn write(dir: Option<&Path>) -> anyhow::Result<()> {
    let pages = pages()?;
    let Some(dir) = dir else {
        let roost = pages.iter().find(|page| page.file == "roost.1");
        deliver(&roost.map(|page| page.text.clone()).unwrap_or_default())?;
        return Ok(());
    };
    fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    for page in &pages {
        let path = dir.join(&page.file);
        fs::write(&path, &page.text).with_context(|| format!("writing {}", path.display()))?;
    }
    say(&format!("{} pages in {}\n", pages.len(), dir.display()));
    Ok(())
}

struct Page {
    /// `roost-sim-vcenter.1` is the page of `roost sim vcenter`.
    file: String,
    text: String,
}

fn pages() -> anyhow::Result<Vec<Page>> {
    let mut roost = cli::command().disable_help_subcommand(true);
    roost.build();
    let mut pages = Vec::new();
    render(&roost, &mut pages)?;
    Ok(pages)
}

fn render(command: &Command, pages: &mut Vec<Page>) -> anyhow::Result<()> {
    let man = Man::new(command.clone())
        .source(concat!("roost ", env!("CARGO_PKG_VERSION")))
        .manual("Roost");
    let mut text = Vec::new();
    man.render(&mut text).context("writing a manual page")?;
    let text = String::from_utf8_lossy(&text).into_owned();
    pages.push(Page { file: man.get_filename(), text });
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        render(sub, pages)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(command: &Command) -> usize {
        let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        1 + shown.map(count).sum::<usize>()
    }

    #[test]
    fn every_command_has_a_page_that_says_what_it_does() {
        let pages = pages().unwrap();
        assert_eq!(pages.len(), count(&cli::command()));
        for Page { file, text } in &pages {
            let name = file.strip_suffix(".1").unwrap();
            let title = text.lines().find(|line| line.starts_with(".TH ")).unwrap();
            assert!(title.contains(name), "{file}: {title}");
            let escaped = name.replace('-', "\\-");
            assert!(
                text.contains(&format!("\n{escaped} \\- ")),
                "{file} has no NAME line:\n{text}"
            );
            for heading in [".SH SYNOPSIS", ".SH DESCRIPTION", ".SH OPTIONS"] {
                assert!(text.contains(heading), "{file} lacks {heading}");
            }
        }
        let vcenter = pages.iter().find(|page| page.file == "roost-sim-vcenter.1").unwrap();
        assert!(vcenter.text.contains("\\-\\-listen"));
    }
}
