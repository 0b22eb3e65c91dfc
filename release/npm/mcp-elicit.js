#!/usr/bin/env node
// Starts the program of this platform. Where node can, the program takes the place of this process; elsewhere it is a child that gets
// the same signals, and whose exit code or signal is passed on.
"use strict";

const { spawn } = require("node:child_process");
const { version, optionalDependencies } = require("../package.json");

const PREFIX = "@mcp-elicit/cli-";

/** The version of the system's glibc, or undefined without glibc (musl, other systems). */
function systemGlibc() {
  if (process.platform !== "linux") return undefined;
  process.report.excludeNetwork = true; // otherwise it may ask a name server
  return process.report.getReport().header.glibcVersionRuntime;
}

/** Compares versions such as 2.34, part by part. */
function older(one, other) {
  const [a, b] = [one, other].map((text) => text.split(".").map(Number));
  return a[0] !== b[0] ? a[0] < b[0] : (a[1] ?? 0) < (b[1] ?? 0);
}

function fail(...lines) {
  console.error(["mcp-elicit: " + lines[0], ...lines.slice(1)].join("\n"));
  process.exit(1);
}

/** The path of the native program, or an end with what to do. */
function nativeProgram() {
  const build = "With Rust, build it: cargo install --locked --features full mcp-elicit";
  const glibc = systemGlibc();
  const musl = process.platform === "linux" && glibc === undefined;
  const platform = `${process.platform}-${process.arch}${musl ? "-musl" : ""}`;
  const name = PREFIX + platform;
  if (!(name in optionalDependencies)) {
    const all = Object.keys(optionalDependencies).map((each) => each.slice(PREFIX.length));
    fail(`there is no program for ${platform}, only for ${all.join(", ")}.`, build);
  }
  let description;
  try {
    description = require(`${name}/package.json`);
  } catch {
    fail(
      `the package ${name} is not installed. It is an optional dependency, which --omit=optional leaves out,`,
      "and so does a node_modules folder from another platform. Install it beside mcp-elicit:",
      `  npm install ${name}@${version}`,
      build,
    );
  }
  if (glibc !== undefined && description.glibc !== undefined && older(glibc, description.glibc)) {
    fail(`the program needs glibc ${description.glibc} or newer, and this system has ${glibc}.`, build);
  }
  return require.resolve(`${name}/bin/mcp-elicit${process.platform === "win32" ? ".exe" : ""}`);
}

function start(program) {
  const args = process.argv.slice(2);
  if (process.platform !== "win32" && typeof process.execve === "function") {
    try {
      process.execve(program, [program, ...args], process.env);
    } catch (error) {
      // Without the permission to replace itself, node can still start a child.
      if (error.code !== "ERR_ACCESS_DENIED" && error.code !== "ERR_FEATURE_UNAVAILABLE_ON_PLATFORM") throw error;
    }
  }
  const child = spawn(program, args, { stdio: "inherit" });
  child.on("error", (error) => fail(`${program} cannot be started: ${error.message}`, "Install mcp-elicit again."));
  // A terminal sends these to all of its processes; sent on, the program would get each twice, and the second ends it at once.
  const terminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
  for (const signal of ["SIGINT", "SIGQUIT", "SIGHUP", "SIGTERM", "SIGUSR2"]) {
    const fromTerminal = terminal && ["SIGINT", "SIGQUIT", "SIGHUP"].includes(signal);
    process.on(signal, () => fromTerminal || child.kill(signal));
  }
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

start(nativeProgram());
