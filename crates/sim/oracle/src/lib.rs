#![doc = include_str!("../README.md")]

mod availability;
mod chromium;
mod debian;
mod docker_registry;
mod go;
mod govc;
mod install;
mod kubernetes;
mod microvm;
mod process;
mod prometheus;
mod python;
mod pyvmomi;
mod scratch;
mod server_url;
mod suite;
mod systemd;
mod target;
mod vcsim;

pub use chromium::Chromium;
pub use docker_registry::DockerRegistry;
pub use go::{
    Binary, CONTROLLER_RUNTIME_VERSION, GOVMOMI_VERSION, govc, govmomi_bench, govmomi_program,
    priorityqueue_bench, vcsim,
};
pub use govc::Govc;
pub use kubernetes::{
    Cluster, ClusterOptions, KUBERNETES_VERSION, Kubectl, METRICS_SERVER_VERSION, etcd,
    kube_apiserver, kube_controller_manager, kube_scheduler, kubectl, metrics_server,
};
pub use microvm::{Microvm, microvm};
pub use process::Output;
pub use prometheus::{PROMETHEUS_AT_LEAST, Prometheus, Promtool, promtool};
pub use python::python3;
pub use pyvmomi::{PYVMOMI_VERSION, Python, Pyvmomi, pyvmomi};
pub use suite::{GOVC_SUITE_VERSION, GovcSuite, govc_suite};
pub use systemd::systemd_analyze;
pub use vcsim::{Vcsim, VcsimOptions};
