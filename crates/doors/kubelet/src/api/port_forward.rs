//! Connections of a client to ports of a pod's VM.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use hyper::body::Incoming;
use roost_spdy::{ResetCode, Session, Stream};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Shared;
use super::answer::{Answer, Refusal};
use super::query;
use super::routes::Live;
use super::stream::{
    Chosen, FORWARD, Lane, Lanes, Socket, Source, Transport, Upgrade, Work, carry_spdy,
};
use crate::pods::Host;

const DIAL_WITHIN: Duration = Duration::from_secs(10);
/// Halves of pairs that wait for their other half.
const MAX_HALVES: usize = 256;
const READ: usize = 32 * 1024;

/// The pod behind a forwarding, as its errors name it.
struct Goal {
    pod: String,
    uid: String,
    address: IpAddr,
    vm: String,
    host: Arc<Host>,
}

pub(super) fn answer(
    api: &Arc<Shared>,
    live: Live,
    request: Request<Incoming>,
    upgraded: &mpsc::Sender<Work>,
) -> Result<Answer, Refusal> {
    let address = live.tracked.address.ok_or_else(|| {
        Refusal::new(http::StatusCode::SERVICE_UNAVAILABLE, "the VM has no address yet")
    })?;
    let ports = query::ports(request.uri().query().unwrap_or_default())?;
    let upgrade = Upgrade::of(request, &FORWARD)?;
    let is_channels =
        upgrade.chosen.transport == Transport::WebSocket && !is_tunnel(upgrade.chosen);
    if is_channels && ports.is_empty() {
        return Err(Refusal::bad("no port is given"));
    }
    let answer = upgrade.answer();
    let pod = live.key.name().to_owned();
    let goal =
        Arc::new(Goal { pod, uid: live.uid, address, vm: live.vm.id, host: Arc::clone(&api.host) });
    let work: Work = Box::pin(async move {
        let chosen = upgrade.chosen;
        let Some(connection) = upgrade.wait().await else { return };
        if is_channels {
            by_channels(connection, chosen, ports, &goal).await;
        } else if is_tunnel(chosen) {
            let (connection, carry) = carry_spdy(connection).await;
            tokio::join!(by_streams(Session::serve(connection), &goal), carry);
        } else {
            by_streams(Session::serve(connection), &goal).await;
        }
    });
    let _ = upgraded.try_send(work);
    Ok(answer)
}

fn is_tunnel(chosen: Chosen) -> bool {
    chosen.protocol.starts_with("SPDY/3.1+")
}

/// A pair of streams for each connection: one for data, one for what went wrong.
async fn by_streams(mut session: Session, goal: &Arc<Goal>) {
    let mut halves: BTreeMap<String, Stream> = BTreeMap::new();
    let mut forwards = JoinSet::new();
    loop {
        let stream = tokio::select! {
            stream = session.accept() => stream,
            Some(_) = forwards.join_next() => continue,
        };
        let Some(stream) = stream else { break };
        let Some((pair, is_data)) = place(&stream) else {
            let _ = stream.outgoing.reset(ResetCode::ProtocolError).await;
            continue;
        };
        let Some(other) = halves.remove(&pair) else {
            if halves.len() >= MAX_HALVES {
                let _ = stream.outgoing.reset(ResetCode::RefusedStream).await;
            } else {
                halves.insert(pair, stream);
            }
            continue;
        };
        let (data, error) = if is_data { (stream, other) } else { (other, stream) };
        let port = data.headers.get("port").and_then(|port| port.parse().ok());
        let goal = Arc::clone(goal);
        forwards.spawn(async move {
            let lane = Lane::Spdy(data.outgoing.clone());
            let source = Source::Spdy(data.incoming);
            let failed = forward(&goal, port, source, &lane).await.err();
            if let Some(text) = failed {
                let _ = error.outgoing.send(text.into()).await;
            }
            let _ = lane.finish().await;
            let _ = error.outgoing.finish().await;
        });
    }
    forwards.shutdown().await;
    session.close().await;
}

/// Which pair a stream belongs to, and whether it is the half with the data.
fn place(stream: &Stream) -> Option<(String, bool)> {
    let is_data = match stream.headers.get("streamtype").map(String::as_str) {
        Some("data") => true,
        Some("error") => false,
        _ => return None,
    };
    let pair = match stream.headers.get("requestid") {
        Some(request) => format!("request {request}"),
        // Old clients open the error stream first, and the data stream right after it.
        None if is_data => format!("stream {}", stream.id.0.checked_sub(2)?),
        None => format!("stream {}", stream.id),
    };
    Some((pair, is_data))
}

/// Two channels for each port. Each begins with its port in two bytes, the lower one first.
async fn by_channels<S>(connection: S, chosen: Chosen, ports: Vec<u16>, goal: &Arc<Goal>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut lanes, mut sources): (Lanes, _) = (Vec::new(), Vec::new());
    for _ in &ports {
        let (to, from) = mpsc::channel(16);
        lanes.extend([Some(to), None]);
        sources.push(Source::Socket(from));
    }
    let socket = Socket::serve(connection, chosen, lanes).await;
    let mut forwards = JoinSet::new();
    for (number, (port, source)) in ports.into_iter().zip(sources).enumerate() {
        let Ok(channel) = u8::try_from(number * 2) else { break };
        let (data, error) = (socket.lane(channel), socket.lane(channel + 1));
        let (data, error) = (Lane::Socket(data), Lane::Socket(error));
        let goal = Arc::clone(goal);
        forwards.spawn(async move {
            let greeting = Bytes::copy_from_slice(&port.to_le_bytes());
            let _ = data.send(greeting.clone()).await;
            let _ = error.send(greeting).await;
            if let Err(text) = forward(&goal, Some(port), source, &data).await {
                let _ = error.send(text.into()).await;
            }
        });
    }
    let gone = socket.ended();
    let all = async { while forwards.join_next().await.is_some() {} };
    tokio::select! {
        () = all => socket.close().await,
        () = gone => {}
    }
}

/// One connection, until both sides are done or one breaks.
async fn forward(
    goal: &Goal,
    port: Option<u16>,
    mut source: Source,
    lane: &Lane,
) -> Result<(), String> {
    let Some(port) = port else { return Err("no port is given".to_owned()) };
    let failed = |why: String| {
        format!("error forwarding port {port} to pod {}, uid {}: {why}", goal.pod, goal.uid)
    };
    let target = SocketAddr::new(goal.address, port);
    let reached = goal.host.runtime.reach(&goal.vm, port).await;
    reached.map_err(|error| failed(error.to_string()))?;
    let connection = match timeout(DIAL_WITHIN, TcpStream::connect(target)).await {
        Ok(connected) => connected.map_err(|error| failed(format!("{target}: {error}")))?,
        Err(_) => return Err(failed(format!("{target}: no answer within {DIAL_WITHIN:?}"))),
    };
    let _ = connection.set_nodelay(true);
    let (mut from, mut to) = connection.into_split();
    let inward = async {
        while let Some(data) = source.next().await {
            to.write_all(&data).await.map_err(|error| failed(error.to_string()))?;
        }
        // The guest hears that the client is done, and may go on answering.
        let _ = to.shutdown().await;
        Ok(())
    };
    let outward = async {
        let mut buffer = vec![0; READ];
        loop {
            let count = from.read(&mut buffer).await.map_err(|error| failed(error.to_string()))?;
            if count == 0 {
                return Ok(());
            }
            let data = Bytes::copy_from_slice(&buffer[..count]);
            lane.send(data).await.map_err(|error| failed(error.to_string()))?;
        }
    };
    tokio::pin!(inward, outward);
    tokio::select! {
        // What the guest has said last is all there will be: nobody would read the rest of the client's.
        done = &mut outward => done,
        sent = &mut inward => match sent {
            Ok(()) => outward.await,
            Err(error) => Err(error),
        },
    }
}
