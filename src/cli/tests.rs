//! What the command line means, and how it is told what is wrong.

use super::*;

fn around(variables: &[(&str, &str)]) -> Surroundings {
    Surroundings {
        variables: variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
        files: Files::Real,
        ephemeral_dir: "/tmp/ottla-1".to_owned(),
    }
}

fn parse_line(line: &str, around: &Surroundings) -> Result<Command, Failure> {
    let words = std::iter::once("ottla").chain(line.split_whitespace());
    parse(words.map(OsString::from), around)
}

fn run(line: &str) -> Run {
    match parse_line(line, &around(&[])) {
        Ok(Command::Run(run)) => *run,
        Ok(other) => panic!("{other:?}"),
        Err(failure) => panic!("{failure}"),
    }
}

fn failure(line: &str) -> String {
    match parse_line(line, &around(&[])) {
        Ok(command) => panic!("{line}: {command:?}"),
        Err(failure) => format!("{failure}\n(exit code {})", failure.exit_code),
    }
}

#[test]
fn without_arguments_it_is_a_broker_on_localhost_9092() {
    let Run { config, notices, topics, is_ephemeral } = run("");
    assert_eq!(config.listeners.client[0].to_string(), "PLAINTEXT://localhost:9092");
    assert_eq!(config.listeners.advertised, config.listeners.client);
    assert_eq!(config.listeners.controller, []);
    assert_eq!(config.log.directories(), ["data"]);
    assert_eq!((config.node.node_id, config.ottla.http_port), (1, 9664));
    assert_eq!(config.group.offsets_topic_replication_factor, 1);
    assert_eq!(config.group.initial_rebalance_delay_ms, 3000);
    assert_eq!((notices, topics.len(), is_ephemeral), (Notices::default(), 0, false));
}

#[test]
fn arguments_stand_over_everything() {
    let run = run("--port 0 --http-port 8080 --data-dir /d --topic a --topic b:3:2 \
                   --set num.partitions=7 --set num.partitions=8");
    assert_eq!(run.config.listeners.client[0].port, 0);
    assert_eq!(run.config.ottla.http_port, 8080);
    assert_eq!(run.config.log.directories(), ["/d"]);
    assert_eq!(run.config.topics.num_partitions, 8);
    let spec = |name: &str, partitions, replicas| TopicSpec {
        name: name.to_owned(),
        partitions,
        replicas,
    };
    assert_eq!(run.topics, [spec("a", None, None), spec("b", Some(3), Some(2))]);
}

#[test]
fn an_ephemeral_node_keeps_its_data_in_a_new_directory() {
    let run = run("--ephemeral");
    assert!(run.is_ephemeral);
    assert_eq!(run.config.log.directories(), ["/tmp/ottla-1"]);
}

#[test]
fn another_port_also_frees_the_http_port() {
    assert_eq!(run("--port 9093").config.ottla.http_port, 0);
    assert_eq!(run("--port 9093 --http-port -1").config.ottla.http_port, -1);
    assert_eq!(run("--port 9093 --set ottla.http.port=1").config.ottla.http_port, 1);
}

#[test]
fn healthcheck_has_a_default_address() {
    for (line, address) in
        [("healthcheck", "localhost:9092"), ("healthcheck --bootstrap h:1", "h:1")]
    {
        match parse_line(line, &around(&[])) {
            Ok(Command::Healthcheck { bootstrap }) => assert_eq!(bootstrap, address),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn help_and_version_are_shown() {
    let shown = |line| match parse_line(line, &around(&[])) {
        Ok(Command::Show(text)) => text,
        other => panic!("{other:?}"),
    };
    assert!(shown("--version").starts_with("ottla "));
    insta::assert_snapshot!("help", shown("--help"));
}

#[test]
fn wrong_arguments_are_told_in_the_house_s_form() {
    let lines = [
        "--prot 1",
        "--nothing",
        "serve",
        "--port",
        "--port x",
        "--port 70000",
        "--port 1 --port 2",
        "--set num.partitions",
        "--topic a:0",
        "--topic a:1:1:1",
        "--ephemeral --data-dir d",
        "--config /no/such/file",
    ];
    let told: Vec<_> =
        lines.iter().map(|line| format!("$ ottla {line}\n{}", failure(line))).collect();
    insta::assert_snapshot!("wrong_arguments", told.join("\n\n"));
}

#[test]
fn wrong_settings_are_told_with_place_and_way_out() {
    let lines = [
        "--set num.partition=3",
        "--set zookeeper.connect=x",
        "--set num.partitions=0",
        "--set num.partitions=abc",
        "--set log.cleanup.policy=zip",
        "--set listeners=PLAINTEXT://0.0.0.0:9092",
        "--set listeners=PLAINTEXT:9092",
        "--set listeners=A://:1,B://:2",
        "--set listeners=SSL://:9093",
        "--set advertised.listeners=PLAINTEXT://0.0.0.0:9092",
        "--set listeners=A://h:1 --set listener.security.protocol.map=A:PLAINTEXT",
        "--set process.roles=broker",
        "--set controller.quorum.voters=1@a:1,2@b:1",
        "--set node.id=2 --set broker.id=3",
        "--set log.dirs=a,",
        "--set authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "--set queued.max.request.bytes=5",
        "--set offsets.topic.compression.codec=9",
        "--set ottla.http.port=99999",
        "--port 1 --set listeners=PLAINTEXT://:1,SSL://:2",
    ];
    let told: Vec<_> =
        lines.iter().map(|line| format!("$ ottla {line}\n{}", failure(line))).collect();
    insta::assert_snapshot!("wrong_settings", told.join("\n\n"));
}

#[test]
fn a_wrong_line_of_the_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("server.properties");
    Files::Real.write(&path, b"# mine\nnum.partitions=3\nlog.retention.ms=soon\n").unwrap();
    let told = failure(&format!("--config {}", path.display()));
    let told = told.replace(&dir.path().display().to_string(), "DIR");
    insta::assert_snapshot!("wrong_file", told);
}
