"""The scheduled task of Windows, which begins when the user signs in. Its file is tested; it was not run on Windows."""

import subprocess
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from exporter.service.plan import NAME, Installation, ServiceFile

TASK: Final = NAME


def task_path(installation: Installation) -> Path:
    """Return where the definition of the task stands."""
    return installation.config_home / "exporter" / f"{TASK}.xml"


def files(installation: Installation) -> list[ServiceFile]:
    """Return the definition; a task has no variables of its own, so none can be kept."""
    program, *arguments = installation.command
    content = f"""\
<?xml version="1.0" encoding="UTF-8"?>
<Task version="1.4" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>{escape(installation.mark)}</Description>
  </RegistrationInfo>
  <Triggers>
    <LogonTrigger><Enabled>true</Enabled></LogonTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author"><LogonType>InteractiveToken</LogonType><RunLevel>LeastPrivilege</RunLevel></Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure><Interval>PT1M</Interval><Count>255</Count></RestartOnFailure>
  </Settings>
  <Actions Context="Author">
    <Exec><Command>{escape(program)}</Command><Arguments>{escape(subprocess.list2cmdline(arguments))}</Arguments></Exec>
  </Actions>
</Task>
"""
    return [ServiceFile(task_path(installation), content)]
