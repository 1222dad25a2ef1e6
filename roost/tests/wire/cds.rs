use serde_json::{Value, json};

use super::{Control, Process, Site, roost};

/// `roost sim cds` with its control endpoint.
#[derive(Debug)]
pub(crate) struct CdsSim {
    pub(crate) process: Process,
    pub(crate) control: Control,
}

impl CdsSim {
    pub(crate) fn start(site: &Site, args: &[&str]) -> Self {
        let mut command = roost(&["sim", "cds", "--listen", "127.0.0.1:0", "--seed", "7"]);
        command.arg("--control").args(args);
        let process = Process::start(command, &site.file("sim-cds.log"), "Ctrl-C");
        let control = Control::new(process.line("Control endpoint: "));
        Self { process, control }
    }

    pub(crate) fn url(&self) -> &str {
        self.process.word("http://")
    }

    /// What it printed for a hatchery.
    pub(crate) fn toml(&self) -> String {
        let said = self.process.line_on("[hatchery.vsphere.commonConfiguration]");
        let end = said.find("Workers run in guests").unwrap();
        said[..end].to_owned()
    }

    /// Queues a job on the model of the template `debian12`, or as `more` says.
    pub(crate) async fn add_job(&self, protocol: &str, more: &Value) -> String {
        let mut demand = json!({
            "protocol": protocol,
            "model": "DEMO/github/roost/models/debian12",
            "takes_ms": 200,
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            demand[name] = value.clone();
        }
        self.control.post("jobs", &demand).await["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn job(&self, id: &str) -> Value {
        self.control.get(&format!("jobs/{id}")).await
    }

    pub(crate) async fn status(&self, id: &str) -> String {
        self.job(id).await["status"].as_str().unwrap().to_owned()
    }

    /// `waiting`, `running`, `done`, `failed` and so on.
    pub(crate) async fn count(&self, what: &str) -> u64 {
        self.control.get("summary").await[what].as_u64().unwrap()
    }
}
