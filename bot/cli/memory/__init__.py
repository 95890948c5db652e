"""`roomtone memory`: search, manage, export and delete what rooms remember. The entry point is `commands.app`."""
