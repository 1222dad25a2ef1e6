use std::time::Duration;

use roost_cds::{CallError, LaunchScript, Secret};
use roost_fleet::{Hold, MachineError, Pauses, VmId};
use roost_vim::{Exit, GuestCredentials, Process, Program};

use crate::config::{self, GuestLogin, GuestOf};
use crate::door::phase;
use crate::model::WorkerModel;
use crate::planted::{self, Bug};
use crate::run::context::Context;

/// A program that does nothing, and behind it what is meant: tools hand path and arguments to a shell as one text.
const ECHO: &str = "/bin/echo";
const BEHIND: &str = "-n ;";
const PROBE: &str = "env";
/// For how long a launch whose answer was lost is looked for in the guest.
const LOOKING: Duration = Duration::from_secs(20);

/// Why nobody can log in to a guest.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoginError {
    #[error("the guests' login")]
    Config(#[from] config::GuestLoginError),
    #[error("reading the secrets of model {model}")]
    Secrets { model: String, source: CallError },
}

/// A launch that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Launch {
    Running {
        pid: i64,
    },
    /// The answer was lost, and the guest did not show the program yet. It may run; it is not sent again.
    Unsure,
}

/// What a guest shows of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaunchSeen {
    Absent,
    Running { pid: i64 },
    Ended(Exit),
}

impl LaunchSeen {
    /// One that runs outweighs those that have ended.
    fn of<'a>(processes: impl Iterator<Item = &'a Process>) -> Self {
        let mut seen = Self::Absent;
        for process in processes {
            match process.exit {
                None => return Self::Running { pid: process.pid },
                Some(exit) => seen = Self::Ended(exit),
            }
        }
        seen
    }
}

/// The program that starts a worker, with its configuration in the environment.
pub(crate) fn launch_program(
    script: &LaunchScript,
    environment: impl IntoIterator<Item = (String, Secret)>,
) -> Program {
    let variables = environment.into_iter().map(|(name, value)| (name, value.expose().to_owned()));
    Program::new(ECHO, format!("{BEHIND}{}", script.text().expose()))
        .with_environment(variables.collect())
}

/// Whether a command line is that of a launch. Whatever is behind the empty echo is one, except for the probe: also what another version of
/// a hatchery sent, so that nothing is launched twice.
fn is_launch(command_line: &str) -> bool {
    let behind = command_line.split_once(ECHO).and_then(|(_, rest)| rest.split_once(BEHIND));
    behind.is_some_and(|(_, script)| script.trim() != PROBE)
}

impl Context {
    /// User and password for the guests of a template: from `models`, else from `guestCredentials`, else the worker model's own (D32).
    pub(crate) async fn guest_login(
        &self,
        template: &str,
        model: &WorkerModel,
    ) -> Result<GuestCredentials, LoginError> {
        let path = match model {
            WorkerModel::V1(model) => Some(model.path()),
            WorkerModel::V2(_) => None,
        };
        let of = GuestOf { template, model: path.as_ref(), own: None };
        let configured = self.config.guests.login(of, &*self.surroundings);
        let login = match configured {
            Err(config::GuestLoginError::None { .. }) => {
                let (user, password) = self.own_login(model).await?;
                let own = Some((user, &password));
                self.config.guests.login(GuestOf { own, ..of }, &*self.surroundings)?
            }
            other => other?,
        };
        let GuestLogin { user, password } = login;
        Ok(GuestCredentials::new(user, password.expose()))
    }

    /// What the model itself says, with the secrets of a V1 model filled in.
    async fn own_login<'m>(&self, model: &'m WorkerModel) -> Result<(&'m str, Secret), LoginError> {
        let (user, password) = model.guest_user();
        let password = match (model, self.cds.v1()) {
            (WorkerModel::V1(v1), Some(client)) => client
                .model_password(v1)
                .await
                .map_err(|source| LoginError::Secrets { model: model.display_name(), source })?,
            _ => password.clone(),
        };
        Ok((user, password))
    }

    /// Runs a first program in the guest, which refuses it for some seconds after it has booted. Harmless, so it is sent until it is answered.
    pub(crate) async fn probe(
        &self,
        work: &Hold,
        credentials: &GuestCredentials,
    ) -> Result<(), MachineError> {
        let program = Program::new(ECHO, format!("{BEHIND}{PROBE}"));
        self.machines.probe_guest(work, phase::PROBING, credentials, &program).await
    }

    /// Runs the operator's script and waits for its end; anything but exit code 0 is an error (D33, W18).
    pub(crate) async fn run_pre_start(
        &self,
        work: &Hold,
        machine: &str,
        credentials: &GuestCredentials,
        script: &str,
    ) -> Result<(), MachineError> {
        let (phase, program) = (phase::PREPARING, Program::bash(script));
        match self.machines.run_in_guest(work, phase, credentials, &program).await?.code {
            0 => Ok(()),
            code => Err(MachineError::Exit { phase, machine: machine.to_owned(), code }),
        }
    }

    /// Starts the worker's script. It is sent at most once: if the answer is lost the guest is asked for the program instead.
    pub(crate) async fn launch(
        &self,
        work: &Hold,
        credentials: &GuestCredentials,
        program: &Program,
    ) -> Result<Launch, MachineError> {
        let phase = phase::LAUNCHING;
        if planted::is(Bug::LaunchesAgain) {
            self.machines.start_in_guest(work, phase, credentials, program).await?;
        }
        match self.machines.start_in_guest(work, phase, credentials, program).await {
            Ok(pid) => Ok(Launch::Running { pid }),
            Err(MachineError::Overdue { .. }) => Ok(Launch::Unsure),
            Err(error) if error.outcome_unknown() => {
                Ok(self.find_launch(work.vm(), credentials).await)
            }
            Err(error) => Err(error),
        }
    }

    async fn find_launch(&self, vm: &VmId, credentials: &GuestCredentials) -> Launch {
        let mut pauses = Pauses::within(LOOKING);
        loop {
            match self.look_for_launch(vm, credentials).await {
                Ok(LaunchSeen::Running { pid }) => return Launch::Running { pid },
                Ok(LaunchSeen::Absent | LaunchSeen::Ended(_)) | Err(_) => {}
            }
            if !pauses.pause().await {
                return Launch::Unsure;
            }
        }
    }

    /// Looks once whether any launch runs in the guest, or has lately ended there.
    pub(crate) async fn look_for_launch(
        &self,
        vm: &VmId,
        credentials: &GuestCredentials,
    ) -> Result<LaunchSeen, MachineError> {
        let processes = self.machines.guest_processes(vm, phase::PROBING, credentials, &[]).await?;
        let launches = processes.iter().filter(|process| is_launch(&process.command_line));
        Ok(LaunchSeen::of(launches))
    }

    /// Looks once what became of a launch. A guest forgets a process some minutes after its end, and all of them at a restart.
    pub(crate) async fn look_at_launch(
        &self,
        vm: &VmId,
        credentials: &GuestCredentials,
        launch: Launch,
    ) -> Result<LaunchSeen, MachineError> {
        match launch {
            Launch::Running { pid } => {
                let phase = phase::REGISTERING;
                let processes =
                    self.machines.guest_processes(vm, phase, credentials, &[pid]).await?;
                Ok(LaunchSeen::of(processes.iter().filter(|process| process.pid == pid)))
            }
            Launch::Unsure => self.look_for_launch(vm, credentials).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_is_told_from_a_probe_and_from_what_others_run() {
        for (command_line, wanted) in [
            ("\"/bin/echo\" -n ;env", false),
            ("/bin/sh -c \"/bin/echo\" -n ;env ", false),
            ("\"/bin/echo\" -n ;#!/bin/sh\nworker 1>/tmp/worker.log 2>&1;", true),
            ("/bin/bash -c \"/bin/echo\" -n ;\nworker 1>/tmp/wor", true),
            ("/bin/bash -c 'resize2fs /dev/sda1'", false),
            ("/usr/sbin/sshd -D", false),
        ] {
            assert_eq!(is_launch(command_line), wanted, "{command_line}");
        }
    }

    #[test]
    fn a_launch_program_prints_neither_script_nor_configuration() {
        let config = roost_cds::WorkerConfig {
            api_token: "hunter2".into(),
            ..roost_cds::WorkerConfig::default()
        };
        let commands =
            roost_cds::Commands { cmd: "worker hunter2".into(), ..roost_cds::Commands::default() };
        let script = commands.script(roost_cds::Purpose::Job, &config).unwrap();
        let program = launch_program(&script, config.environment());
        assert_eq!(program.path, "/bin/echo");
        assert!(program.arguments.0.starts_with("-n ;\nworker hunter2 1>/tmp/worker.log 2>&1;"));
        let encoded = config.encode();
        let printed = format!("{program:?}");
        assert!(!printed.contains("hunter2") && !printed.contains(encoded.expose()));
    }
}
