//! The probes that a pod itself asks for: what they look at, how often, and how many results make a verdict.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{Container, Pod, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use roost_microvm::{ExecOptions, ExecStreams, Runtime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// Between looks whether the guest has a connection.
const LOOK: Duration = Duration::from_millis(50);

/// Those of a pod's container, with the defaults of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Checks {
    pub(crate) startup: Option<Check>,
    pub(crate) readiness: Option<Check>,
    pub(crate) liveness: Option<Check>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Check {
    action: Action,
    pub(crate) delay: Duration,
    pub(crate) period: Duration,
    within: Duration,
    pub(crate) successes: u32,
    pub(crate) failures: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Action {
    Http {
        tls: bool,
        host: Option<String>,
        port: u16,
        path: String,
        headers: Vec<(String, String)>,
    },
    Tcp {
        host: Option<String>,
        port: u16,
    },
    Exec(Vec<String>),
}

impl Checks {
    /// `None` if the pod asks for none that is known here.
    pub(crate) fn of(pod: &Pod) -> Option<Arc<Self>> {
        let container = pod.spec.as_ref()?.containers.first()?;
        let read =
            |probe: &Option<Probe>| probe.as_ref().and_then(|probe| Check::of(probe, container));
        let checks = Self {
            startup: read(&container.startup_probe),
            readiness: read(&container.readiness_probe),
            liveness: read(&container.liveness_probe),
        };
        (checks != Self::default()).then(|| Arc::new(checks))
    }
}

impl Check {
    fn of(probe: &Probe, container: &Container) -> Option<Self> {
        let port = |port: &IntOrString| port_number(port, container);
        let action = if let Some(http) = &probe.http_get {
            let headers = http.http_headers.iter().flatten();
            Action::Http {
                tls: http.scheme.as_deref() == Some("HTTPS"),
                host: http.host.clone().filter(|host| !host.is_empty()),
                port: port(&http.port)?,
                path: http.path.clone().unwrap_or_else(|| "/".to_owned()),
                headers: headers.map(|it| (it.name.clone(), it.value.clone())).collect(),
            }
        } else if let Some(tcp) = &probe.tcp_socket {
            Action::Tcp {
                host: tcp.host.clone().filter(|host| !host.is_empty()),
                port: port(&tcp.port)?,
            }
        } else {
            Action::Exec(probe.exec.as_ref()?.command.clone().unwrap_or_default())
        };
        let seconds = |value: Option<i32>, usual: u64| {
            let value =
                value.and_then(|value| u64::try_from(value).ok()).filter(|value| *value > 0);
            Duration::from_secs(value.unwrap_or(usual))
        };
        let count = |value: Option<i32>, usual: u32| {
            value
                .and_then(|value| u32::try_from(value).ok())
                .filter(|value| *value > 0)
                .unwrap_or(usual)
        };
        Some(Self {
            action,
            delay: seconds(probe.initial_delay_seconds, 0),
            period: seconds(probe.period_seconds, 10),
            within: seconds(probe.timeout_seconds, 1),
            successes: count(probe.success_threshold, 1),
            failures: count(probe.failure_threshold, 3),
        })
    }

    /// One look. The error says what a person wants to know.
    pub(crate) async fn look(
        &self,
        runtime: &dyn Runtime,
        vm: &str,
        address: Option<IpAddr>,
    ) -> Result<(), String> {
        let looked = async {
            match &self.action {
                Action::Exec(argv) => {
                    let options = ExecOptions { argv: argv.clone(), ..ExecOptions::default() };
                    match runtime.exec(vm, options, ExecStreams::default()).await {
                        Ok(0) => Ok(()),
                        Ok(code) => Err(format!("the command ended with {code}")),
                        Err(error) => Err(roost_supervise::Chain(&error).to_string()),
                    }
                }
                Action::Tcp { host, port } => {
                    open(runtime, vm, host.as_deref(), *port).await?;
                    let stream = connect(host.as_deref(), *port, address).await?;
                    taken(runtime, vm, *port, &stream).await
                }
                Action::Http { tls, host, port, path, headers } => {
                    open(runtime, vm, host.as_deref(), *port).await?;
                    let stream = connect(host.as_deref(), *port, address).await?;
                    let peer = stream.peer_addr().map_err(|error| error.to_string())?;
                    if *tls {
                        get(encrypt(stream, peer.ip()).await?, peer, path, headers).await
                    } else {
                        get(stream, peer, path, headers).await
                    }
                }
            }
        };
        let looked = timeout(self.within, looked).await;
        looked.unwrap_or_else(|_| Err(format!("no answer within {:?}", self.within)))
    }
}

/// A port may be named; then the container's ports say which it is.
fn port_number(port: &IntOrString, container: &Container) -> Option<u16> {
    let number = match port {
        IntOrString::Int(number) => *number,
        IntOrString::String(text) => {
            let named = || {
                let mut ports = container.ports.iter().flatten();
                ports.find(|port| port.name.as_ref() == Some(text)).map(|port| port.container_port)
            };
            text.parse().ok().or_else(named)?
        }
    };
    u16::try_from(number).ok().filter(|port| *port > 0)
}

/// Sees to it that the guest's port can be reached, unless another host is asked.
async fn open(
    runtime: &dyn Runtime,
    vm: &str,
    host: Option<&str>,
    port: u16,
) -> Result<(), String> {
    if host.is_some() {
        return Ok(());
    }
    runtime.reach(vm, port).await.map_err(|error| format!("port {port}: {error}"))
}

/// Waits until it is the guest that has the connection. Where something answers for it, that one closes when the guest refuses.
pub(super) async fn taken(
    runtime: &dyn Runtime,
    vm: &str,
    port: u16,
    stream: &TcpStream,
) -> Result<(), String> {
    while runtime.capabilities().forwards_ports {
        match timeout(LOOK, stream.peek(&mut [0])).await {
            Ok(Ok(0)) => return Err("the guest does not listen".to_owned()),
            Ok(Err(error)) => return Err(error.to_string()),
            // Whatever it says, it is there.
            Ok(Ok(_)) => break,
            Err(_) => {}
        }
        if runtime.is_taken(vm, port).await.map_err(|error| error.to_string())? {
            break;
        }
    }
    Ok(())
}

async fn connect(
    host: Option<&str>,
    port: u16,
    address: Option<IpAddr>,
) -> Result<TcpStream, String> {
    let connected = match (host, address) {
        (Some(host), _) => TcpStream::connect((host, port)).await,
        (None, Some(address)) => TcpStream::connect(SocketAddr::new(address, port)).await,
        (None, None) => return Err("waiting for dhcp lease".to_owned()),
    };
    connected.map_err(|error| format!("port {port}: {error}"))
}

/// As a kubelet does it: whose certificate it is does not matter to a probe.
async fn encrypt(
    stream: TcpStream,
    address: IpAddr,
) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send, String> {
    let config =
        roost_tls::TlsTrust::Insecure.client_config().map_err(|error| error.to_string())?;
    let name = ServerName::IpAddress(address.into());
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.map_err(|error| format!("TLS: {error}"))
}

async fn get(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    host: SocketAddr,
    path: &str,
    headers: &[(String, String)],
) -> Result<(), String> {
    let words = |error: hyper::Error| error.to_string();
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.map_err(words)?;
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let mut request = Request::get(path).header("user-agent", "kube-probe/roost");
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        request = request.header("host", host.to_string());
    }
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let request = request.body(Empty::<Bytes>::new()).map_err(|error| error.to_string())?;
    let mut answer = std::pin::pin!(sender.send_request(request));
    let answer = tokio::select! {
        answer = &mut answer => answer,
        // What was heard before the end is still an answer.
        _ = connection => answer.await,
    };
    let answer = answer.map_err(words)?;
    match answer.status().as_u16() {
        200..400 => Ok(()),
        status => Err(format!("HTTP status {status}")),
    }
}

/// How many results in a row make a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Streak {
    pub(crate) is_good: bool,
    against: u32,
}

impl Streak {
    pub(crate) fn new(is_good: bool) -> Self {
        Self { is_good, against: 0 }
    }

    pub(crate) fn note(self, is_good: bool, check: &Check) -> Self {
        if is_good == self.is_good {
            return Self { against: 0, ..self };
        }
        let against = self.against + 1;
        let needed = if is_good { check.successes } else { check.failures };
        if against >= needed { Self::new(is_good) } else { Self { against, ..self } }
    }
}

#[cfg(test)]
mod tests {
    use roost_cocoon_sim::{SimRuntime, Timings};
    use serde_json::json;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    fn pod(probe: &serde_json::Value) -> Pod {
        serde_json::from_value(json!({"metadata": {}, "spec": {"containers": [{
            "name": "agent", "ports": [{"name": "web", "containerPort": 8080}],
            "readinessProbe": probe,
        }]}}))
        .unwrap()
    }

    fn check(probe: &serde_json::Value) -> Option<Check> {
        Checks::of(&pod(probe))?.readiness.clone()
    }

    #[test]
    fn defaults_are_those_of_kubernetes_and_ports_may_be_named() {
        let read = check(&json!({"httpGet": {"port": "web"}})).unwrap();
        let seconds = Duration::from_secs;
        assert_eq!((read.delay, read.period, read.within), (seconds(0), seconds(10), seconds(1)));
        assert_eq!((read.successes, read.failures), (1, 3));
        assert!(
            matches!(read.action, Action::Http { port: 8080, tls: false, ref path, .. } if path == "/")
        );
        assert_eq!(check(&json!({"tcpSocket": {"port": "other"}})), None, "nobody knows that port");
        assert_eq!(check(&json!({"grpc": {"port": 1}})), None);
    }

    #[test]
    fn a_verdict_needs_as_many_results_as_it_says() {
        let check =
            check(&json!({"tcpSocket": {"port": 1}, "successThreshold": 2, "failureThreshold": 3}))
                .unwrap();
        let mut streak = Streak::new(false);
        let mut seen = Vec::new();
        for result in [true, false, true, true, false, false, true, false, false, false] {
            streak = streak.note(result, &check);
            seen.push(streak.is_good);
        }
        let (no, yes) = (false, true);
        assert_eq!(seen, [no, no, no, yes, yes, yes, yes, yes, yes, no]);
    }

    #[tokio::test]
    async fn http_is_asked_as_a_kubelet_asks() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        let serving = tokio::spawn(async move {
            let mut asked = Vec::new();
            for status in ["200 OK", "302 Found", "404 Not Found"] {
                let (mut connection, _) = server.accept().await.unwrap();
                let mut request = vec![0; 4096];
                let count = connection.read(&mut request).await.unwrap();
                asked.push(String::from_utf8_lossy(&request[..count]).into_owned());
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
                connection.write_all(answer.as_bytes()).await.unwrap();
            }
            asked
        });
        let headers = json!([{"name": "X-Token", "value": "t"}]);
        let http = json!({"httpGet": {"port": port, "path": "/ready?x=1", "httpHeaders": headers}, "timeoutSeconds": 30});
        let check = check(&http).unwrap();
        let runtime = SimRuntime::new(Arc::new(roost_clock::SimClock::new()), Timings::default());
        let look = async || check.look(&runtime, "vm", Some([127, 0, 0, 1].into())).await;
        assert_eq!(look().await, Ok(()));
        assert_eq!(look().await, Ok(()), "a redirection is an answer");
        assert_eq!(look().await, Err("HTTP status 404".to_owned()));
        let asked = serving.await.unwrap().remove(0);
        assert!(asked.starts_with("GET /ready?x=1 HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains("x-token: t") && asked.contains("host: 127.0.0.1:"), "{asked}");
        assert!(look().await.unwrap_err().contains(&format!("port {port}")), "nobody listens now");
    }
}
