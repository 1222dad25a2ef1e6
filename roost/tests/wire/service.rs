use super::{Control, Process, Site, roost};

/// `roost run -c roost.toml` in a site's folder.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) process: Process,
    /// Its own HTTP surface.
    pub(crate) http: Control,
}

impl Service {
    /// The file of a site that it logs to, over all of its starts.
    pub(crate) const LOG: &str = "run.log";

    /// Starts it and waits until it serves. The folder has the configuration that [`Site::write_config`] wrote.
    pub(crate) fn start(site: &Site) -> Self {
        let mut command = roost(&["run", "-c", "roost.toml"]);
        command.current_dir(site.folder()).env("ROOST_LOG", "info");
        let process = Process::start(command, &site.file(Self::LOG), "serves, http://");
        let url = process.word("http://").trim_end_matches("/mon/status");
        let http = Control::new(url);
        Self { process, http }
    }
}
