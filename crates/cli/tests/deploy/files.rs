//! Checks of the files against each other, the image and the program.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use mcp_elicit_testkit::chromium::report_skipped;
use serde_json::Value;

use crate::{
    PROGRAM, SECRETS, STATE, make_secrets, owner, path, run_script, search_path, text, yaml,
};

/// The time in which the servers of a gateway end, beside `ready-grace` and `drain`.
const SERVERS_END: i64 = 10;

/// The gateway's file of a deployment, as values.
struct GatewayFile {
    text: String,
    values: toml::Table,
}

impl GatewayFile {
    fn new(text: String) -> Self {
        let values = text.parse().unwrap();
        Self { text, values }
    }

    fn setting(&self, name: &str) -> &str {
        self.values[name].as_str().unwrap()
    }

    fn port(&self, name: &str) -> i64 {
        let (_, port) = self.setting(name).rsplit_once(':').unwrap();
        port.parse().unwrap()
    }

    fn host(&self, name: &str) -> &str {
        self.setting(name).strip_prefix("https://").unwrap()
    }

    /// Returns the seconds in which a gateway that is told to stop ends.
    fn ends_within(&self) -> i64 {
        let seconds = |name: &str| self.values[name].as_integer().unwrap();
        seconds("ready-grace") + seconds("drain") + SERVERS_END
    }

    /// Returns the names of the files below this folder that it has secrets in.
    fn secrets(&self, folder: &str) -> BTreeSet<String> {
        names_below(&self.text, folder)
    }

    /// Runs `gateway .. --check` with the command line of a container, on this file with other folders.
    fn check(&self, command: &[&str], folder: &Path, secrets: (&str, &Path)) {
        let state = folder.join("state");
        let text = self.text.replace(STATE, &state.to_string_lossy());
        let text = text.replace(secrets.0, &secrets.1.to_string_lossy());
        let file = folder.join("gateway.toml");
        fs::write(&file, text).unwrap();
        let config = file.to_string_lossy();
        let command: Vec<&str> = command
            .iter()
            .map(|word| if *word == CONFIG { &*config } else { word })
            .collect();
        assert!(command.contains(&&*config), "{command:?}");
        let done = Command::new(PROGRAM)
            .args(&command)
            .arg("--check")
            .env("PATH", search_path())
            .output()
            .unwrap();
        // The database of the containers is not here, nor the certificate of its issuer: they are tried last.
        let said = String::from_utf8_lossy(&done.stderr);
        let tried = ["the record cannot be reached", "db-ca.pem cannot be read"];
        let is_valid = done.status.success() || tried.iter().any(|why| said.contains(why));
        assert!(is_valid, "{command:?}: {done:?}");
        let rules = Command::new(PROGRAM)
            .args(["rules", "check"])
            .arg(&file)
            .output()
            .unwrap();
        assert!(rules.status.success(), "{rules:?}");
    }
}

/// The place of the gateway's file in a container.
const CONFIG: &str = "/etc/mcp-elicit/gateway.toml";

/// Returns the names that a text has below a folder.
fn names_below(text: &str, folder: &str) -> BTreeSet<String> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
    let folder = format!("{folder}/");
    let rests = text.split(&folder).skip(1);
    rests
        .map(|rest| rest.split(|letter| !is_name(letter)).next().unwrap())
        .map(str::to_owned)
        .collect()
}

fn strings(list: &Value) -> Vec<&str> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(|value| value.as_str().unwrap()).collect()
}

fn set(list: &Value) -> BTreeSet<String> {
    strings(list).into_iter().map(str::to_owned).collect()
}

fn keys(map: &Value) -> BTreeSet<String> {
    map.as_object().unwrap().keys().cloned().collect()
}

/// Returns the number of a time such as `60s`.
fn seconds(text: &Value) -> i64 {
    text.as_str()
        .unwrap()
        .strip_suffix('s')
        .unwrap()
        .parse()
        .unwrap()
}

/// Returns the text of an attribute of the image that `release/build` makes.
fn image(after: &str) -> String {
    let made = text("release/packaging/image.py");
    let (_, rest) = made.split_once(after).unwrap_or_else(|| panic!("{after}"));
    let end = rest.find(['"', '\n']).unwrap();
    rest[..end].to_owned()
}

fn assert_is_image(container: &Value) {
    let expected = format!("mcp-elicit:{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(container["image"], expected.as_str());
    assert_eq!(image("MCP_ELICIT_STATE="), STATE);
    // The arguments follow the image's own beginning of the command line.
    assert_eq!(image("\"Entrypoint\": [\""), "/usr/bin/mcp-elicit");
}

#[test]
fn the_compose_file_its_secrets_and_the_files_of_its_services_fit_together() {
    let compose = yaml::documents(&text("deploy/compose/compose.yaml")).remove(0);
    let services = &compose["services"];
    let file = GatewayFile::new(text("deploy/compose/gateway/gateway.toml"));
    let folder = tempfile::tempdir().unwrap();
    let secrets = make_secrets(folder.path());
    let user = image("USER = ");
    let balancer = text("deploy/compose/haproxy.cfg");

    for (name, service) in services.as_object().unwrap() {
        let given = set(&service["secrets"]);
        assert!(
            given.is_subset(&keys(&compose["secrets"])),
            "{name}: {given:?}"
        );
        // Nobody but the balancer is reached from other machines.
        for port in strings(&service["ports"]) {
            assert!(
                port.starts_with("127.0.0.1:") || name == "balancer",
                "{name}: {port}"
            );
        }
        for volume in strings(&service["volumes"]) {
            let (from, _) = volume.split_once(':').unwrap();
            let is_there = match from.strip_prefix('.') {
                Some(_) => path("deploy/compose").join(from).exists(),
                None => keys(&compose["volumes"]).contains(from),
            };
            assert!(is_there, "{name}: {volume}");
        }
        let written = match name.as_str() {
            "gateway-a" | "gateway-b" => format!("{}{}", file.text, service["environment"]),
            "balancer" => balancer.clone(),
            "issuer" => text("deploy/compose/dex.yaml"),
            "postgres" => {
                let script = text("deploy/compose/postgres/elicit.sql");
                format!("{script}{}", service["environment"])
            }
            "keys" => {
                let script = strings(&service["command"])[0];
                script.replace("$$key", "seal.key ") + &script.replace("$$key", "identity.key ")
            }
            _ => String::new(),
        };
        assert_eq!(names_below(&written, SECRETS), given, "{name}");
        // A sign that stands for itself is written twice in this format.
        assert!(
            !service["command"]
                .to_string()
                .replace("$$", "")
                .contains('$')
        );
    }
    for (name, secret) in compose["secrets"].as_object().unwrap() {
        assert_eq!(secret["file"], format!("./secrets/{name}"));
        let is_of_a_person = name.ends_with("-password-hash");
        assert!(is_of_a_person || secrets.join(name).is_file(), "{name}");
    }
    let is_private = fs::metadata(&secrets).unwrap().permissions().mode();
    assert_eq!(is_private & 0o777, 0o700);
    // One that is there stays.
    let before = fs::read(secrets.join("seal.key")).unwrap();
    make_secrets(folder.path());
    assert_eq!(fs::read(secrets.join("seal.key")).unwrap(), before);

    for name in ["gateway-a", "gateway-b"] {
        let service = &services[name];
        assert_is_image(service);
        assert_eq!(service["user"], format!("{user}:{user}"));
        assert!(seconds(&service["stop_grace_period"]) >= file.ends_within());
        let volumes = strings(&service["volumes"]);
        assert!(
            volumes
                .iter()
                .any(|volume| volume.ends_with(&format!(":{STATE}")))
        );
        for (backend, setting) in [("gateways", "listen"), ("inboxes", "inbox")] {
            let server = format!(" {name}:{} check", file.port(setting));
            let (_, part) = balancer
                .split_once(&format!("backend {backend}\n"))
                .unwrap();
            let part = part.split("\nbackend ").next().unwrap();
            assert!(part.contains(&server), "{backend}: {server}");
            assert!(part.contains(" uri /ready "), "{backend}");
        }
        let watched = format!("\"{name}:{}\"", file.port("listen"));
        assert!(text("deploy/compose/prometheus.yml").contains(&watched));
        let command = strings(&service["command"]);
        let at = format!("{name}:{}", file.port("peer-listen"));
        assert!(command.ends_with(&["--peer-address", &at]), "{command:?}");
        let folder = tempfile::tempdir().unwrap();
        file.check(&command, folder.path(), (SECRETS, &secrets));
    }
    assert_eq!(
        balancer
            .matches(&format!("port {} ", file.port("listen")))
            .count(),
        2
    );
    for setting in ["public-url", "inbox-url"] {
        assert!(balancer.contains(file.host(setting)), "{setting}");
        let certificate = text("deploy/compose/make-secrets");
        assert!(certificate.contains(&format!("DNS:{}", file.host(setting))));
    }
    let published = strings(&services["balancer"]["ports"])[0];
    let (_, inside) = published.rsplit_once(':').unwrap();
    assert!(balancer.contains(&format!("bind :{inside} ssl ")));
    let probe = &services["balancer"]["healthcheck"]["test"];
    assert!(probe.to_string().contains("127.0.0.1:8404/health"));
    assert!(
        balancer.contains("bind 127.0.0.1:8404\n") && balancer.contains("monitor-uri /health\n")
    );

    check_prometheus(folder.path());

    let issuer = yaml::documents(&text("deploy/compose/dex.yaml")).remove(0);
    let login = &file.values["login"];
    assert_eq!(issuer["issuer"], login["issuer"].as_str().unwrap());
    let client = &issuer["staticClients"][0];
    assert_eq!(client["id"], login["client-id"].as_str().unwrap());
    let back = format!("{}/login/return", file.setting("inbox-url"));
    assert_eq!(strings(&client["redirectURIs"]), [back]);
    let aliases = set(&services["balancer"]["networks"]["front"]["aliases"]);
    for address in [
        file.setting("public-url"),
        file.setting("inbox-url"),
        issuer["issuer"].as_str().unwrap(),
    ] {
        assert!(aliases.contains(address.strip_prefix("https://").unwrap()));
    }
    for person in issuer["staticPasswords"].as_array().unwrap() {
        let known = &file.values["people"][person["username"].as_str().unwrap()];
        assert_eq!(person["email"], known["mail"].as_str().unwrap());
    }
    let (_, port) = issuer["web"]["http"]
        .as_str()
        .unwrap()
        .rsplit_once(':')
        .unwrap();
    assert!(balancer.contains(&format!("server dex issuer:{port}\n")));
}

/// Lets Prometheus read its configuration and the alerts, side by side as in its container.
fn check_prometheus(folder: &Path) {
    let config = folder.join("prometheus.yml");
    fs::copy(path("deploy/compose/prometheus.yml"), &config).unwrap();
    fs::copy(path("deploy/alerts.yml"), folder.join("alerts.yml")).unwrap();
    let checked = Command::new("promtool")
        .args(["check", "config"])
        .arg(&config)
        .output();
    let Ok(checked) = checked else {
        assert!(std::env::var_os("CI").is_none(), "CI has promtool");
        return report_skipped("no promtool here, prometheus.yml WAS NOT TESTED");
    };
    assert!(checked.status.success(), "{checked:?}");
}

#[test]
fn the_kubernetes_files_fit_together() {
    let folder = path("deploy/kubernetes");
    let mut all = Vec::new();
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        names.insert(path.file_name().unwrap().to_string_lossy().into_owned());
        all.extend(yaml::documents(&fs::read_to_string(&path).unwrap()));
    }
    let of = |kind: &str| -> Vec<&Value> {
        let found: Vec<_> = all
            .iter()
            .filter(|document| document["kind"] == kind)
            .collect();
        assert!(!found.is_empty(), "{kind}");
        found
    };
    // Applied are all but the example.
    let applied = set(&of("Kustomization")[0]["resources"]);
    let others = ["kustomization.yaml", "secret.example.yaml"].map(str::to_owned);
    assert_eq!(&names - &BTreeSet::from(others), applied);
    let namespace = &of("Namespace")[0]["metadata"]["name"];
    for document in &all {
        let is_in_one = !matches!(
            document["kind"].as_str().unwrap(),
            "Namespace" | "Kustomization"
        );
        assert!(
            !is_in_one || document["metadata"]["namespace"] == *namespace,
            "{document}"
        );
    }

    let config = of("ConfigMap")[0];
    let file = GatewayFile::new(config["data"]["gateway.toml"].as_str().unwrap().to_owned());
    let deployment = of("Deployment")[0];
    let pod = &deployment["spec"]["template"];
    let labels = &pod["metadata"]["labels"];
    let spec = &pod["spec"];
    let gateway = &spec["containers"][0];
    assert_is_image(gateway);
    assert_eq!(
        spec["securityContext"]["runAsUser"].to_string(),
        image("USER = ")
    );
    assert!(spec["terminationGracePeriodSeconds"].as_i64().unwrap() >= file.ends_within());
    for container in [gateway, &spec["initContainers"][0]] {
        assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    }
    // Ports, and who names them.
    let mut ports = BTreeSet::new();
    for (port, setting) in
        gateway["ports"]
            .as_array()
            .unwrap()
            .iter()
            .zip(["listen", "inbox", "peer-listen"])
    {
        assert_eq!(port["containerPort"], file.port(setting));
        ports.insert(port["name"].as_str().unwrap());
    }
    for (probe, page) in [
        ("readinessProbe", "/ready"),
        ("livenessProbe", "/health"),
        ("startupProbe", "/health"),
    ] {
        let get = &gateway[probe]["httpGet"];
        assert_eq!(
            (&get["path"], &get["port"]),
            (&page.into(), &"calls".into())
        );
    }
    let failed = &gateway["readinessProbe"];
    let seen =
        failed["periodSeconds"].as_i64().unwrap() * failed["failureThreshold"].as_i64().unwrap();
    assert!(file.values["ready-grace"].as_integer().unwrap() > seen);
    let service = of("Service")[0];
    assert_eq!(service["spec"]["selector"], *labels);
    for port in service["spec"]["ports"].as_array().unwrap() {
        assert!(
            ports.contains(port["targetPort"].as_str().unwrap()),
            "{port}"
        );
        assert_eq!(port["name"], port["targetPort"]);
    }
    let mut hosts = BTreeSet::new();
    for ingress in of("Ingress") {
        for rule in ingress["spec"]["rules"].as_array().unwrap() {
            hosts.insert(rule["host"].as_str().unwrap());
            for at in rule["http"]["paths"].as_array().unwrap() {
                let to = &at["backend"]["service"];
                assert_eq!(to["name"], service["metadata"]["name"]);
                assert!(ports.contains(to["port"]["name"].as_str().unwrap()));
            }
        }
    }
    assert_eq!(
        hosts,
        BTreeSet::from([file.host("public-url"), file.host("inbox-url")])
    );
    let policy = &of("NetworkPolicy")[0]["spec"];
    assert_eq!(policy["podSelector"]["matchLabels"], *labels);
    for from in policy["ingress"].as_array().unwrap() {
        for port in from["ports"].as_array().unwrap() {
            assert!(ports.contains(port["port"].as_str().unwrap()), "{port}");
        }
    }
    let budget = &of("PodDisruptionBudget")[0]["spec"];
    assert_eq!(budget["selector"]["matchLabels"], *labels);
    assert!(budget["minAvailable"].as_i64() < deployment["spec"]["replicas"].as_i64());

    // Secrets and folders.
    let secret = |name: &str| -> &Value {
        let found = of("Secret")
            .into_iter()
            .find(|secret| secret["metadata"]["name"] == name);
        &found.unwrap_or_else(|| panic!("{name}"))["stringData"]
    };
    let volume = |name: &Value| {
        let volumes = spec["volumes"].as_array().unwrap();
        let found = volumes.iter().find(|volume| volume["name"] == *name);
        found.unwrap_or_else(|| panic!("{name}"))
    };
    let mounted = |container: &Value, at: &str| -> Value {
        let mounts = container["volumeMounts"].as_array().unwrap();
        let found = mounts.iter().find(|mount| mount["mountPath"] == at);
        volume(&found.unwrap_or_else(|| panic!("{at}"))["name"]).clone()
    };
    let own = format!("{SECRETS}/mcp-elicit");
    let from = mounted(gateway, &own)["secret"]["secretName"].clone();
    assert_eq!(file.secrets(&own), keys(secret(from.as_str().unwrap())));
    assert_eq!(
        mounted(gateway, "/etc/mcp-elicit")["configMap"]["name"],
        config["metadata"]["name"]
    );
    let init = &spec["initContainers"][0];
    let key_folder = format!("{SECRETS}/mcp-elicit-keys");
    let from = mounted(init, &key_folder)["secret"]["secretName"].clone();
    let state = mounted(gateway, STATE);
    assert_eq!(state, mounted(init, "/state"));

    // The folder is made as a gateway wants it.
    let folder = tempfile::tempdir().unwrap();
    let secrets = make_secrets(folder.path());
    let script = strings(&init["args"])[0];
    let made = keys(secret(from.as_str().unwrap()));
    assert!(
        made.iter().all(|key| script.contains(key.as_str())),
        "{made:?}"
    );
    let script = script.replace(&key_folder, &secrets.to_string_lossy());
    let place = folder.path().join("volume");
    run_script(&script.replace("/state", &place.to_string_lossy()));
    let made = place.join("mcp-elicit");
    for (name, mode) in [("", 0o700), ("seal.key", 0o600), ("identity.key", 0o600)] {
        let found = fs::metadata(made.join(name)).unwrap().permissions().mode();
        assert_eq!(found & 0o777, mode, "{name}");
    }
    // The test's database has no certificate.
    fs::write(secrets.join("db-ca.pem"), "").unwrap();
    let command = strings(&gateway["args"]);
    let own_address = &gateway["env"][0];
    let variable = format!("$({})", own_address["name"].as_str().unwrap());
    assert_eq!(
        own_address["valueFrom"]["fieldRef"]["fieldPath"],
        "status.podIP"
    );
    let at = format!("{variable}:{}", file.port("peer-listen"));
    assert!(command.contains(&&*at), "{command:?}");
    let others = gateway_rule(policy, "egress");
    assert_eq!(others[0]["port"], file.port("peer-listen"));
    assert_eq!(gateway_rule(policy, "ingress")[0]["port"], "peers");
    let there = at.replace(&variable, "10.0.0.7");
    let command: Vec<&str> = command
        .into_iter()
        .map(|word| if word == at { &*there } else { word })
        .collect();
    file.check(&command, folder.path(), (&own, &secrets));
}

/// Returns the ports of the rule of a network policy that is about the gateways themselves.
fn gateway_rule<'p>(policy: &'p Value, direction: &str) -> &'p Value {
    let rules = policy[direction].as_array().unwrap();
    let about = |rule: &&Value| {
        ["from", "to"]
            .iter()
            .any(|end| rule[end][0]["podSelector"] == policy["podSelector"])
    };
    &rules.iter().find(about).unwrap()["ports"]
}

#[test]
fn the_state_folders_of_the_compose_file_get_the_keys_once() {
    let compose = yaml::documents(&text("deploy/compose/compose.yaml")).remove(0);
    let folder = tempfile::tempdir().unwrap();
    make_state_folders(&compose, folder.path());
    let rotated = folder.path().join("state/a/seal.key");
    fs::write(&rotated, [7; 64]).unwrap();
    make_state_folders(&compose, folder.path());
    assert_eq!(fs::read(&rotated).unwrap(), [7; 64], "a rotated key stays");
    let other = fs::read(folder.path().join("state/b/seal.key")).unwrap();
    assert_eq!(
        other,
        fs::read(folder.path().join("secrets/seal.key")).unwrap()
    );
}

/// Makes the state folders of both gateways below `state`, with the compose file's own script.
pub(crate) fn make_state_folders(compose: &Value, folder: &Path) {
    let secrets = make_secrets(folder);
    for name in ["a", "b"] {
        fs::create_dir_all(folder.join("state").join(name)).unwrap();
    }
    let script = strings(&compose["services"]["keys"]["command"])[0].replace("$$", "$");
    let (user, group) = image_user();
    let script = script.replace("/run/secrets", &secrets.to_string_lossy());
    let script = script.replace(" /state/", &format!(" {}/state/", folder.display()));
    let script = script.replace("65532:65532", &owner());
    run_script(&script.replace("-o 65532 -g 65532", &format!("-o {user} -g {group}")));
}

#[test]
fn secrets_are_made_with_all_that_they_need_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("make-secrets");
    fs::copy(path("deploy/compose/make-secrets"), &script).unwrap();
    // The programs that are found: none, and an openssl without htpasswd and docker.
    let programs = folder.path().join("programs");
    fs::create_dir(&programs).unwrap();
    let refused = |why: &str| {
        let mut command = Command::new("/bin/sh");
        let command = command.arg(&script).arg("ada").env("PATH", &programs);
        let done = command.output().unwrap();
        assert_eq!(done.status.code(), Some(1), "{done:?}");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(
            said.contains(why) && said.contains("nothing was made"),
            "{said}"
        );
        assert!(!folder.path().join("secrets").exists());
    };
    refused("openssl is not installed");
    let openssl = programs.join("openssl");
    fs::write(&openssl, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&openssl, fs::Permissions::from_mode(0o755)).unwrap();
    refused("passwords of people need htpasswd");
}

/// Returns the user and the group of this process, which take the place of the image's.
fn image_user() -> (String, String) {
    let owner = owner();
    let (user, group) = owner.split_once(':').unwrap();
    (user.to_owned(), group.to_owned())
}

#[test]
fn the_service_of_systemd_reloads_starts_again_without_a_limit_and_has_time_to_stop() {
    let unit = text("release/debian/mcp-elicit.service");
    let has = |line: &str| assert!(unit.lines().any(|found| found == line), "{line}");
    has("Type=notify");
    // Again and again, while the database is not up yet.
    has("Restart=on-failure");
    has("RestartSec=5");
    has("StartLimitIntervalSec=0");
    has("ExecReload=/bin/kill -HUP $MAINPID");
    has("ProtectSystem=strict");
    has("DynamicUser=yes");
    let start = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart=/usr/bin/mcp-elicit "));
    let words: Vec<&str> = start.unwrap().split(' ').collect();
    let file = GatewayFile::new(text("release/debian/gateway.toml"));
    let folder = tempfile::tempdir().unwrap();
    file.check(&words, folder.path(), (SECRETS, folder.path()));
}

#[test]
fn the_guide_of_the_folder_names_each_file() {
    let guide = text("deploy/README.md");
    let mut folders = vec![path("deploy")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && name != "secrets" {
                folders.push(path);
            } else if !matches!(&*name, "README.md" | ".gitignore" | "secrets") {
                assert!(guide.contains(&name), "{name}");
            }
        }
    }
}
