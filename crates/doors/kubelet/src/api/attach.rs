//! The serial console of a pod's VM.

use std::sync::Arc;

use http::Request;
use hyper::body::Incoming;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use super::Shared;
use super::answer::{Answer, Refusal};
use super::exec::End;
use super::query::CommandQuery;
use super::routes::Live;
use super::stream::{COMMAND, Channels, Upgrade, Work};
use crate::pods::Host;

pub(super) fn answer(
    api: &Arc<Shared>,
    live: Live,
    request: Request<Incoming>,
    upgraded: &mpsc::Sender<Work>,
) -> Result<Answer, Refusal> {
    let query = CommandQuery::parse(request.uri().query().unwrap_or_default())?;
    let upgrade = Upgrade::of(request, &COMMAND)?;
    let answer = upgrade.answer();
    let host = Arc::clone(&api.host);
    let work: Work = Box::pin(async move {
        let chosen = upgrade.chosen;
        let Some(connection) = upgrade.wait().await else { return };
        let Some(channels) = Channels::open(connection, chosen, &query).await else { return };
        run(&host, &live, channels).await;
    });
    let _ = upgraded.try_send(work);
    Ok(answer)
}

/// Until the client leaves or the console closes. A client's end of input does not close the console.
async fn run(host: &Host, live: &Live, mut channels: Channels) {
    let path = host.runtime.console(&live.vm);
    let has_status = channels.chosen.has_status();
    let console = match UnixStream::connect(&path).await {
        Ok(console) => console,
        Err(error) => {
            let why = format!("the console of VM {} cannot be opened: {error}", live.vm.name());
            return channels.finish(End::Failed(why).told(has_status)).await;
        }
    };
    tracing::info!(pod = %live.key, "somebody is at the console of VM {}", live.vm.name());
    let gone = channels.ended();
    let (mut from, mut to) = console.into_split();
    let stdin = channels.stdin.take();
    let typed = async {
        if let Some(mut stdin) = stdin {
            while let Some(data) = stdin.next().await {
                if to.write_all(&data).await.is_err() {
                    return;
                }
            }
        }
        std::future::pending::<()>().await;
    };
    let shown = async {
        let Some(lane) = channels.stdout.take() else {
            return std::future::pending::<()>().await;
        };
        let (mut writer, send) = lane.into_pipe();
        let copy = async move {
            let _ = tokio::io::copy(&mut from, &mut writer).await;
        };
        tokio::join!(copy, send);
    };
    tokio::select! {
        () = typed => {}
        () = shown => {}
        () = gone => return,
    }
    channels.finish(End::Exit(0).told(has_status)).await;
}
