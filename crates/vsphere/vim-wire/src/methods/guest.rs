//! What is done inside a guest.

use crate::MoRef;
use crate::types::{
    FileTransferInformation, GuestFileAttributes, GuestListFileInfo, GuestProcessInfo,
    GuestProgramSpec, NamePasswordAuthentication,
};

methods! {
    on GuestProcessManager {
        change StartProgramInGuest = "StartProgramInGuest" needs "VirtualMachine.GuestOperations.Execute"
        {
            vm: MoRef,
            auth: NamePasswordAuthentication,
            spec: GuestProgramSpec,
        } -> i64;
        read ListProcessesInGuest = "ListProcessesInGuest" needs "VirtualMachine.GuestOperations.Query"
        {
            vm: MoRef,
            auth: NamePasswordAuthentication,
            pids: Vec<i64>,
        } -> Vec<GuestProcessInfo>;
        change TerminateProcessInGuest = "TerminateProcessInGuest" needs "VirtualMachine.GuestOperations.Execute"
        {
            vm: MoRef,
            auth: NamePasswordAuthentication,
            pid: i64,
        } -> ();
        read ReadEnvironmentVariableInGuest = "ReadEnvironmentVariableInGuest" needs "VirtualMachine.GuestOperations.Query"
        {
            vm: MoRef,
            auth: NamePasswordAuthentication,
            names: Vec<String>,
        } -> Vec<String>;
    }

    on GuestFileManager {
        change InitiateFileTransferToGuest = "InitiateFileTransferToGuest" needs "VirtualMachine.GuestOperations.Modify"
        {
            vm: MoRef,
            auth: NamePasswordAuthentication,
            guest_file_path "guestFilePath": String,
            file_attributes "fileAttributes": GuestFileAttributes,
            file_size "fileSize": i64,
            overwrite: bool,
        } -> String;
        read InitiateFileTransferFromGuest = "InitiateFileTransferFromGuest" needs "VirtualMachine.GuestOperations.Query"
        {
            vm: MoRef,
            auth: NamePasswordAuthentication,
            guest_file_path "guestFilePath": String,
        } -> FileTransferInformation;
        change MakeDirectoryInGuest = "MakeDirectoryInGuest" needs "VirtualMachine.GuestOperations.Modify"
        {
            vm: MoRef,
            auth: NamePasswordAuthentication,
            directory_path "directoryPath": String,
            create_parent_directories "createParentDirectories": bool,
        } -> ();
        change DeleteFileInGuest = "DeleteFileInGuest" needs "VirtualMachine.GuestOperations.Modify"
        {
            vm: MoRef,
            auth: NamePasswordAuthentication,
            file_path "filePath": String,
        } -> ();
        read ListFilesInGuest = "ListFilesInGuest" needs "VirtualMachine.GuestOperations.Query"
        {
            vm: MoRef,
            auth: NamePasswordAuthentication,
            file_path "filePath": String,
            index: Option<i32>,
            max_results "maxResults": Option<i32>,
            match_pattern "matchPattern": Option<String>,
        } -> GuestListFileInfo;
        change CreateTemporaryFileInGuest = "CreateTemporaryFileInGuest" needs "VirtualMachine.GuestOperations.Modify"
        {
            vm: MoRef,
            auth: NamePasswordAuthentication,
            prefix: String,
            suffix: String,
            directory_path "directoryPath": Option<String>,
        } -> String;
    }

    on GuestAuthManager {
        read ValidateCredentialsInGuest = "ValidateCredentialsInGuest" needs "VirtualMachine.GuestOperations.Query"
        {
            vm: MoRef,
            auth: NamePasswordAuthentication,
        } -> ();
    }
}
