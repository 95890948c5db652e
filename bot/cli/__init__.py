"""The `roomtone` command line. The entry point is `app.run_command_line`.

There is one module for each command (`run`, `replay`, `explain`, `doctor`, `models`, `bench`) and one folder for each
larger command: `memory`, `log_view` (`roomtone tail`), `rehearsal` (`roomtone rehearse`). `checks` has the checks of
`doctor`. Command modules are light: they import slow libraries only when the command runs. `environment`, `signals` and
`failures` are shared by all commands.
"""
