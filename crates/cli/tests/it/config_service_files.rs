//! `evenhand config check` of options that name files of settings.

use crate::test_folder::TestFolder;

#[test]
fn files_of_settings_that_options_name_are_read_as_the_services_read_them() {
    let folder = TestFolder::new();
    let check = |variable: &str, option: &str, file: &str, text: &str| {
        let path = folder.path(file);
        folder.write(file, text);
        folder.write("service.env", format!("# of this site\n{variable}={option} {}\n", path.display()));
        folder.run(&["config", "check", "service.env"])
    };
    let serve = ("EVENHAND_SERVE_OPTIONS", "--policy-file");
    let slurm = ("EVENHAND_SLURM_OPTIONS", "--policy-settings");
    for ((variable, option), valid, invalid, expected) in [
        (
            serve,
            "users = \"own\"\n",
            "anonymous = \"none\"\nuser = \"own\"\n",
            "serve.toml:2:1: unknown field \"user\"",
        ),
        (serve, "", "users = \"everybody\"\n", "serve.toml:1:9: users: found \"everybody\""),
        (slurm, "", "[[sdrf]]\n", "serve.toml:1:"),
    ] {
        check(variable, option, "serve.toml", valid).assert_succeeds();
        let place = format!("service.env:2:{}: ", variable.len() + option.len() + 3);
        let error = check(variable, option, "serve.toml", invalid).assert_fails(2, &[&place, expected]).stderr;
        assert!(!error.contains("\\n"), "the lines of the other file are not quoted: {error}");
    }
    folder.write("service.env", "EVENHAND_SERVE_OPTIONS=--policy-file nowhere.toml\n");
    folder.run(&["config", "check", "service.env"]).assert_fails(2, &["service.env:1:38: ", "nowhere.toml"]);
}

#[test]
fn the_folder_of_a_study_that_an_option_names_is_listed_as_the_service_lists_it() {
    let folder = TestFolder::with("service.env", "EVENHAND_SERVE_OPTIONS=--rate 5 --study report\n");
    let check = || folder.run(&["config", "check", "service.env"]);
    check().assert_fails(2, &["service.env:1:33: --study: cannot read report: No such file"]);
    std::fs::create_dir(folder.path("report")).unwrap();
    check().assert_fails(2, &["service.env:1:33: --study: report has no index.html"]);
    folder.write("report/index.html", "");
    check().assert_succeeds();
}

#[test]
fn a_proxy_that_could_not_come_to_the_services_socket_is_refused() {
    let folder = TestFolder::new();
    let check = |proxy: &str| {
        let options = format!("--user-header X-User --trusted-proxy {proxy}");
        folder.write("service.env", format!("EVENHAND_SERVE_OPTIONS={options}\n"));
        folder.run(&["config", "check", "service.env"])
    };
    check("user:root").assert_succeeds();
    check("127.0.0.1")
        .assert_fails(2, &["service.env:1:45: --trusted-proxy: found the address 127.0.0.1", "user:NAME"]);
    folder
        .run(&["serve", "--listen", "0.0.0.0:8650", "--user-header", "X-User", "--trusted-proxy", "user:root"])
        .assert_fails(2, &["--trusted-proxy: found user:NAME", "0.0.0.0:8650", "--socket PATH instead of --listen"]);
}
