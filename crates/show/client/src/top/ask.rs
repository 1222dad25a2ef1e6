use std::sync::Arc;
use std::time::Duration;

use roost_supervise::Chain;
use roost_views::{DecisionView, HistoryView, RequestDetail, VmDetail};
use tokio::time::sleep;

use super::known::{Facts, Known, Lists};
use crate::ask::{AskError, Client};
use crate::terminal::{Detail, Opened, Picture};

/// What stands in the lists is looked at by a person, and changes less often than the overview.
const EVERY: Duration = Duration::from_secs(2);

/// All that a first frame needs.
pub(super) async fn everything(client: &Client) -> Result<Facts, AskError> {
    let overview = client.read(&["overview"], &[]).await?;
    let mut facts = Facts::new(overview, lists(client).await?, decisions(client).await?);
    facts.history = history(client).await;
    Ok(facts)
}

pub(super) async fn decisions(client: &Client) -> Result<Vec<DecisionView>, AskError> {
    client.read(&["decisions"], &[("limit", Picture::DECISIONS.to_string())]).await
}

/// For curves; a service that is older than they has none.
async fn history(client: &Client) -> HistoryView {
    client.read(&["history"], &[("minutes", "60".to_owned())]).await.unwrap_or_default()
}

async fn lists(client: &Client) -> Result<Lists, AskError> {
    Ok(Lists {
        steering: client.read(&["steering"], &[]).await?,
        requests: client.read(&["requests"], &[]).await?,
        vms: client.read(&["vms"], &[]).await?,
    })
}

/// Asks for the lists and for what is opened, again and again. Does not end.
pub(super) async fn keep_asking(client: Client, known: Arc<Known>) {
    let mut looks = 0_u32;
    loop {
        // Minutes change more seldom than what is counted in them.
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(10) {
            let history = history(&client).await;
            known.facts().history = history;
        }
        tokio::select! {
            biased;
            () = known.at_once.notified() => {}
            () = sleep(EVERY) => {}
        }
        let opened = known.facts().opened.clone();
        if let Some(opened) = opened
            && let Some(detail) = detail(&client, &opened).await
        {
            known.facts().detail = Some((opened, detail));
        }
        match lists(&client).await {
            Ok(lists) => known.facts().told(lists),
            Err(error) => known.facts().lost(anyhow::Error::from(error).root_cause().to_string()),
        }
    }
}

async fn detail(client: &Client, opened: &Opened) -> Option<Detail> {
    let found = match opened {
        Opened::Request(id) => {
            let path = ["requests", &id.door, &id.id];
            let request = client.read::<RequestDetail>(&path, &[]).await;
            request.map(|request| Detail::Request(Box::new(request)))
        }
        Opened::Vm(name) => {
            let vm = client.read::<VmDetail>(&["vms", name], &[]).await;
            vm.map(|vm| Detail::Vm(Box::new(vm)))
        }
        Opened::Decision(_) | Opened::Needs => return None,
    };
    Some(found.unwrap_or_else(|error| Detail::Nothing(Chain(&error).to_string())))
}
