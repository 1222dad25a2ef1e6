//! The simulated `cocoon` as pods see it, through everything that is real.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt as _, StreamExt as _};
use roost_oracle::ClusterOptions;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::lab::{Lab, PATIENCE, until};

/// How `kubectl` reaches the API server. Our node takes WebSockets as they are; the old way stays SPDY to the end.
const WAYS: [&[(&str, &str)]; 2] = [
    &[],
    &[("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "false"), ("KUBECTL_PORT_FORWARD_WEBSOCKETS", "false")],
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_works_through_a_real_api_server() {
    let options = ClusterOptions { controller_manager: true, ..ClusterOptions::default() };
    let Some(lab) = Lab::start(options).await else { return };
    lab.run_pod("a").await;
    logs(&lab).await;
    for way in WAYS {
        exec(&lab, way).await;
        terminal(&lab, way).await;
        attach(&lab, way).await;
        port_forward(&lab, way).await;
    }
    channels(&lab).await;
    copy(&lab).await;
    disconnect(&lab).await;
    windows(&lab).await;
    // A node that does not say so gets SPDY from the API server, which translates. The next status of the node says so again.
    let unsay = r#"{"status":{"declaredFeatures":null}}"#;
    let patch = ["patch", "node", "vnode", "--subresource=status", "--type=merge", "-p", unsay];
    assert_eq!(lab.run(&patch, "").await.code, 0);
    exec(&lab, WAYS[0]).await;
    port_forward(&lab, WAYS[0]).await;
    strangers(&lab).await;
}

async fn logs(lab: &Lab) {
    let said = lab.run(&["logs", "a"], "").await;
    assert_eq!((said.code, said.stdout.as_str()), (0, "vk-default-a booted\n"), "{said:?}");
    let log = lab.vm_folder().join("console.log");
    let mut text = std::fs::read_to_string(&log).unwrap();
    text.push_str("2020-01-01T00:00:00Z old\n2090-01-01T00:00:00Z new\n");
    std::fs::write(&log, text).unwrap();
    let said = lab.run(&["logs", "a", "--tail=2"], "").await;
    assert_eq!(said.stdout, "2020-01-01T00:00:00Z old\n2090-01-01T00:00:00Z new\n");
    let said = lab.run(&["logs", "a", "--tail=2", "--since=1h"], "").await;
    assert_eq!(said.stdout, "2090-01-01T00:00:00Z new\n");
    let said = lab.run(&["logs", "a", "--tail=1", "--timestamps"], "").await;
    assert_eq!(said.stdout, "2090-01-01T00:00:00.000000000Z 2090-01-01T00:00:00Z new\n");
    let said = lab.run(&["logs", "a", "--limit-bytes=10"], "").await;
    assert_eq!(said.stdout, "vk-default");
    let said = lab.run(&["logs", "a", "--previous"], "").await;
    assert!(said.code == 1 && said.stderr.contains("previous terminated"), "{said:?}");

    let mut follow = lab.spawn_with(&[], &["logs", "a", "--follow", "--tail=1"]);
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let next = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap();
    assert_eq!(next.as_deref(), Some("2090-01-01T00:00:00Z new"));
    let mut file = std::fs::OpenOptions::new().append(true).open(&log).unwrap();
    std::io::Write::write_all(&mut file, b"just now\n").unwrap();
    let next = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap();
    assert_eq!(next.as_deref(), Some("just now"));
    follow.kill().await.unwrap();
    until("the command that followed the log ends", || !lab.is_running("logs")).await;
}

async fn exec(lab: &Lab, way: &[(&str, &str)]) {
    let said =
        lab.run_with(way, &["exec", "a", "--", "sh", "-c", "echo out; echo err >&2"], "").await;
    assert_eq!((said.code, said.stdout.as_str(), said.stderr.as_str()), (0, "out\n", "err\n"));
    let said = lab.run_with(way, &["exec", "a", "--", "sh", "-c", "exit 7"], "").await;
    assert_eq!(said.code, 7, "{said:?}");
    assert!(said.stderr.contains("exit code 7"), "{said:?}");
    let said = lab.run_with(way, &["exec", "-i", "a", "--", "cat"], "from here\n").await;
    assert_eq!((said.code, said.stdout.as_str()), (0, "from here\n"), "{said:?}");
    // Larger than every buffer on the way.
    let large = "0123456789abcde\n".repeat(64 * 1024);
    let said = lab.run_with(way, &["exec", "-i", "a", "--", "cat"], &large).await;
    assert_eq!((said.code, said.stdout.len()), (0, large.len()));
    assert!(said.stdout == large, "nothing is lost or mixed up");
    let said = lab.run_with(way, &["exec", "a", "-c", "other", "--", "true"], "").await;
    assert!(said.code == 1 && said.stderr.contains("container"), "{said:?}");
}

/// `script` gives `kubectl` a terminal here, as a person's shell would.
fn in_terminal(lab: &Lab, way: &[(&str, &str)], before: &str, arguments: &str) -> Child {
    let program = lab.kubectl().command(&[]).get_program().to_string_lossy().into_owned();
    let line = format!("{before} {program} {arguments}");
    let plain = lab.kubectl().command(&[]);
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env_clear().envs(way.iter().copied());
    for (name, value) in plain.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.env("PATH", "/usr/bin:/bin").env("SHELL", "/bin/sh").kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Reads until the words are there; all that was read.
async fn read_until(screen: &mut ChildStdout, words: &str) -> String {
    let (mut seen, mut buffer) = (String::new(), [0; 1024]);
    while !seen.contains(words) {
        let count = timeout(PATIENCE, screen.read(&mut buffer)).await;
        let count = count.unwrap_or_else(|_| panic!("no {words:?}: {seen:?}")).unwrap();
        assert_ne!(count, 0, "it ended without {words:?}: {seen:?}");
        seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    seen
}

async fn terminal(lab: &Lab, way: &[(&str, &str)]) {
    // A second later the window is made another size, while the program runs.
    let before = "stty rows 33 cols 101; (sleep 2; stty -F /dev/tty rows 44 cols 132) &";
    let program = "tty; stty size; until [ \"$(stty size)\" = \"44 132\" ]; do sleep 0.2; done; echo resized; read x; echo got $x; exit 5";
    let mut child = in_terminal(lab, way, before, &format!("exec -it a -- sh -c '{program}'"));
    let mut keys = child.stdin.take().unwrap();
    let mut screen = child.stdout.take().unwrap();
    let mut seen = read_until(&mut screen, "33 101").await;
    assert!(seen.contains("/dev/pts/"), "{seen:?}");
    if !seen.contains("resized") {
        seen.push_str(&read_until(&mut screen, "resized").await);
    }
    keys.write_all(b"typed\r").await.unwrap();
    let mut rest = String::new();
    timeout(PATIENCE, screen.read_to_string(&mut rest)).await.unwrap().unwrap();
    assert!(rest.contains("got typed"), "{seen:?} {rest:?}");
    let status = timeout(PATIENCE, child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(5), "{rest:?}");
}

async fn attach(lab: &Lab, way: &[(&str, &str)]) {
    let mut child = lab.spawn_with(way, &["attach", "-i", "a"]);
    let mut keys = child.stdin.take().unwrap();
    keys.write_all(b"hello\n").await.unwrap();
    let mut screen = child.stdout.take().unwrap();
    let (mut seen, mut buffer) = (String::new(), [0; 256]);
    while !seen.contains("console heard hello") {
        let count = timeout(PATIENCE, screen.read(&mut buffer)).await;
        let count = count.unwrap_or_else(|_| panic!("{seen:?}")).unwrap();
        assert_ne!(count, 0, "it ended: {seen:?}");
        seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    child.kill().await.unwrap();
}

async fn port_forward(lab: &Lab, way: &[(&str, &str)]) {
    // The VM's address is of the loopback network, so that what listens there is in the VM.
    let vm: serde_json::Value =
        serde_json::from_str(&lab.kubectl().stdout(&["get", "pod", "a", "-o", "json"])).unwrap();
    let address = vm["status"]["podIP"].as_str().unwrap().to_owned();
    let server = TcpListener::bind((address.as_str(), 0)).await.unwrap();
    let port = server.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        while let Ok((mut connection, _)) = server.accept().await {
            tokio::spawn(async move {
                let mut heard = Vec::new();
                connection.read_to_end(&mut heard).await.unwrap();
                heard.reverse();
                connection.write_all(&heard).await.unwrap();
            });
        }
    });
    let ports = [format!(":{port}"), ":1".to_owned()];
    let mut child = lab.spawn_with(way, &["port-forward", "a", &ports[0], &ports[1]]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut local = Vec::new();
    while local.len() < 2 {
        let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
        // "Forwarding from 127.0.0.1:41234 -> 80"
        if let Some(at) = line.strip_prefix("Forwarding from 127.0.0.1:") {
            local.push(at.split(' ').next().unwrap().parse::<u16>().unwrap());
        }
    }
    // Several at once, each whole.
    let good = local[0];
    let talks = (0..8_u8).map(|number| async move {
        let mut connection = TcpStream::connect(("127.0.0.1", good)).await.unwrap();
        let sent: Vec<u8> =
            (0..200_000_u32).map(|n| number.wrapping_add(n.to_le_bytes()[0])).collect();
        connection.write_all(&sent).await.unwrap();
        connection.shutdown().await.unwrap();
        let mut heard = Vec::new();
        timeout(PATIENCE, connection.read_to_end(&mut heard)).await.unwrap().unwrap();
        heard.reverse();
        assert!(heard == sent, "connection {number}: {} of {}", heard.len(), sent.len());
    });
    futures_util::future::join_all(talks).await;
    // Nobody listens there, and kubectl says so.
    let mut refused = TcpStream::connect(("127.0.0.1", local[1])).await.unwrap();
    refused.write_all(b"x").await.unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = timeout(PATIENCE, errors.next_line()).await.unwrap().unwrap().unwrap();
    assert!(line.contains("error forwarding port 1 to pod a"), "{line}");
    child.kill().await.unwrap();
    serving.abort();
}

type Channel = WebSocketStream<tokio_rustls::client::TlsStream<TcpStream>>;

/// Asks the node itself, as somebody with the administrator's certificate.
async fn open(lab: &Lab, path: &str, protocol: &str) -> Channel {
    let file = |name: &str| lab.cluster.certificates().join(name);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file("ca.crt")).unwrap()).unwrap();
    let chain = vec![CertificateDer::from_pem_file(file("admin.crt")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(file("admin.key")).unwrap();
    let tls = rustls::ClientConfig::builder().with_root_certificates(roots);
    let tls = tls.with_client_auth_cert(chain, key).unwrap();
    let tcp = TcpStream::connect(("127.0.0.1", lab.port)).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(tls));
    let stream = connector.connect("127.0.0.1".try_into().unwrap(), tcp).await.unwrap();
    let url = format!("wss://127.0.0.1:{}{path}", lab.port);
    let mut request = url.into_client_request().unwrap();
    request.headers_mut().insert("sec-websocket-protocol", protocol.parse().unwrap());
    let (socket, answer) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    assert_eq!(answer.headers()["sec-websocket-protocol"], protocol);
    socket
}

/// A piece of a channel, as its protocol writes it.
fn framed(protocol: &str, channel: u8, data: &[u8]) -> Message {
    if protocol.contains("base64") {
        return Message::text(format!("{channel}{}", STANDARD.encode(data)));
    }
    Message::binary([&[channel], data].concat())
}

/// What came on each channel, until the node has nothing more to say.
async fn heard(socket: &mut Channel, protocol: &str) -> BTreeMap<u8, Vec<u8>> {
    let mut all: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
    while let Some(Ok(message)) = timeout(PATIENCE, socket.next()).await.unwrap() {
        if !message.is_text() && !message.is_binary() {
            continue;
        }
        let data = message.into_data();
        let Some((channel, data)) = data.split_first() else { continue };
        if protocol.contains("base64") {
            all.entry(channel - b'0').or_default().extend(STANDARD.decode(data).unwrap());
        } else {
            all.entry(*channel).or_default().extend(data);
        }
    }
    all
}

/// Older clients speak in channels: what `kubectl` does not use any more.
async fn channels(lab: &Lab) {
    let command =
        "command=sh&command=-c&command=read%20x;echo%20got%20$x;echo%20oh%20%3E%262;exit%206";
    let path = format!("/exec/default/a/agent?{command}&input=1&output=1&error=1");
    for protocol in ["v4.channel.k8s.io", "v4.base64.channel.k8s.io"] {
        let mut socket = open(lab, &path, protocol).await;
        socket.send(framed(protocol, 0, b"from here\n")).await.unwrap();
        let all = heard(&mut socket, protocol).await;
        assert_eq!(String::from_utf8_lossy(&all[&1]), "got from here\n", "{protocol}");
        assert_eq!(String::from_utf8_lossy(&all[&2]), "oh\n", "{protocol}");
        let status: serde_json::Value = serde_json::from_slice(&all[&3]).unwrap();
        assert_eq!(status["details"]["causes"][0]["message"], "6", "{protocol}: {status}");
    }
    let path = ["get", "pod", "a", "-o", "jsonpath={.status.podIP}"];
    let server = TcpListener::bind((lab.kubectl().stdout(&path), 0)).await.unwrap();
    let port = server.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        while let Ok((mut connection, _)) = server.accept().await {
            let mut line = [0; 5];
            connection.read_exact(&mut line).await.unwrap();
            line.reverse();
            connection.write_all(&line).await.unwrap();
        }
    });
    for protocol in ["v4.channel.k8s.io", "v4.base64.channel.k8s.io"] {
        let path = format!("/portForward/default/a?port={port}&port=1");
        let mut socket = open(lab, &path, protocol).await;
        socket.send(framed(protocol, 0, b"hello")).await.unwrap();
        let all = heard(&mut socket, protocol).await;
        // Each channel begins with its port.
        assert_eq!(all[&0], [&port.to_le_bytes()[..], b"olleh"].concat(), "{protocol}");
        assert_eq!(all[&1], port.to_le_bytes(), "{protocol}: nothing went wrong");
        let refused = String::from_utf8_lossy(&all[&3][2..]).into_owned();
        assert!(refused.contains("error forwarding port 1 to pod a"), "{protocol}: {refused}");
    }
    serving.abort();
}

async fn copy(lab: &Lab) {
    let content = "a line of a file\n".repeat(20_000);
    let here = lab.kubectl().file("sent.txt", &content);
    let said = lab.run(&["cp", &here, "a:received.txt"], "").await;
    assert_eq!(said.code, 0, "{said:?}");
    let there = lab.vm_folder().join("root/received.txt");
    assert!(std::fs::read_to_string(there).unwrap() == content);
    let back = lab.kubectl().file("back.txt", "");
    let said = lab.run(&["cp", "a:received.txt", &back], "").await;
    assert_eq!(said.code, 0, "{said:?}");
    assert!(std::fs::read_to_string(back).unwrap() == content);
}

/// A guest without a daemon for programs: it is said how to reach it.
async fn windows(lab: &Lab) {
    let container = serde_json::json!({"name": "agent", "image": "pause"});
    lab.run_pod_as("windows", "https://images.test/win.qcow2", "w", container).await;
    let path = ["get", "pod", "w", "-o", "jsonpath={.status.podIP}"];
    let address = lab.kubectl().stdout(&path);
    let said = lab.run(&["exec", "w", "--", "cmd", "/c", "ver"], "").await;
    let help = "kubectl exec is not supported on Windows guests. Connect via RDP to";
    assert_eq!(said.stdout, format!("vk-cocoon: {help} {address}.\n"), "{said:?}");
    assert_eq!(said.code, 0);
    let folder = lab.vm_folder_of("vk-default-w");
    std::fs::remove_file(folder.join("console.log")).unwrap();
    let said = lab.run(&["logs", "w"], "").await;
    let help = "kubectl logs is not supported on Windows guests; connect via RDP to";
    assert_eq!(said.stdout, format!("vk-cocoon: {help} {address}\n"), "{said:?}");

    // With the daemon, commands reach the guest as they are: there is no shell of Linux to make a terminal.
    std::fs::write(folder.join("daemon"), "").unwrap();
    let said =
        lab.run(&["exec", "w", "--", "sh", "-c", "echo out; echo err >&2; exit 3"], "").await;
    assert_eq!((said.code, said.stdout.as_str()), (3, "out\n"), "{said:?}");
    assert!(said.stderr.starts_with("err\n"), "{said:?}");
    for way in WAYS {
        let program = "exec -it w -- sh -c 'tty; echo err >&2; read x; echo got $x; exit 5'";
        let mut child = in_terminal(lab, way, "", program);
        let mut keys = child.stdin.take().unwrap();
        let mut screen = child.stdout.take().unwrap();
        let mut seen = read_until(&mut screen, "err").await;
        keys.write_all(b"typed\r").await.unwrap();
        let mut rest = String::new();
        timeout(PATIENCE, screen.read_to_string(&mut rest)).await.unwrap().unwrap();
        seen.push_str(&rest);
        assert!(seen.contains("not a tty") && seen.contains("got typed"), "{seen:?}");
        assert!(!seen.contains("script"), "{seen:?}");
        let status = timeout(PATIENCE, child.wait()).await.unwrap().unwrap();
        assert_eq!(status.code(), Some(5), "{seen:?}");
    }
    let said = lab.run(&["delete", "pod", "w", "--grace-period=1", "--timeout=100s"], "").await;
    assert_eq!(said.code, 0, "{said:?}");
}

async fn disconnect(lab: &Lab) {
    for way in WAYS {
        let mut child = lab.spawn_with(way, &["exec", "a", "--", "sleep", "86123"]);
        until("the program runs", || lab.is_running("86123")).await;
        child.kill().await.unwrap();
        until("a program ends with its client", || !lab.is_running("86123")).await;
    }
}

async fn strangers(lab: &Lab) {
    let kubectl = lab.kubectl();
    kubectl.stdout(&["create", "serviceaccount", "guest"]);
    kubectl.stdout(&["create", "serviceaccount", "reader"]);
    kubectl.stdout(&[
        "create",
        "clusterrole",
        "stats",
        "--verb=get",
        "--resource=nodes/metrics,nodes/proxy,nodes/stats",
    ]);
    kubectl.stdout(&[
        "create",
        "clusterrolebinding",
        "stats",
        "--clusterrole=stats",
        "--serviceaccount=default:reader",
    ]);
    let token = |name: &str| kubectl.stdout(&["create", "token", name]).trim().to_owned();
    let (guest, reader) = (token("guest"), token("reader"));
    let authority = std::fs::read(lab.cluster.certificates().join("ca.crt")).unwrap();
    let http = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([reqwest::Certificate::from_pem(&authority).unwrap()])
        .build()
        .unwrap();
    let get = async |path: &str, token: Option<&str>| {
        let request = http.get(format!("https://127.0.0.1:{}{path}", lab.port));
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    for path in ["/pods", "/metrics", "/healthz", "/containerLogs/default/a/agent", "/nonsense"] {
        assert_eq!(get(path, None).await.0, 401, "{path}");
        assert_eq!(get(path, Some("nonsense")).await.0, 401, "{path}");
        assert_eq!(get(path, Some(&guest)).await.0, 403, "{path}");
    }
    assert_eq!(get("/healthz", Some(&reader)).await, (200, "ok".to_owned()));
    let (status, pods) = get("/pods", Some(&reader)).await;
    assert!(status == 200 && pods.contains("vk-default-a"), "{pods}");
    assert_eq!(get("/runningpods/", Some(&reader)).await.0, 200);
    let (status, metrics) = get("/metrics", Some(&reader)).await;
    assert!(status == 200 && metrics.contains("vm_table_size 1"), "{metrics}");
    assert!(metrics.contains("vk_cocoon_vm_cpu_seconds_total{vm=\"vk-default-a\""), "{metrics}");
    let (status, text) = get("/stats/summary", Some(&reader)).await;
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, summary["node"]["nodeName"].as_str()), (200, Some("vnode")), "{text}");
    assert_eq!(summary["pods"][0]["podRef"]["name"], "a");
    assert!(summary["pods"][0]["memory"]["workingSetBytes"].as_u64().unwrap() > 0, "{text}");
    let (status, text) = get("/metrics/resource", Some(&reader)).await;
    let line =
        r#"container_memory_working_set_bytes{namespace="default",pod="a",container="agent"}"#;
    assert!(status == 200 && text.contains(line), "{text}");
    assert_eq!(get("/nonsense", Some(&reader)).await.0, 404);
    assert_eq!(get("/containerLogs/default/b/agent", Some(&reader)).await.0, 404);
    let exec = http
        .post(format!("https://127.0.0.1:{}/exec/default/a/agent?command=id&output=1", lab.port));
    let answer = exec.bearer_auth(&reader).header("upgrade", "SPDY/3.1").send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 403, "reading is not creating");
}
