//! Guest operations.

use std::fmt;

use jiff::Timestamp;

data! {
    /// `NamePasswordAuthentication`. The password is kept out of `Debug` by its type.
    typed NamePasswordAuthentication {
        interactive_session "interactiveSession": bool,
        username: String,
        password: Password,
    }

    typed GuestProgramSpec {
        program_path "programPath": String,
        arguments: String,
        working_directory "workingDirectory": Option<String>,
        /// Replaces the whole environment; each is `NAME=value`.
        env_variables "envVariables": Vec<Hidden>,
    }

    struct GuestProcessInfo {
        name: String,
        pid: i64,
        owner: String,
        cmd_line "cmdLine": String,
        start_time "startTime": Timestamp,
        end_time "endTime": Option<Timestamp>,
        exit_code "exitCode": Option<i32>,
    }

    /// `GuestPosixFileAttributes` or its base.
    open GuestFileAttributes {
        modification_time "modificationTime": Option<Timestamp>,
        access_time "accessTime": Option<Timestamp>,
        symlink_target "symlinkTarget": Option<String>,
        owner_id "ownerId": Option<i32>,
        group_id "groupId": Option<i32>,
        /// The octal mode as a number: 0o755 is 493.
        permissions: Option<i64>,
    }

    struct FileTransferInformation {
        attributes: GuestFileAttributes,
        size: i64,
        url: String,
    }

    struct GuestListFileInfo {
        files: Vec<GuestFileInfo>,
        remaining: i32,
    }

    struct GuestFileInfo {
        path: String,
        kind "type": String,
        size: i64,
        attributes: GuestFileAttributes,
    }
}

macro_rules! secret_text {
    ($($(#[$meta:meta])* $name:ident)+) => {$(
        $(#[$meta])*
        #[derive(Clone, Default, PartialEq, Eq)]
        pub struct $name(pub String);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("***")
            }
        }

        impl crate::Field for $name {
            const TYPE: &'static str = "xsd:string";

            fn write(&self, w: &mut crate::xml::Writer, name: &str) {
                self.0.write(w, name);
            }

            fn read(
                &mut self,
                r: &mut crate::xml::Reader<'_>,
                start: &crate::xml::Start<'_>,
            ) -> Result<(), crate::WireError> {
                self.0.read(r, start)
            }

            fn to_value(&self) -> Option<crate::Value> {
                self.0.to_value()
            }
        }

        impl crate::field::ListItem for $name {}
    )+};
}

secret_text! {
    /// A password on its way into a message.
    Password
    /// Text that may hold a secret: `NAME=value` of a guest's environment.
    Hidden
}
