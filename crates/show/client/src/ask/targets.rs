//! Services by name, for those who have several: a file of the user's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use roost_supervise::Chain;
use roost_views::Overview;
use serde::Deserialize;
use serde_json::{Value, json};

use super::args::{Asking, Output, Reach};
use super::client::Client;
use super::table::{Table, left, right};
use super::target::Surroundings;
use super::words::since;
use super::{Answer, Page};

/// One service.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Named {
    pub(super) url: String,
    /// File with the bearer token.
    pub(super) token_file: Option<PathBuf>,
}

/// The file: `ROOST_TARGETS`, or `roost/targets.toml` in the folder for the user's settings.
fn file(surroundings: &dyn Surroundings) -> Option<PathBuf> {
    let filled = |name| surroundings.variable(name).filter(|text: &String| !text.trim().is_empty());
    let folder = filled("XDG_CONFIG_HOME").map(PathBuf::from);
    let folder = folder.or_else(|| Some(Path::new(&filled("HOME")?).join(".config")));
    let usual = || Some(folder?.join("roost/targets.toml"));
    filled("ROOST_TARGETS").map(PathBuf::from).or_else(usual)
}

pub(super) fn read(surroundings: &dyn Surroundings) -> anyhow::Result<BTreeMap<String, Named>> {
    let Some(path) = file(surroundings) else { bail!("neither ROOST_TARGETS nor HOME is set") };
    let text =
        surroundings.read_file(&path).with_context(|| format!("reading {}", path.display()))?;
    toml::from_str(&text).with_context(|| format!("{}", path.display()))
}

/// The service that is called so.
pub(super) fn find(surroundings: &dyn Surroundings, name: &str) -> anyhow::Result<Named> {
    let mut all = read(surroundings)?;
    let known: Vec<String> = all.keys().cloned().collect();
    all.remove(name).with_context(|| {
        format!("there is no target {name:?}: the file of targets has {}", known.join(", "))
    })
}

/// All of them, a line for each. One that does not answer has its line, too.
pub(super) async fn status(
    surroundings: &dyn Surroundings,
    asking: &Asking,
) -> anyhow::Result<Answer> {
    let all = read(surroundings)?;
    let mut seen = Vec::new();
    for (name, named) in all {
        let reach = Reach {
            url: Some(named.url.clone()),
            config: None,
            token_file: named.token_file.or_else(|| asking.reach.token_file.clone()),
        };
        let overview = match Client::find(&reach, surroundings) {
            Ok(client) => client
                .read::<Overview>(&["overview"], &[])
                .await
                .map_err(|error| Chain(&error).to_string()),
            Err(error) => Err(Chain(&*error).to_string()),
        };
        seen.push((name, overview));
    }
    if asking.is_data() {
        return Ok(Answer::Data(for_programs(&seen)?));
    }
    Ok(Answer::Page(Page::new(lines(&seen, asking))))
}

/// The overview of each by its name, or why there is none.
fn for_programs(seen: &[Seen]) -> anyhow::Result<Value> {
    let one = |(name, overview): &Seen| {
        let said = match overview {
            Ok(overview) => serde_json::to_value(overview).context("writing JSON")?,
            Err(why) => json!({"error": why}),
        };
        Ok((name.clone(), said))
    };
    Ok(Value::Object(seen.iter().map(one).collect::<anyhow::Result<_>>()?))
}

type Seen = (String, Result<Overview, String>);

fn lines(seen: &[Seen], asking: &Asking) -> Vec<String> {
    if asking.output() == Output::Name {
        return seen.iter().map(|(name, _)| name.clone()).collect();
    }
    let mut table = Table::new([
        left("TARGET"),
        left("STATE"),
        right("NEEDS"),
        right("WAITING"),
        right("REFUSED"),
        right("STARTING"),
        right("WORKING"),
        right("UP"),
        left("SAYS").narrows(1, 20),
    ]);
    for (name, overview) in seen {
        let cells = match overview {
            Ok(seen) => {
                let starting = seen.queue.starting + seen.queue.joining;
                let says = seen.needs.first().map(|need| need.words.clone());
                let says = says.or_else(|| seen.what_binds.clone()).unwrap_or_default();
                [
                    name.clone(),
                    if seen.ready { "ready" } else { "NOT READY" }.to_owned(),
                    seen.needs.len().to_string(),
                    seen.queue.waiting.to_string(),
                    seen.queue.refused.to_string(),
                    starting.to_string(),
                    seen.queue.working.to_string(),
                    since(seen.now, seen.started),
                    says,
                ]
            }
            Err(why) => {
                let dash = || "-".to_owned();
                let state = "NOT REACHED".to_owned();
                [name.clone(), state, dash(), dash(), dash(), dash(), dash(), dash(), why.clone()]
            }
        };
        table.row(cells);
    }
    let mut lines = table.render(super::width(asking));
    if asking.no_headers {
        lines.remove(0);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_targets_names_where_each_is() {
        let text = "[paris]\nurl = 'https://paris:8086'\ntoken-file = '/t'\n[lab]\nurl = 'http://lab:8086'\n";
        let read: BTreeMap<String, Named> = toml::from_str(text).unwrap();
        assert_eq!(read["paris"].token_file.as_deref(), Some(Path::new("/t")));
        assert_eq!(read.keys().collect::<Vec<_>>(), ["lab", "paris"]);
        assert!(toml::from_str::<BTreeMap<String, Named>>("[x]\nuri = 'y'").is_err());
    }

    #[test]
    fn one_that_does_not_answer_has_its_line_too() {
        let seen = [("lab".to_owned(), Err("connection refused".to_owned()))];
        let lines = lines(&seen, &Asking::default());
        assert!(lines[1].starts_with("lab     NOT REACHED"), "{lines:?}");
        assert!(lines[1].ends_with("connection refused"), "{lines:?}");
        let data = for_programs(&seen).unwrap();
        assert_eq!(data, json!({"lab": {"error": "connection refused"}}));
    }
}
