//! `cocoon`, simulated: the same command lines, no hypervisor.

use std::process::ExitCode;

fn main() -> ExitCode {
    let folder = std::env::var_os("COCOON_SIM_DIR");
    let Some(folder) = folder else {
        eprintln!("Error: COCOON_SIM_DIR is not set: it names the folder of the simulated host");
        return ExitCode::FAILURE;
    };
    roost_cocoon_sim::cli::main(folder.into(), std::env::args().skip(1).collect())
}
