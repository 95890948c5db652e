"""The `roomtone` command line. The entry point is `app.run_command_line`.

There is one module for each command (`setup`, `run`, `settings`, `rehearse`, `replay`, `explain`, `invite`, `backup`
with restore, `models`, `cluster`) and one folder for each larger one: `bench`, `doctor`, `memory`, `report`,
`log_view` (`roomtone tail`). Command modules are light: they import slow libraries only when the command runs.
All commands share `environment`, `signals`, `failures` and `output`; those that write settings, `settings_files`.
"""
