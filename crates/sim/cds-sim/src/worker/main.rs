use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use roost_cds::{HttpSettings, HttpTransport, Secret, WorkerConfig};
use roost_clock::SystemClock;
use roost_supervise::Chain;

use super::{Worker, WorkerEnd, WorkerError};

/// What a shell says of a program that was killed.
const KILLED: u8 = 137;

/// The worker as a program: reads `CDS_CONFIG` from `env`, talks to the API over the network, and gives the exit code. What went
/// wrong goes to standard error, which launch scripts send into a file.
pub fn worker_main(env: &BTreeMap<String, String>) -> u8 {
    match run(env) {
        Ok(WorkerEnd::Died) => KILLED,
        Ok(_) => 0,
        Err(error) => {
            eprintln!("worker: {}", Chain(&*error));
            1
        }
    }
}

fn run(env: &BTreeMap<String, String>) -> Result<WorkerEnd, Box<dyn Error>> {
    let value = env.get(WorkerConfig::VARIABLE).ok_or(WorkerError::NoConfig)?;
    let config = WorkerConfig::decode(&Secret::from(value.as_str()))?;
    let settings = HttpSettings { insecure: config.api_endpoint_insecure, ca_file: None };
    let transport = Arc::new(HttpTransport::new(&settings)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(Worker::new(config, transport, Arc::new(SystemClock))?.run())?)
}
