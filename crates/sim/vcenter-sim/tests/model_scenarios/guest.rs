use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use roost_vcenter_sim::{
    AddressBehaviour, Credentials, GuestBehaviour, GuestEffect, GuestProgram, GuestReply, GuestRun,
    GuestWork, Options, Power, TemplateOptions,
};
use roost_vim_wire::methods::{
    CreateTemporaryFileInGuest, DeleteFileInGuest, InitiateFileTransferFromGuest,
    InitiateFileTransferToGuest, ListFilesInGuest, ListProcessesInGuest, MakeDirectoryInGuest,
    ReadEnvironmentVariableInGuest, TerminateProcessInGuest, ValidateCredentialsInGuest,
};
use roost_vim_wire::types::{GuestFileAttributes, GuestProcessInfo};
use roost_vim_wire::{Fault, MoRef};
use tokio::sync::Notify;

use crate::story::{Story, auth, options};

fn manager(kind: &str, id: &str) -> MoRef {
    MoRef::new(kind.into(), id)
}

fn processes() -> MoRef {
    manager("GuestProcessManager", "guestOperationsProcessManager")
}

fn files() -> MoRef {
    manager("GuestFileManager", "guestOperationsFileManager")
}

async fn ready(story: &Story) -> MoRef {
    let vm = story.worker("worker-1").await;
    story.until_ready("worker-1").await;
    vm
}

async fn list(story: &Story, vm: &MoRef, pid: i64) -> Result<Vec<GuestProcessInfo>, Fault> {
    let call = ListProcessesInGuest {
        this: processes(),
        vm: vm.clone(),
        auth: auth("root", "x"),
        pids: vec![pid],
    };
    story.client.call(call).await
}

async fn exit_code(story: &Story, vm: &MoRef, pid: i64) -> i32 {
    loop {
        let found = list(story, vm, pid).await.unwrap();
        match found[0].exit_code {
            Some(code) => return code,
            None => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_phases_of_a_boot_come_in_their_order() {
    let story = Story::start(options()).await;
    story.worker("worker-1").await;
    let phase = |story: &Story| {
        let vm = story.vm("worker-1");
        (vm.tools_running, vm.guest_operations_ready, vm.ip.is_some())
    };
    let mut seen = vec![phase(&story)];
    while !seen.last().unwrap().2 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if phase(&story) != *seen.last().unwrap() {
            seen.push(phase(&story));
        }
    }
    assert_eq!(
        seen,
        [(false, false, false), (true, false, false), (true, true, false), (true, true, true)]
    );
}

#[tokio::test(start_paused = true)]
async fn guests_can_be_told_to_misbehave() {
    let story = Story::start(options()).await;
    let wrong: IpAddr = "10.9.9.9".parse().unwrap();
    let normal = GuestBehaviour::default();
    for (index, (behaviour, tools, ready, ip)) in [
        (GuestBehaviour { boots: false, ..normal.clone() }, false, false, None),
        (GuestBehaviour { starts_tools: false, ..normal.clone() }, false, false, None),
        (
            GuestBehaviour {
                becomes_ready: false,
                address: AddressBehaviour::Never,
                ..normal.clone()
            },
            true,
            false,
            None,
        ),
        (
            GuestBehaviour { address: AddressBehaviour::Wrong(wrong), ..normal.clone() },
            true,
            true,
            Some(wrong),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        story.lab.vcenter.set_guest_behaviour("debian12", behaviour).unwrap();
        let name = format!("worker-{index}");
        story.worker(&name).await;
        tokio::time::sleep(Duration::from_hours(1)).await;
        let vm = story.vm(&name);
        assert_eq!(
            (vm.tools_running, vm.guest_operations_ready, vm.ip),
            (tools, ready, ip),
            "{name}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_customization_is_told() {
    let story = Story::start(options()).await;
    let failing = GuestBehaviour {
        customization_fails: Some("perl is missing".into()),
        ..Default::default()
    };
    story.lab.vcenter.set_guest_behaviour("debian12", failing).unwrap();
    let spec = roost_vim_wire::types::VirtualMachineCloneSpec {
        customization: Some(crate::story::customization(Some("10.0.0.5"))),
        power_on: true,
        ..story.linked().await
    };
    let vm = story.clone_vm("debian12", "worker-1", spec).await.unwrap();
    story.until_ready("worker-1").await;
    assert_ne!(story.vm("worker-1").ip.unwrap().to_string(), "10.0.0.5");
    assert!(story.events_of(&vm).contains(&"CustomizationFailed".to_owned()));
    let status = story.property(&vm, "guest.customizationInfo").await.unwrap();
    assert_eq!(status.get("errorMsg").unwrap().as_str(), Some("perl is missing"));
}

#[tokio::test(start_paused = true)]
async fn guest_operations_need_a_ready_guest_and_its_credentials() {
    let template = TemplateOptions {
        guest_credentials: Some(Credentials { user: "ci".into(), password: "pw".into() }),
        ..TemplateOptions::new("debian12")
    };
    let story = Story::start(Options { templates: vec![template], ..options() }).await;
    let vm = story.worker("worker-1").await;
    let validate = |user: &str, password: &str| {
        let this = manager("GuestAuthManager", "guestOperationsAuthManager");
        story.client.call(ValidateCredentialsInGuest {
            this,
            vm: vm.clone(),
            auth: auth(user, password),
        })
    };
    assert_eq!(validate("ci", "pw").await.unwrap_err().class, "GuestOperationsUnavailable");
    story.until_ready("worker-1").await;
    validate("ci", "pw").await.unwrap();
    assert_eq!(validate("ci", "wrong").await.unwrap_err().class, "InvalidGuestLogin");
    assert_eq!(validate("", "").await.unwrap_err().class, "InvalidGuestLogin");
    story.power_off(&vm).await.unwrap();
    assert_eq!(validate("ci", "pw").await.unwrap_err().class, "InvalidPowerState");
}

#[tokio::test(start_paused = true)]
async fn built_in_programs_print_take_time_and_exit() {
    let story = Story::start(options()).await;
    let vm = ready(&story).await;
    for (path, arguments, code, output) in [
        ("/bin/echo", "-n ;env", 0, "CDS=1\nPATH=/bin\n"),
        ("/bin/bash", "-c 'exit 3'", 3, ""),
        ("/bin/false", "", 1, ""),
        ("/opt/worker", "--register", 0, ""),
    ] {
        let pid = story.start_program(&vm, path, arguments, &["CDS=1", "PATH=/bin"]).await.unwrap();
        assert_eq!(exit_code(&story, &vm, pid).await, code, "{path} {arguments}");
        let seen = story
            .lab
            .vcenter
            .guest_processes("worker-1")
            .into_iter()
            .find(|process| process.pid == pid)
            .unwrap();
        assert_eq!(seen.output, output, "{path} {arguments}");
    }
    let pid = story.start_program(&vm, "/bin/sleep", "30", &[]).await.unwrap();
    assert_eq!(list(&story, &vm, pid).await.unwrap()[0].end_time, None);
    let start = tokio::time::Instant::now();
    exit_code(&story, &vm, pid).await;
    assert!(start.elapsed() >= Duration::from_secs(29));
    let programs = story.programs();
    assert_eq!(programs[0].variable("CDS"), Some("1"));
    tokio::time::sleep(Duration::from_mins(6)).await;
    assert!(
        list(&story, &vm, pid).await.unwrap().is_empty(),
        "ended programs are listed for five minutes"
    );
}

#[tokio::test(start_paused = true)]
async fn a_test_decides_what_programs_do() {
    let story = Story::start(options()).await;
    story.lab.vcenter.script_guests(|program: &GuestProgram| match program.path.as_str() {
        "/opt/job" => Some(
            GuestRun::exits(9)
                .after(Duration::from_mins(1))
                .printing("built")
                .then(GuestEffect::WriteFile { path: "/tmp/report".into(), content: "red".into() })
                .then(GuestEffect::PowerOff)
                .into(),
        ),
        "/opt/none" => Some(GuestReply::NotFound),
        "/opt/stuck" => Some(GuestRun::hangs().into()),
        _ => None,
    });
    let vm = ready(&story).await;
    let missing = story.start_program(&vm, "/opt/none", "", &[]).await.unwrap_err();
    assert_eq!((missing.class.as_str(), missing.text("file")), ("FileNotFound", Some("/opt/none")));
    let stuck = story.start_program(&vm, "/opt/stuck", "", &[]).await.unwrap();
    tokio::time::sleep(Duration::from_hours(5)).await;
    assert_eq!(list(&story, &vm, stuck).await.unwrap()[0].exit_code, None);
    let terminate = |pid| TerminateProcessInGuest {
        this: processes(),
        vm: vm.clone(),
        auth: auth("root", "x"),
        pid,
    };
    story.client.call(terminate(stuck)).await.unwrap();
    let gone = story.client.call(terminate(stuck)).await.unwrap_err();
    assert_eq!(
        (gone.class.as_str(), gone.text("pid")),
        ("GuestProcessNotFound", Some(stuck.to_string().as_str()))
    );
    let job = story.start_program(&vm, "/opt/job", "--now", &[]).await.unwrap();
    assert_eq!(exit_code(&story, &vm, job).await, 9);
    assert_eq!(story.lab.vcenter.read_guest_file("worker-1", "/tmp/report").unwrap(), "red");
    story.until("the job powers it off", |story| story.vm("worker-1").power == Power::Off).await;
    let last = story.programs().pop().unwrap();
    assert_eq!((last.path.as_str(), last.arguments.as_str()), ("/opt/job", "--now"));
}

#[tokio::test(start_paused = true)]
async fn a_program_that_works_ends_with_its_work_or_with_its_vm() {
    let story = Story::start(options()).await;
    let (calls, ended) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (on, count) = (calls.clone(), ended.clone());
    story.lab.vcenter.script_guests(move |program: &GuestProgram| {
        let (on, count) = (on.clone(), count.clone());
        let work = GuestWork::new(move || {
            let (on, count) = (on.clone(), count.clone());
            async move {
                on.notified().await;
                count.fetch_add(1, Ordering::Relaxed);
                GuestRun::exits(3).then(GuestEffect::PowerOff)
            }
        });
        (program.path == "/opt/worker").then(|| work.into())
    });
    let vm = ready(&story).await;
    let stopped = story.start_program(&vm, "/opt/worker", "", &[]).await.unwrap();
    let this = processes();
    let terminate =
        TerminateProcessInGuest { this, vm: vm.clone(), auth: auth("root", "x"), pid: stopped };
    story.client.call(terminate).await.unwrap();
    let worker = story.start_program(&vm, "/opt/worker", "", &[]).await.unwrap();
    tokio::time::sleep(Duration::from_hours(5)).await;
    assert_eq!(list(&story, &vm, worker).await.unwrap()[0].exit_code, None);
    calls.notify_one();
    assert_eq!(exit_code(&story, &vm, worker).await, 3);
    story.until("the work powers it off", |story| story.vm("worker-1").power == Power::Off).await;

    story.lab.vcenter.set_power("worker-1", Power::On).unwrap();
    story.until("it is up", |story| story.vm("worker-1").guest_operations_ready).await;
    story.start_program(&vm, "/opt/worker", "", &[]).await.unwrap();
    story.lab.vcenter.set_power("worker-1", Power::Off).unwrap();
    calls.notify_one();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(ended.load(Ordering::Relaxed), 1, "neither the terminated nor the powered-off one");
}

#[tokio::test(start_paused = true)]
async fn the_environment_of_a_guest_can_be_read() {
    let story = Story::start(options()).await;
    let vm = ready(&story).await;
    let names = vec!["HOME".to_owned(), "NOPE".to_owned()];
    let call =
        ReadEnvironmentVariableInGuest { this: processes(), vm, auth: auth("ci", "x"), names };
    assert_eq!(story.client.call(call).await.unwrap(), ["HOME=/home/ci"]);
}

#[tokio::test(start_paused = true)]
async fn files_go_in_and_out_of_a_guest() {
    let story = Story::start(options()).await;
    let vm = ready(&story).await;
    let put = |path: &str, size: i64, overwrite: bool| {
        story.client.call(InitiateFileTransferToGuest {
            this: files(),
            vm: vm.clone(),
            auth: auth("root", "x"),
            guest_file_path: path.into(),
            file_attributes: GuestFileAttributes {
                permissions: Some(0o755),
                ..GuestFileAttributes::of("GuestPosixFileAttributes")
            },
            file_size: size,
            overwrite,
        })
    };
    let url = put("/home/ci/run.sh", 12, false).await.unwrap();
    let place = url.split_once('*').unwrap().1.to_owned();
    let anonymous = story.lab.anonymous();
    let (status, _) = anonymous.http("PUT", &place, "echo running").await.unwrap();
    assert_eq!(status, 200);
    let (status, _) = anonymous.http("PUT", &place, "echo running").await.unwrap();
    assert_eq!(status, 401, "a token is good for one transfer");
    assert_eq!(put("/home/ci/run.sh", 1, false).await.unwrap_err().class, "FileAlreadyExists");
    let get = |path: &str| {
        let call = InitiateFileTransferFromGuest {
            this: files(),
            vm: vm.clone(),
            auth: auth("root", "x"),
            guest_file_path: path.into(),
        };
        story.client.call(call)
    };
    assert_eq!(get("/home/ci/nothing").await.unwrap_err().class, "FileNotFound");
    let info = get("/home/ci/run.sh").await.unwrap();
    assert_eq!((info.size, info.attributes.permissions), (12, Some(0o755)));
    let place = info.url.split_once('*').unwrap().1.to_owned();
    assert_eq!(
        anonymous.http("GET", &place, "").await.unwrap(),
        (http::StatusCode::OK, "echo running".into())
    );
    let pid = story.start_program(&vm, "/bin/bash", "/home/ci/run.sh", &[]).await.unwrap();
    assert_eq!(exit_code(&story, &vm, pid).await, 0);
    assert_eq!(story.lab.vcenter.guest_processes("worker-1")[0].output, "running\n");
}

#[tokio::test(start_paused = true)]
async fn directories_and_temporary_files_are_kept_in_order() {
    let story = Story::start(options()).await;
    let vm = ready(&story).await;
    let make = |path: &str, parents: bool| {
        story.client.call(MakeDirectoryInGuest {
            this: files(),
            vm: vm.clone(),
            auth: auth("root", "x"),
            directory_path: path.into(),
            create_parent_directories: parents,
        })
    };
    assert_eq!(make("/srv/a/b", false).await.unwrap_err().class, "FileNotFound");
    make("/srv/a/b", true).await.unwrap();
    assert_eq!(make("/srv/a/b", true).await.unwrap_err().class, "FileAlreadyExists");
    let temporary = story
        .client
        .call(CreateTemporaryFileInGuest {
            this: files(),
            vm: vm.clone(),
            auth: auth("root", "x"),
            prefix: "out-".into(),
            suffix: "-end".into(),
            directory_path: Some("/srv/a".into()),
        })
        .await
        .unwrap();
    assert!(temporary.starts_with("/srv/a/out-") && temporary.ends_with("-end"), "{temporary}");
    let list = async || {
        let call = ListFilesInGuest {
            this: files(),
            vm: vm.clone(),
            auth: auth("root", "x"),
            file_path: "/srv/a".into(),
            ..Default::default()
        };
        story.client.call(call).await.unwrap().files
    };
    let kinds: Vec<_> = list().await.into_iter().map(|file| file.kind).collect();
    assert_eq!(kinds, ["directory", "file"]);
    let delete = DeleteFileInGuest {
        this: files(),
        vm: vm.clone(),
        auth: auth("root", "x"),
        file_path: temporary,
    };
    story.client.call(delete.clone()).await.unwrap();
    assert_eq!(story.client.call(delete).await.unwrap_err().class, "FileNotFound");
    assert_eq!(list().await.len(), 1);
}
