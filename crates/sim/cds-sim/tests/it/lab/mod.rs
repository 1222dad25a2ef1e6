//! A hatchery's client on a simulated API, on paused time.

pub(crate) mod log;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use roost_cds::{
    CallError, Client, HatcheryKey, Registration, Secret, SendFuture, Settings, SocketFuture,
    Transport, V1Worker, V2Worker, WorkerConfig, v1, v2,
};
use roost_cds_sim::{CdsApi, Options, Timings, Worker, WorkerEnd, WorkerError, demo_hatchery_key};
use roost_clock::{Random, SimClock};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

pub(crate) const HATCHERY: &str = "hv1";
pub(crate) const TOKEN: &str = "consumer-token-7f3a";
pub(crate) const TOKEN_V2: &str = "hatchery-token-91bc";
pub(crate) const REGION: &str = "default";
pub(crate) const MODEL: &str = "PROJ/github/org/repo/debian12";

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) fn mins(mins: u64) -> Duration {
    Duration::from_mins(mins)
}

pub(crate) fn key() -> Arc<HatcheryKey> {
    Arc::new(HatcheryKey::parse(&demo_hatchery_key()).unwrap())
}

pub(crate) fn registration(name: &str) -> Registration {
    Registration {
        name: name.into(),
        http_url: "http://localhost:8086".into(),
        config: json!({"commonConfiguration": {"name": name}}),
        key: key(),
        region: None,
        ignore_job_with_no_region: false,
        os_arch: vec!["linux/amd64".into()],
        version: "0.57.0".into(),
    }
}

pub(crate) fn settings(name: &str) -> Settings {
    Settings {
        url: "http://cds.invalid".parse().unwrap(),
        request_timeout: Settings::REQUEST_TIMEOUT,
        token: Some(TOKEN.into()),
        token_v2: Some(TOKEN_V2.into()),
        registration: registration(name),
    }
}

pub(crate) struct Lab {
    pub(crate) api: CdsApi,
    pub(crate) clock: Arc<SimClock>,
    pub(crate) client: Client,
    pub(crate) sent: Arc<Recorder>,
    random: Random,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self::with(Options::new(1))
    }

    /// An API that does not delete services that are silent.
    pub(crate) fn without_need_of_heartbeats() -> Self {
        let timings = Timings { service_silence: mins(24 * 60), ..Timings::default() };
        Self::with(Options { timings, ..Options::new(1) })
    }

    /// Adds this lab's hatchery, a second one and a model to what the API knows.
    pub(crate) fn with(options: Options) -> Self {
        Self::of(options, settings(HATCHERY))
    }

    pub(crate) fn of(options: Options, settings: Settings) -> Self {
        let options = options
            .consumer(HATCHERY, TOKEN)
            .hatchery(HATCHERY, TOKEN_V2, REGION)
            .consumer("hv2", "other-consumer-token")
            .hatchery("hv2", "other-hatchery-token", REGION);
        let random = Random::from_seed(options.seed);
        let clock = Arc::new(SimClock::new());
        let api = CdsApi::start(options, clock.clone()).unwrap();
        let model = v2::Model {
            name: "debian12".into(),
            os_arch: "linux/amd64".into(),
            model_type: "vsphere".into(),
            spec: v2::ModelSpec(json!({"image": "debian12-template"})),
            ..v2::Model::default()
        };
        api.add_v2_model(&v2::AsCodePath::parse(MODEL).unwrap(), model);
        let sent = Arc::new(Recorder { api: api.clone(), requests: Mutex::default() });
        let client = Client::new(settings, sent.clone(), clock.clone()).unwrap();
        Self { api, clock, client, sent, random }
    }

    /// The client of the second hatchery on the same API.
    pub(crate) fn other(&self) -> Client {
        let settings = Settings {
            token: Some("other-consumer-token".into()),
            token_v2: Some("other-hatchery-token".into()),
            ..settings("hv2")
        };
        Client::new(settings, Arc::new(self.api.clone()), self.clock.clone()).unwrap()
    }

    pub(crate) fn v1(&self) -> &v1::Client {
        self.client.v1().unwrap()
    }

    pub(crate) fn v2(&self) -> &v2::Client {
        self.client.v2().unwrap()
    }

    /// Starts a worker as a guest would, with what a hatchery passes to it.
    pub(crate) fn start(
        &self,
        config: &WorkerConfig,
    ) -> JoinHandle<Result<WorkerEnd, WorkerError>> {
        let exposed = |(name, value): (String, Secret)| (name, value.expose().to_owned());
        let env: BTreeMap<_, _> = config.environment().into_iter().map(exposed).collect();
        let worker = Worker::from_env(&env, Arc::new(self.api.clone()), self.clock.clone());
        tokio::spawn(worker.unwrap().run())
    }

    pub(crate) fn v1_config(&mut self, worker: V1Worker) -> WorkerConfig {
        let (name, booked_job_id) = (worker.name.clone(), worker.job_id);
        let hatchery_name = worker.hatchery_name.clone();
        let now = roost_clock::Clock::now(&*self.clock);
        WorkerConfig {
            name,
            hatchery_name,
            api_endpoint: "http://cds.invalid".into(),
            api_token: worker.token(self.random.uuid(), now, &key()).unwrap(),
            booked_job_id,
            ..WorkerConfig::default()
        }
    }

    pub(crate) fn v1_worker(&mut self, name: &str, job: i64) -> WorkerConfig {
        self.v1_worker_of(HATCHERY, name, job)
    }

    pub(crate) fn v1_worker_of(&mut self, hatchery: &str, name: &str, job_id: i64) -> WorkerConfig {
        let (name, hatchery_name) = (name.into(), hatchery.into());
        self.v1_config(V1Worker { name, job_id, hatchery_name, ..V1Worker::default() })
    }

    pub(crate) fn v2_worker(&mut self, name: &str, job: &str) -> WorkerConfig {
        let now = roost_clock::Clock::now(&*self.clock);
        let worker = V2Worker {
            name: name.into(),
            model_name: MODEL.into(),
            run_job_id: job.into(),
            hatchery_name: HATCHERY.into(),
        };
        WorkerConfig {
            name: name.into(),
            hatchery_name: HATCHERY.into(),
            api_endpoint: "http://cds.invalid".into(),
            api_token: worker.token(self.random.uuid(), now, &key()).unwrap(),
            run_job_id: job.into(),
            region: REGION.into(),
            ..WorkerConfig::default()
        }
    }
}

/// What went over the seam.
pub(crate) struct Recorder {
    api: CdsApi,
    requests: Mutex<Vec<Seen>>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Recorder")
    }
}

#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Bytes,
}

impl Recorder {
    fn note<T>(&self, request: &http::Request<T>, body: Bytes) {
        let line = format!("{} {}", request.method(), request.uri());
        let seen = Seen { line, headers: request.headers().clone(), body };
        self.requests.lock().unwrap().push(seen);
    }

    /// All requests whose line contains this.
    pub(crate) fn requests(&self, part: &str) -> Vec<Seen> {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|seen| seen.line.contains(part)).cloned().collect()
    }
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Transport for Recorder {
    fn send(&self, request: http::Request<Bytes>) -> SendFuture {
        self.note(&request, request.body().clone());
        self.api.send(request)
    }

    fn websocket(&self, request: http::Request<()>) -> SocketFuture {
        self.note(&request, Bytes::new());
        Transport::websocket(&self.api, request)
    }
}

/// An error and all its causes on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    roost_supervise::Chain(error).to_string()
}

pub(crate) fn io_kind(error: &CallError) -> Option<io::ErrorKind> {
    match error {
        CallError::Transport { source, .. } => Some(source.kind()),
        _ => None,
    }
}
