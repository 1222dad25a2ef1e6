use std::sync::Arc;
use std::time::Duration;

use roost_door::Action;
use roost_supervise::Chain;
use roost_views::Overview;
use tokio::runtime::Handle;

use super::known::Known;
use crate::ask::Client;
use crate::tell::tell;
use crate::terminal::{Count, Look, Opened, Origin, Picture, Said, clock_time, duration_words};

/// A service that is reached over HTTP, as the view sees it.
#[derive(Debug)]
pub(super) struct Remote {
    client: Client,
    known: Arc<Known>,
    runtime: Handle,
}

impl Remote {
    /// Needs a runtime, for orders.
    pub(super) fn new(client: Client, known: Arc<Known>) -> Self {
        Self { client, known, runtime: Handle::current() }
    }

    fn facts_of(&self, overview: &Overview) -> Vec<String> {
        let up = overview.now.duration_since(overview.started);
        let url = self.client.url().as_str();
        vec![
            overview.service.clone(),
            format!("{} UTC", clock_time(overview.now)),
            url.strip_suffix('/').unwrap_or(url).to_owned(),
            format!("up {}", duration_words(Duration::try_from(up).unwrap_or_default())),
            format!("roost {}", overview.version),
        ]
    }
}

impl Origin for Remote {
    fn look(&mut self, opened: Option<&Opened>) -> Look {
        let mut facts = self.known.facts();
        if facts.opened.as_ref() != opened {
            facts.opened = opened.cloned();
            self.known.at_once.notify_one();
        }
        let overview = facts.overview();
        let about = facts.detail.as_ref().filter(|(about, _)| Some(about) == opened);
        Look {
            detail: about.map(|(_, detail)| detail.clone()),
            picture: Picture {
                title: "roost top".to_owned(),
                facts: self.facts_of(&overview),
                counts: counts(&overview),
                overview,
                steering: facts.steering.clone(),
                decisions: facts.decisions.clone(),
                ends_with_view: false,
                history: facts.history.clone(),
                hint: "q ends it".to_owned(),
                lost: facts.loss(),
            },
            requests: facts.requests.clone(),
            vms: facts.vms.clone(),
            said: facts.said.take(),
        }
    }

    fn may_act(&self) -> Result<(), String> {
        self.client.may_act().map_err(|error| error.to_string())
    }

    fn order(&mut self, action: Action) {
        let (client, known) = (self.client.clone(), Arc::clone(&self.known));
        self.runtime.spawn(async move {
            let said = match tell(&client, &action, None).await {
                Ok(done) => Said { is_done: done.done, words: done.words },
                Err(error) => Said { is_done: false, words: Chain(&error).to_string() },
            };
            known.facts().said = Some(said);
            known.at_once.notify_one();
        });
    }
}

/// Where the requests are, as on the page.
fn counts(overview: &Overview) -> Vec<Count> {
    let counted = overview.queue.in_order().into_iter();
    counted
        .map(|(state, number)| Count { name: state.as_str(), number, mood: state.mood() })
        .collect()
}
