use super::template::{self, Value};
use super::{ScriptError, WorkerConfig};
use crate::{Secret, v1};

/// The three commands of a worker model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commands {
    pub pre_cmd: String,
    pub cmd: String,
    pub post_cmd: String,
}

/// For which system the guest downloads its worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OsArch {
    /// As the model says, such as `linux/amd64`.
    Of(String),
    /// The guest knows best: a V1 job on a V2 model.
    AskGuest,
}

/// What the worker is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    Job,
    /// To show what a V1 model can do.
    Registration,
}

impl Purpose {
    fn suffix(self) -> &'static str {
        match self {
            Self::Job => " 1>/tmp/worker.log 2>&1;",
            Self::Registration => " register 1>/tmp/worker.register.log 2>&1",
        }
    }
}

/// A script that is ready to be run in a guest. It may hold the worker's token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchScript(Secret);

impl LaunchScript {
    pub fn text(&self) -> &Secret {
        &self.0
    }
}

impl From<&v1::VirtualMachine> for Commands {
    fn from(machine: &v1::VirtualMachine) -> Self {
        let (pre_cmd, cmd) = (machine.pre_cmd.clone(), machine.cmd.clone());
        Self { pre_cmd, cmd, post_cmd: machine.post_cmd.clone() }
    }
}

impl Commands {
    /// The commands of a V2 model, which has none of its own: download the worker, run it, shut down.
    pub fn for_v2_model(os_arch: &OsArch) -> Self {
        let os_arch = match os_arch {
            OsArch::Of(os_arch) => os_arch,
            OsArch::AskGuest => "linux/$(uname -m)",
        };
        Self {
            pre_cmd: DOWNLOAD.replace("OS_ARCH", os_arch),
            cmd: "PATH=$PATH worker".to_owned(),
            post_cmd: "sudo shutdown -h now".to_owned(),
        }
    }

    /// Puts the commands together and fills in their fields.
    pub fn script(
        &self,
        purpose: Purpose,
        config: &WorkerConfig,
    ) -> Result<LaunchScript, ScriptError> {
        let Self { pre_cmd, cmd, post_cmd } = self;
        let text = format!("{pre_cmd}\n{cmd}{}\n{post_cmd}", purpose.suffix());
        let encoded = config.encode();
        let rendered =
            template::render(&text, |name| field(name, &config.api_endpoint, encoded.expose()))?;
        Ok(LaunchScript(Secret::new(rendered)))
    }
}

/// The fields that scripts may name. Only three of them say anything; the others are of former versions and zero.
fn field<'a>(name: &str, api: &'a str, config: &'a str) -> Option<Value<'a>> {
    Some(match name {
        "API" => Value::Text(api),
        "FromWorkerImage" => Value::Bool(true),
        "Config" => Value::Text(config),
        "Token" | "Name" | "BaseDir" | "Model" | "HatcheryName" | "GraylogHost"
        | "GraylogExtraKey" | "GraylogExtraValue" | "WorkerBinary" => Value::Text(""),
        "HTTPInsecure" => Value::Bool(false),
        "WorkflowJobID" | "TTL" | "GraylogPort" => Value::Number(0),
        "InjectEnvVars" => Value::EmptyMap,
        _ => return None,
    })
}

const DOWNLOAD: &str = r#"#!/bin/sh
worker_url="{{.API}}/download/worker/OS_ARCH"
if command -v curl >/dev/null 2>&1; then
  curl -L --retry 10 --retry-max-time 120 "$worker_url" -o /usr/local/bin/worker >>/tmp/cds-worker-setup.log 2>&1
elif command -v wget >/dev/null 2>&1; then
  wget --tries=10 --timeout=120 "$worker_url" -O /usr/local/bin/worker >>/tmp/cds-worker-setup.log 2>&1
else
  echo "neither curl nor wget is there to download the worker" >>/tmp/cds-worker-setup.log
  exit 1
fi
chmod +x /usr/local/bin/worker"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> WorkerConfig {
        WorkerConfig {
            name: "keen-bohr".into(),
            api_endpoint: "http://api".into(),
            api_token: "hunter2".into(),
            // Makes `+` and `/` appear in the base64.
            base_dir: "~~~???>>>".into(),
            ..WorkerConfig::default()
        }
    }

    #[test]
    fn the_three_commands_and_the_suffix_are_put_together() {
        let commands = Commands {
            pre_cmd: "export CDS_CONFIG={{.Config}}".into(),
            cmd: "worker --api={{.API}}".into(),
            post_cmd: "echo {{.FromWorkerImage}}{{.Token}}{{.TTL}}".into(),
        };
        let encoded = config().encode();
        let script = commands.script(Purpose::Job, &config()).unwrap();
        assert_eq!(
            script.text().expose(),
            format!(
                "export CDS_CONFIG={}\nworker --api=http://api 1>/tmp/worker.log 2>&1;\necho true0",
                encoded.expose()
            )
        );
        let script = commands.script(Purpose::Registration, &config()).unwrap();
        let line = "\nworker --api=http://api register 1>/tmp/worker.register.log 2>&1\n";
        assert!(script.text().expose().contains(line));
    }

    #[test]
    fn a_configuration_is_not_corrupted_on_its_way_into_the_script() {
        let encoded = config().encode();
        assert!(encoded.expose().contains('+') && encoded.expose().contains('/'));
        let commands = Commands { pre_cmd: "{{.Config}}".into(), ..Commands::default() };
        let script = commands.script(Purpose::Job, &config()).unwrap();
        let line = script.text().expose().lines().next().unwrap();
        assert_eq!(WorkerConfig::decode(&line.into()).unwrap(), config());
    }

    #[test]
    fn every_documented_field_is_known_and_others_are_refused_by_name() {
        for name in "API Token Name BaseDir HTTPInsecure Model HatcheryName WorkflowJobID TTL FromWorkerImage GraylogHost \
            GraylogPort GraylogExtraKey GraylogExtraValue WorkerBinary InjectEnvVars Config"
            .split_whitespace()
        {
            assert!(field(name, "", "").is_some(), "{name}");
        }
        let commands = Commands { cmd: "worker {{.Hatchery}}".into(), ..Commands::default() };
        let error = commands.script(Purpose::Job, &config()).unwrap_err();
        assert!(error.to_string().contains("{{.Hatchery}}"), "{error}");
    }

    #[test]
    fn a_v2_model_downloads_its_worker() {
        let script = |os_arch| {
            let commands = Commands::for_v2_model(&os_arch);
            let script = commands.script(Purpose::Job, &config()).unwrap();
            script.text().expose().to_owned()
        };
        let amd64 = script(OsArch::Of("linux/amd64".into()));
        assert!(amd64.contains("http://api/download/worker/linux/amd64"));
        assert!(
            amd64.ends_with("\nPATH=$PATH worker 1>/tmp/worker.log 2>&1;\nsudo shutdown -h now")
        );
        assert!(script(OsArch::AskGuest).contains("/download/worker/linux/$(uname -m)"));
    }

    #[test]
    fn a_script_prints_nothing_of_itself() {
        let commands = Commands { pre_cmd: "{{.Config}}".into(), ..Commands::default() };
        let script = commands.script(Purpose::Job, &config()).unwrap();
        assert_eq!(format!("{script:?}"), "LaunchScript(Secret(***))");
    }
}
