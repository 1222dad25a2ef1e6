use std::time::Duration;

use jiff::Timestamp;
use roost_supervise::Backoff;
use roost_vim_wire::methods::{
    ListProcessesInGuest, ReadEnvironmentVariableInGuest, StartProgramInGuest,
    TerminateProcessInGuest,
};
use roost_vim_wire::types::GuestProcessInfo;
use tokio::time::Instant;

use super::error::{GuestError, GuestStep};
use super::program::Program;
use super::{Guest, GuestObserver};
use crate::{CallClass, Faulted, Remedy};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    pub at: Timestamp,
    pub code: i32,
}

/// A process in a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: i64,
    pub name: String,
    pub owner: String,
    pub command_line: String,
    pub started: Timestamp,
    /// `None` while it runs.
    pub exit: Option<Exit>,
}

impl From<GuestProcessInfo> for Process {
    fn from(info: GuestProcessInfo) -> Self {
        // A server may leave out an exit code of 0; that the process has ended is said by the time.
        let exit = info.end_time.map(|at| Exit { at, code: info.exit_code.unwrap_or_default() });
        Self {
            pid: info.pid,
            name: info.name,
            owner: info.owner,
            command_line: info.cmd_line,
            started: info.start_time,
            exit,
        }
    }
}

/// The API has no way to be told of a process's end. Well below the minutes for which a guest remembers it.
const POLL: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(10));

impl GuestObserver {
    /// The processes with these ids, or all. Those that the guest started for us stay listed for some minutes after their end.
    pub async fn processes(&self, pids: &[i64]) -> Result<Vec<Process>, GuestError> {
        let call = self.list_call(pids);
        Ok(self
            .read(GuestStep::ListProcesses, &call)
            .await?
            .into_iter()
            .map(Process::from)
            .collect())
    }

    fn list_call(&self, pids: &[i64]) -> ListProcessesInGuest {
        ListProcessesInGuest {
            this: self.managers.process_manager.clone(),
            vm: self.vm.clone(),
            auth: self.credentials.to_wire(),
            pids: pids.to_vec(),
        }
    }

    /// Waits for a process to end.
    pub async fn wait_for_exit(&self, pid: i64, deadline: Instant) -> Result<Exit, GuestError> {
        let (started, mut looks) = (Instant::now(), 0);
        loop {
            let call = self.list_call(&[pid]);
            match self.observer.read_as(CallClass::Guest, &call).await {
                Ok(list) => {
                    let process =
                        list.into_iter().map(Process::from).find(|process| process.pid == pid);
                    let forgotten = || GuestError::ProcessForgotten { vm: self.vm.clone(), pid };
                    if let Some(exit) = process.ok_or_else(forgotten)?.exit {
                        return Ok(exit);
                    }
                }
                // Tools restart, hosts stop answering; the process does not care. A VM that is off has none.
                Err(error)
                    if matches!(error.remedy(), Remedy::Wait | Remedy::Retry)
                        && !error.is_fault("InvalidPowerState") =>
                {
                    tracing::debug!(vm = %self.vm, pid, "looking for process {pid} failed: {error}");
                }
                Err(source) => {
                    return Err(GuestError::Call {
                        step: GuestStep::ListProcesses,
                        vm: self.vm.clone(),
                        source,
                    });
                }
            }
            looks += 1;
            if Instant::now() >= deadline {
                return Err(GuestError::StillRunning {
                    vm: self.vm.clone(),
                    pid,
                    after: started.elapsed(),
                });
            }
            tokio::time::sleep_until((Instant::now() + POLL.pause(looks)).min(deadline)).await;
        }
    }

    /// Variables of the user's environment in the guest as `NAME=value`; all of them if none is named.
    pub async fn read_environment(&self, names: &[&str]) -> Result<Vec<String>, GuestError> {
        let call = ReadEnvironmentVariableInGuest {
            this: self.managers.process_manager.clone(),
            vm: self.vm.clone(),
            auth: self.credentials.to_wire(),
            names: names.iter().map(|name| (*name).into()).collect(),
        };
        self.read(GuestStep::ReadEnvironment, &call).await
    }
}

impl Guest {
    /// Starts a program and returns its process id, without waiting for its end. Not repeated after a lost reply: it would run
    /// twice.
    pub async fn start(&self, program: &Program) -> Result<i64, GuestError> {
        let spec = program
            .to_wire(self.credentials.user())
            .map_err(|source| GuestError::Environment { vm: self.vm.clone(), source })?;
        let call = StartProgramInGuest {
            this: self.managers.process_manager.clone(),
            vm: self.vm.clone(),
            auth: self.credentials.to_wire(),
            spec,
        };
        self.change(GuestStep::StartProgram, &call).await
    }

    /// Starts a program and waits for its end.
    pub async fn run(&self, program: &Program, deadline: Instant) -> Result<Exit, GuestError> {
        let pid = self.start(program).await?;
        self.wait_for_exit(pid, deadline).await
    }

    /// Ends a process. Succeeds when it has ended, also if it had before.
    pub async fn terminate(&self, pid: i64) -> Result<(), GuestError> {
        let call = TerminateProcessInGuest {
            this: self.managers.process_manager.clone(),
            vm: self.vm.clone(),
            auth: self.credentials.to_wire(),
            pid,
        };
        match self.change(GuestStep::Terminate, &call).await {
            Err(error) if error.is_fault("GuestProcessNotFound") => Ok(()),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_an_end_but_no_code_has_ended_well() {
        let info =
            |end_time, exit_code| GuestProcessInfo { end_time, exit_code, ..Default::default() };
        let at = Timestamp::UNIX_EPOCH;
        assert_eq!(Process::from(info(None, None)).exit, None);
        assert_eq!(Process::from(info(Some(at), None)).exit, Some(Exit { at, code: 0 }));
        assert_eq!(Process::from(info(Some(at), Some(3))).exit, Some(Exit { at, code: 3 }));
    }
}
