"""The `roomtone` command line. Way in: `app.run_command_line`.

One module for each command (`run`, `replay`, `explain`, `doctor`, `models`, `bench`) and one folder for each larger
one: `memory`, `log_view` (`roomtone tail`), `rehearsal` (`roomtone rehearse`). `checks` holds what `doctor` checks.
Command modules are light: they import slow libraries only when the command runs. `environment`, `signals` and
`failures` are shared by all commands.
"""
