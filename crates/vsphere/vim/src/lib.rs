#![doc = include_str!("../README.md")]

mod call;
mod cleanup;
mod client;
mod client_core;
mod credentials;
mod deadline;
mod device;
mod error;
mod events;
mod exchange;
mod files;
mod find;
mod guest;
mod hooks;
mod http_transport;
mod library;
mod meter;
mod ovf;
mod placement;
mod policy;
mod privileges;
mod properties;
mod remedy;
mod rest;
mod retrieve;
mod session;
mod settings;
mod stream;
mod tags;
mod task;
mod transfer;
mod transport;
mod version;
mod vm;
mod wait;

pub use client::{Client, Observer};
pub use credentials::{
    CredentialError, CredentialSource, Credentials, EnvironmentPassword, PasswordFile,
};
pub use deadline::{CallClass, Deadlines};
pub use device::{
    BackingFile, Card, CdromBus, DeviceError, DiskController, NetworkBacking, NetworkError,
    NewDisk, NewNic, Provisioning, ScsiController, UnknownCard, eject, grow_disk, insert_iso,
    move_nic, remove_device,
};
pub use error::CallError;
pub use events::{EventError, EventQuery, EventTail, Recursion, TailFrom};
pub use files::{
    Datastore, DatastoreFile, DatastoreObserver, DatastorePath, DatastorePathError, FileError,
    FileKind, FileStep, defined_profile, thin_disk,
};
pub use find::{Candidates, FindError, Finder, Found, Kind, PathProblem, UuidKind, Within};
pub use guest::{
    Environment, EnvironmentError, Exit, Guest, GuestCredentials, GuestError, GuestFile,
    GuestFileOptions, GuestObserver, GuestOperations, GuestStep, Process, Program, quote,
};
pub use hooks::{CallRecord, Hooks, LoginOutcome, NoHooks, Outcome};
pub use http_transport::{HttpTransport, TransportError};
pub use library::{
    DeployOvf, ItemFile, ItemStorage, Library, LibraryItem, NewLibrary, OvfFilter, OvfProperty,
};
pub use ovf::{ImportError, ImportSpec};
pub use placement::{PlaceVms, Placed, PlacementError, VmPlacement};
pub use policy::{PolicyError, StoragePolicy};
pub use privileges::Lacking;
pub use properties::Properties;
pub use remedy::{Faulted, Remedy};
pub use rest::RestError;
pub use roost_tls::{Belief, Disbelief, Thumbprint, ThumbprintError, TlsTrust};
/// The types that calls are made of and answered with.
pub use roost_vim_wire as wire;
pub use settings::{AddressError, Settings, StreamSettings};
pub use stream::{Batch, Change, StreamStatus, Subscription, Update, WatchSpec, Watched};
pub use tags::{Tag, TagCategory};
pub use task::{Progress, Task, TaskError};
pub use transfer::{
    Download, FileSource, ReaderSource, TransferError, TransferProgress, UploadSource,
};
pub use transport::{Body, SendFuture, Transport};
pub use vm::{
    Annotated, BootDevice, CloneSpecError, CloneVm, ConsoleTicket, CreateVm, Customization,
    CustomizationError, Destroyed, DiskCopy, Firmware, GuestIdentity, HostName, HotAdd, Made,
    Namesake, NewSnapshot, NicAddress, PowerChange, Reconfigure, Reserved, Shutdown, Snapshot,
    Snapshots, Step, TemplateFacts, TemplateUse, TemplateWarning, VmError, unlimited_pool,
};
pub use wait::WaitError;
